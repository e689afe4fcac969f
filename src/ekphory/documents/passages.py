"""Documents into passages of about 200 tokens that are worth remembering, each with its parent."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import Path
from typing import TypeAlias

from ekphory.documents.blocks import (
    DENSE,
    Block,
    BlockKind,
    NoteFacts,
    Problem,
    Read,
    Section,
    SkippedPart,
    estimate_tokens,
    is_dense,
)
from ekphory.documents.notes import read_marks
from ekphory.documents.pdf import is_page_number
from ekphory.documents.settings import ReadingSettings
from ekphory.documents.tree import MARKDOWN, Reader

# Cutting a block that is too long, where a reader would pause

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
    for start, end in _gather_pieces(block.text, _PAUSES[block.kind], limit):
        text = block.text[start:end].rstrip()
        if not text.strip():
            continue
        line += block.text.count("\n", counted, start)
        counted = start
        first, last = block.first, block.last
        if block.verbatim:
            first, last = line, line + text.count("\n")
        yield replace(block, text=text, first=first, last=last, continues=continues)
        continues = True


def _gather_pieces(text: str, pauses: tuple[re.Pattern[str], ...], limit: int) -> Iterator[Span]:
    """Gather the smallest parts into pieces of about equal length."""
    total = estimate_tokens(text)
    goal = total / max(1, math.ceil(total / limit))
    begun, end, size = 0, 0, 0.0
    for start, end in _part_span(text, (0, len(text)), pauses, limit):
        tokens = estimate_tokens(text[start:end])
        if size and (size + tokens > limit or size + tokens / 2 > goal):
            yield begun, start
            begun, size = start, 0.0
        size += tokens
    if end > begun:
        yield begun, end


def _part_span(
    text: str, span: Span, pauses: tuple[re.Pattern[str], ...], limit: int
) -> Iterator[Span]:
    """Return adjacent spans that each fit, parted by the first kind of pause that is enough."""
    if not pauses:
        yield from _cut_blindly(text, span, limit)
        return
    for part in _cut_between(text, span, pauses[0]):
        if estimate_tokens(text[part[0] : part[1]]) <= limit:
            yield part
        else:
            yield from _part_span(text, part, pauses[1:], limit)


def _cut_between(text: str, span: Span, pause: re.Pattern[str]) -> Iterator[Span]:
    start, end = span
    for found in pause.finditer(text, start, end):
        if start < found.end() < end:
            yield start, found.end()
            start = found.end()
    yield start, end


def _cut_blindly(text: str, span: Span, limit: int) -> Iterator[Span]:
    """Cut every so many characters, but not before a mark that belongs to the one before."""
    start, end = span
    density = estimate_tokens(text[start:end]) / (end - start)
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


# Gathering blocks into passages that never reach over a heading

PASSAGE_TOKENS = 200
"""Most tokens of a passage of running text."""
WHOLE_TOKENS = 800
"""Most tokens of a fence of code or a table that is kept whole: a page and a half."""
_TAIL_TOKENS = 40
_LONGEST_WITH_TAIL = 250
_LONGEST_TITLE = 200


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a section: what becomes a memory.

    Attributes:
        text: Its text.
        section: Where it belongs.
        first, last: Where it begins and ends, in the unit of the document.
        kinds: What it is made of.
        references: The notes and files that it links to.
        tags: The tags that stand in it.
    """

    text: str
    section: Section
    first: int
    last: int
    kinds: frozenset[BlockKind]
    references: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


ReadPassage: TypeAlias = Passage | SkippedPart | Problem | NoteFacts


def passages(blocks: Iterable[Read]) -> Iterator[ReadPassage]:
    """Gather blocks into passages, in order and in the memory of two of them.

    A heading is the beginning of the first passage of its section; code with a title is a section
    of its own. A short rest at the end of a section joins the passage before it.
    """
    gathering = _Gathering()
    for block in blocks:
        if not isinstance(block, Block):
            yield block
            continue
        if block.title:
            yield from gathering.finish()
            gathering.begin(block)
        if block.kind != "heading":
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
        self._outline.append((heading.level, _shorten(heading.title)))
        headings = tuple(title for _, title in self._outline)
        has_title = self._outline[0][0] == 1
        self._section = Section(headings, self._occurrences[headings], has_title)
        self._occurrences[headings] += 1
        if heading.kind == "heading":
            self._add(heading)

    def take(self, block: Block) -> Iterator[Passage]:
        """Add a block, whole or in pieces; return the passages that are full."""
        bound = WHOLE_TOKENS if block.kind in ("code", "table") else PASSAGE_TOKENS
        whole = estimate_tokens(block.text) <= bound
        for part in (block,) if whole else cut(block, PASSAGE_TOKENS):
            tokens = estimate_tokens(part.text)
            if self._has_text() and self._size + tokens > PASSAGE_TOKENS:
                yield from self._finish_passage()
            self._add(part)

    def finish(self) -> Iterator[Passage]:
        """Close the section; return what is left of it."""
        before = sum(estimate_tokens(block.text) for block in self._before)
        if self._before and self._size < _TAIL_TOKENS and before + self._size < _LONGEST_WITH_TAIL:
            self._growing = self._before + self._growing
            self._before = []
        yield from self._finish_passage()
        yield from self._finish_passage()

    def _has_text(self) -> bool:
        return any(block.kind != "heading" for block in self._growing)

    def _add(self, block: Block) -> None:
        self._growing.append(block)
        self._size += estimate_tokens(block.text)

    def _finish_passage(self) -> Iterator[Passage]:
        if self._before:
            yield _make_passage(self._before, self._section)
        self._before, self._growing, self._size = self._growing, [], 0.0


def _make_passage(blocks: list[Block], section: Section) -> Passage:
    text = blocks[0].text
    for before, block in pairwise(blocks):
        text += find_separator(before, block) + block.text
    first, last = blocks[0].first, blocks[-1].last
    kinds = frozenset(block.kind for block in blocks)
    return Passage(text.strip("\n").rstrip(), section, first, last, kinds)


def find_separator(before: Block, after: Block) -> str:
    """Return what stands between two blocks of one passage."""
    are_verbatim = before.verbatim and after.verbatim
    if not after.continues:
        return "\n" if are_verbatim and after.first == before.last + 1 else "\n\n"
    if (are_verbatim and after.first > before.last) or after.kind in ("code", "table", "list"):
        return "\n"
    return "" if is_dense(before.text[-1]) and is_dense(after.text[0]) else " "


def _shorten(title: str) -> str:
    words = " ".join(title.split())
    return words if len(words) <= _LONGEST_TITLE else words[: _LONGEST_TITLE - 1] + "…"


# Which passages answer no question, and why.
#
# Memory-Spark scores passages and drops those below .3, which also drops every text that is not in
# Latin letters. Here a passage is left out for a reason that can be named, whatever its script.

_WORD = re.compile(rf"[{DENSE}]|(?:(?![{DENSE}])\w)+")
_LETTERS_A_WORD = 8
"""Thai, Khmer and others write no blanks: a longer run counts as several words."""
_FEWEST_WORDS = 2
_LEAST_MEANING = 0.3
"""Least share of letters and digits among the characters that are not blank."""
_LEADER = re.compile(r".*?(?:\.\s?){4,}\s*\d{1,5}\s*")
_LONGEST_BOILERPLATE = 400
_BOILERPLATE = re.compile(
    r"all rights reserved|alle rechte vorbehalten|tous droits réservés"
    r"|this page (?:is )?intentionally left blank|diese seite .{0,20}absichtlich leer"
    r"|(?:we|this (?:web)?site) uses? cookies"
    r"|(?:wir|diese (?:web)?seite) (?:verwende[nt]|nutz(?:en|t)) cookies"
    r"|(?:accept|allow) all cookies|alle cookies (?:akzeptieren|zulassen)"
    r"|skip to (?:main )?content|zum (?:haupt)?inhalt springen"
    r"|javascript (?:is disabled|must be enabled)|please enable javascript",
    re.IGNORECASE,
)
_LONG_RUN = re.compile(r"\S{200,}")


def explain_exclusion(passage: Passage, *, name: str = "") -> str | None:
    """Return the reason why a passage is worth no memory; None for one that is kept.

    Two words are enough, the heading's counted: `Wifi: hunter2` is a fact.

    Args:
        passage: The passage.
        name: That of its note, where it stands for a heading; one word or number is a fact then.
    """
    if passage.kinds == {"heading"}:
        return "heading alone"
    text = passage.text
    if not name and is_page_number(text):
        return "page number"
    if _count_words(text) < _FEWEST_WORDS - bool(name):
        return "near-empty"
    may_be_boilerplate = len(text) <= _LONGEST_BOILERPLATE and "heading" not in passage.kinds
    if may_be_boilerplate and _BOILERPLATE.search(text):
        return "boilerplate"
    if "code" not in passage.kinds and (reason := _explain_form(text)):
        return reason
    return "encoded data" if _is_encoded(text) else None


def _count_words(text: str) -> int:
    """Count words, as far as it matters."""
    words = islice(_WORD.finditer(text), _FEWEST_WORDS)
    return sum(1 + len(found[0]) // _LETTERS_A_WORD for found in words)


def _explain_form(text: str) -> str | None:
    lines = [line for line in text.split("\n") if line.strip()]
    leaders = sum(_LEADER.fullmatch(line[:500]) is not None for line in lines)
    if len(lines) > 2 and leaders * 2 > len(lines):
        return "table of contents"
    signs = sum(not sign.isspace() for sign in text)
    meaning = sum(sign.isalnum() for sign in text)
    return "mostly punctuation" if meaning < _LEAST_MEANING * signs else None


def _is_encoded(text: str) -> bool:
    """Whether most of it is runs without blanks, as base64 is; ideograms have none either."""
    runs = [run for run in _LONG_RUN.findall(text) if run.isascii()]
    return sum(len(run) for run in runs) * 2 > len(text)


def read_document(path: Path, reader: Reader, settings: ReadingSettings) -> Iterator[ReadPassage]:
    """Read the passages of a document in order.

    Yields:
        What it says about itself, passages, what was left out with its reason, and what could not
        be read. One of pages with nothing to read in it yields a problem.

    Raises:
        MissingExtra: `[docs]` is not installed.
    """
    found_any = False
    for found in passages(_read_blocks(path, reader, settings)):
        found_any |= not isinstance(found, NoteFacts)
        if isinstance(found, Passage):
            is_note = reader.name == MARKDOWN
            passage = _read_note_marks(found) if is_note else found
            name = path.stem if is_note and not passage.section.headings else ""
            reason = explain_exclusion(passage, name=name)
            yield passage if reason is None else SkippedPart(reason)
        else:
            yield found
    if not found_any:
        # Text that is not there yet is not an error; pages without any may have lost theirs.
        empty = reader.unit == "line"
        yield SkippedPart("no text in it") if empty else Problem("there is no text in it.")


_HEADING_OR_TAGS = re.compile(r"(?:#{1,6}(?:[ \t].*)?|(?:#[\w/-]+[ \t]*)*)")


def _read_note_marks(passage: Passage) -> Passage:
    """Turn the marks of a vault into words, links and tags."""
    found = read_marks(passage.text)
    titles = tuple(read_marks(title).text for title in passage.section.headings)
    lines = found.text.split("\n")
    if "code" not in passage.kinds and all(map(_HEADING_OR_TAGS.fullmatch, lines)):
        passage = replace(passage, kinds=frozenset({"heading"}))
    section, references = replace(passage.section, headings=titles), found.references
    return replace(
        passage, text=found.text, section=section, references=references, tags=found.tags
    )


def _read_blocks(path: Path, reader: Reader, settings: ReadingSettings) -> Iterator[Read]:
    try:
        yield from reader.read(path, settings)
    except OSError as error:
        yield Problem(f"{error.strerror or error}. Check that it exists and may be read.")
