"""Blocks into passages: pieces of about 200 tokens that never reach over a heading."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from ekphory.documents.blocks import Block, BlockKind, LeftOut, Problem, Read
from ekphory.documents.cutting import cut
from ekphory.documents.tokens import estimated_tokens, is_dense

PASSAGE_TOKENS = 200
"""Most tokens of a passage of running text."""
WHOLE_TOKENS = 800
"""Most tokens of a fence of code or a table that is kept whole: a page and a half."""
_TAIL_TOKENS = 40
_LONGEST_WITH_TAIL = 250
_LONGEST_TITLE = 200


@dataclass(frozen=True, slots=True)
class Section:
    """The part of a document below one heading, up to the next.

    Attributes:
        headings: The titles from the outermost to its own; empty before the first heading.
        occurrence: How many sections with the same titles came before it.
    """

    headings: tuple[str, ...] = ()
    occurrence: int = 0


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a section: what becomes a memory.

    Attributes:
        text: Its text.
        section: Where it belongs.
        first, last: Where it begins and ends, in the unit of the document.
        kinds: What it is made of.
    """

    text: str
    section: Section
    first: int
    last: int
    kinds: frozenset[BlockKind]


def passages(blocks: Iterable[Read]) -> Iterator[Passage | LeftOut | Problem]:
    """Gather blocks into passages, in order and in the memory of two of them.

    A heading is the beginning of the first passage of its section. A short rest at the end of a
    section joins the passage before it.
    """
    gathering = _Gathering()
    for block in blocks:
        if not isinstance(block, Block):
            yield block
        elif block.kind == "heading":
            yield from gathering.finish()
            gathering.begin(block)
        else:
            yield from gathering.take(block)
    yield from gathering.finish()


class _Gathering:
    """The section that is being read: the passage before, and the one that is growing."""

    def __init__(self) -> None:
        self._outline: list[tuple[int, str]] = []
        self._occurrences: Counter[tuple[str, ...]] = Counter()
        self._section = Section()
        self._before: list[Block] = []
        self._growing: list[Block] = []
        self._size = 0.0

    def begin(self, heading: Block) -> None:
        """Open a section."""
        while self._outline and self._outline[-1][0] >= heading.level:
            self._outline.pop()
        self._outline.append((heading.level, _short(heading.title)))
        headings = tuple(title for _, title in self._outline)
        self._section = Section(headings, self._occurrences[headings])
        self._occurrences[headings] += 1
        self._add(heading)

    def take(self, block: Block) -> Iterator[Passage]:
        """Add a block, whole or in pieces; gives the passages that are full."""
        bound = WHOLE_TOKENS if block.kind in ("code", "table") else PASSAGE_TOKENS
        whole = estimated_tokens(block.text) <= bound
        for part in (block,) if whole else cut(block, PASSAGE_TOKENS):
            tokens = estimated_tokens(part.text)
            if self._has_text() and self._size + tokens > PASSAGE_TOKENS:
                yield from self._next()
            self._add(part)

    def finish(self) -> Iterator[Passage]:
        """Close the section; gives what is left of it."""
        before = sum(estimated_tokens(block.text) for block in self._before)
        if self._before and self._size < _TAIL_TOKENS and before + self._size < _LONGEST_WITH_TAIL:
            self._growing = self._before + self._growing
            self._before = []
        yield from self._next()
        yield from self._next()

    def _has_text(self) -> bool:
        return any(block.kind != "heading" for block in self._growing)

    def _add(self, block: Block) -> None:
        self._growing.append(block)
        self._size += estimated_tokens(block.text)

    def _next(self) -> Iterator[Passage]:
        if self._before:
            yield _passage(self._before, self._section)
        self._before, self._growing, self._size = self._growing, [], 0.0


def _passage(blocks: list[Block], section: Section) -> Passage:
    text = blocks[0].text
    for before, block in pairwise(blocks):
        text += separator(before, block) + block.text
    return Passage(
        text=text.strip("\n").rstrip(),
        section=section,
        first=blocks[0].first,
        last=blocks[-1].last,
        kinds=frozenset(block.kind for block in blocks),
    )


def separator(before: Block, after: Block) -> str:
    """Give what stands between two blocks of one passage."""
    if not after.continues:
        adjacent = before.verbatim and after.verbatim and after.first == before.last + 1
        return "\n" if adjacent else "\n\n"
    if after.verbatim and before.verbatim and after.first > before.last:
        return "\n"
    if after.kind in ("code", "table", "list"):
        return "\n"
    return "" if is_dense(before.text[-1]) and is_dense(after.text[0]) else " "


def _short(title: str) -> str:
    words = " ".join(title.split())
    return words if len(words) <= _LONGEST_TITLE else words[: _LONGEST_TITLE - 1] + "…"
