"""reStructuredText: paragraphs, and titles underlined with punctuation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ekphory.documents.blocks import Block, Problem, Read
from ekphory.documents.decoding import read_text
from ekphory.documents.plain_text import paragraphs
from ekphory.documents.settings import ReadingSettings

_RULE = re.compile(r"([!-/:-@[-`{-~])\1{2,}\s*")


def read_restructured_text(path: Path, settings: ReadingSettings) -> Iterator[Read]:
    """Read paragraphs and titles; the level of a title is the order in which its style came up."""
    text = read_text(path, settings.encoding)
    if isinstance(text, Problem):
        yield text
        return
    styles: list[str] = []
    for block in paragraphs(text):
        yield from _parted(block, styles)


def _parted(block: Block, styles: list[str]) -> Iterator[Block]:
    """Part a title at the top of a paragraph from the lines below it."""
    lines = block.text.split("\n")
    over = bool(_RULE.fullmatch(lines[0])) and len(lines) > 2
    title, rule = (lines[1:3] if over else lines[:2]) if len(lines) > 1 else (lines[0], "")
    if not _RULE.fullmatch(rule) or len(rule.rstrip()) < len(title.strip()):
        yield block
        return
    style = rule[0] * (2 if over else 1)
    if style not in styles:
        styles.append(style)
    taken = 3 if over else 2
    last = block.first + taken - 1
    words = title.strip()
    level = styles.index(style) + 1
    shown = "\n".join(lines[:taken])
    yield Block(shown, "heading", block.first, last, level=level, title=words, verbatim=True)
    if lines[taken:]:
        yield replace(block, text="\n".join(lines[taken:]), first=last + 1)
