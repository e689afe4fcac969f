"""Cuts a block that is too long for one passage, where a reader would pause."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace

from ekphory.documents.blocks import Block, BlockKind
from ekphory.documents.tokens import DENSE, estimated_tokens

Span = tuple[int, int]

# What stands before keeps a run of dots from being tried at each of them.
_SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]+[\"'”’»)\]]*\s+|[。！？；]+[」』”’）]*\s*|\n\s*\n")
_WORD_END = re.compile(rf"\s+|(?<=[{DENSE}])")
_LINE_END = re.compile(r"\n+")
_BLANK_LINE = re.compile(r"\n[ \t]*\n+")
_ITEM_START = re.compile(r"\n(?=(?:[-*+•]|\d{1,9}[.)])\s)")
_PAUSES: dict[BlockKind, tuple[re.Pattern[str], ...]] = {
    "heading": (_WORD_END,),
    "paragraph": (_SENTENCE_END, _WORD_END),
    "list": (_ITEM_START, _LINE_END, _SENTENCE_END, _WORD_END),
    "table": (_LINE_END, _WORD_END),
    "code": (_BLANK_LINE, _LINE_END, _WORD_END),
}
_JOINERS = "\u200d\ufe0e\ufe0f"
"""They tie an emoji to what follows, or say how it is drawn."""


def cut(block: Block, limit: int) -> Iterator[Block]:
    """Part a block into pieces of about equal length, each of at most `limit` tokens.

    Cuts lie after sentences, items or lines; only what has none of them within the limit is cut
    between words, and only what has no words between characters. No character but blanks at a cut
    is lost.
    """
    continues, line, counted = block.continues, block.first, 0
    for start, end in _pieces(block.text, _PAUSES[block.kind], limit):
        text = block.text[start:end].rstrip()
        if not text.strip():
            continue
        line += block.text.count("\n", counted, start)
        counted = start
        first, last = (line, line + text.count("\n")) if block.verbatim else _whole(block)
        yield replace(block, text=text, first=first, last=last, continues=continues)
        continues = True


def _whole(block: Block) -> Span:
    return block.first, block.last


def _pieces(text: str, pauses: tuple[re.Pattern[str], ...], limit: int) -> Iterator[Span]:
    """Gather the smallest parts into pieces of about equal length."""
    total = estimated_tokens(text)
    goal = total / max(1, math.ceil(total / limit))
    begun, size = 0, 0.0
    end = 0
    for start, end in _parts(text, (0, len(text)), pauses, limit):
        tokens = estimated_tokens(text[start:end])
        if size and (size + tokens > limit or size + tokens / 2 > goal):
            yield begun, start
            begun, size = start, 0.0
        size += tokens
    if end > begun:
        yield begun, end


def _parts(
    text: str, span: Span, pauses: tuple[re.Pattern[str], ...], limit: int
) -> Iterator[Span]:
    """Give adjacent spans that each fit, parted by the first kind of pause that is enough."""
    if not pauses:
        yield from _blindly_cut(text, span, limit)
        return
    for part in _between(text, span, pauses[0]):
        if estimated_tokens(text[part[0] : part[1]]) <= limit:
            yield part
        else:
            yield from _parts(text, part, pauses[1:], limit)


def _between(text: str, span: Span, pause: re.Pattern[str]) -> Iterator[Span]:
    start, end = span
    for found in pause.finditer(text, start, end):
        if start < found.end() < end:
            yield start, found.end()
            start = found.end()
    yield start, end


def _blindly_cut(text: str, span: Span, limit: int) -> Iterator[Span]:
    """Cut every so many characters, but not before a mark that belongs to the one before."""
    start, end = span
    density = estimated_tokens(text[start:end]) / (end - start)
    step = max(1, int(limit / density))
    while start < end:
        stop = min(start + step, end)
        while stop < end and _belongs_before(text, stop):
            stop += 1
        yield start, stop
        start = stop


def _belongs_before(text: str, place: int) -> bool:
    sign, before = text[place], text[place - 1]
    return unicodedata.combining(sign) != 0 or sign in _JOINERS or before in _JOINERS
