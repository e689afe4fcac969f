"""Plain text: paragraphs, parted by blank lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ekphory.documents.blocks import Block, Problem, Read
from ekphory.documents.decoding import read_text
from ekphory.documents.settings import ReadingSettings


def read_plain_text(path: Path, settings: ReadingSettings) -> Iterator[Read]:
    """Read the paragraphs of a text file."""
    text = read_text(path, settings.encoding)
    if isinstance(text, Problem):
        yield text
        return
    yield from paragraphs(text)


def paragraphs(text: str) -> Iterator[Block]:
    """Give the paragraphs with their lines, counted from 1."""
    held: list[str] = []
    number = 0
    for number, line in enumerate(lines_of(text), start=1):
        if line.strip():
            held.append(line)
        elif held:
            yield _paragraph(held, number - 1)
            held = []
    if held:
        yield _paragraph(held, number)


def lines_of(text: str) -> Iterator[str]:
    """Give the lines without their ends, one after the other."""
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield text[start:end]
        start = end + 1
    yield text[start:]


def _paragraph(lines: list[str], last: int) -> Block:
    text = "\n".join(line.rstrip() for line in lines)
    return Block(text, "paragraph", last - len(lines) + 1, last, verbatim=True)
