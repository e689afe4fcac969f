"""PDF, page by page: text, headings from the outline or the size of their letters."""

from __future__ import annotations

import ctypes
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, filterfalse, islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from ekphory.documents.blocks import (
    Block,
    BlockKind,
    NoteFacts,
    Problem,
    Read,
    SkippedPart,
    from_docs_extra,
    is_dense,
)
from ekphory.documents.notes import read_date
from ekphory.documents.settings import PageReader, Picture, ReadingSettings
from ekphory.errors import MissingExtra, ServiceError

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage, PdfTextPage


_NUMBER = re.compile(
    r"(?:(?:page|seite|pagina|página|стр|pág|pag|p|s)\.?\s?)?[-–—\s]{0,5}\d{1,5}"
    r"(?:\s?(?:of|von|de|di|sur|из|/)\s?\d{1,5})?[-–—\s]{0,5}",
    re.IGNORECASE,
)


def is_page_number(line: str) -> bool:
    """Whether a line is a page number alone: `7`, `- 7 -`, `Page 7 of 12`."""
    return _NUMBER.fullmatch(line.strip()) is not None


# A page as PDFium gives it

HYPHEN = "\u00ad"
"""Stands at the end of a line where a word goes on in the next."""
_PDFIUM_HYPHENS = ("\x02", "\ufffe")
_POINTS_AN_INCH = 72
_DOTS_AN_INCH = 200
_MOST_DOTS = 4_000
"""Of a side; larger pages are shown smaller, so that a page of any size takes bounded memory."""


@dataclass(frozen=True, slots=True)
class PageLine:
    """A line of text on a page.

    Attributes:
        text: Its text without blanks at the ends, never empty.
        size: Height of its font in points, to half a point.
        place: How far up the page it stands: 0 at the bottom, 1 at the top.
    """

    text: str
    size: float
    place: float


def read_page_lines(textpage: PdfTextPage, height: float) -> list[PageLine]:
    """Return the lines in the order in which the page draws them."""
    with from_docs_extra("Reading PDF files"):
        from pypdfium2 import raw
    count = textpage.count_chars()
    signs = [chr(raw.FPDFText_GetUnicode(textpage, place)) for place in range(count)]
    lines: list[PageLine] = []
    begun = 0
    for end in [*(place for place, sign in enumerate(signs) if sign == "\n"), count]:
        if text := _clean("".join(signs[begun:end])):
            blanks = next(place for place in range(begun, end) if not signs[place].isspace())
            size, bottom = _measure(textpage, blanks)
            lines.append(PageLine(text, size, bottom / height if height > 0 else 0.0))
        begun = end + 1
    return lines


def _measure(textpage: PdfTextPage, place: int) -> tuple[float, float]:
    from pypdfium2 import raw

    box = raw.FS_RECTF()
    if not raw.FPDFText_GetLooseCharBox(textpage, place, ctypes.byref(box)):
        return 0.0, 0.0
    return round((box.top - box.bottom) * 2) / 2, box.bottom


def _clean(text: str) -> str:
    """Drop what no text may hold: control characters, and halves of surrogate pairs."""
    for hyphen in _PDFIUM_HYPHENS:
        text = text.replace(hyphen, HYPHEN)
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return "".join(sign for sign in whole if sign.isprintable() or sign == HYPHEN).strip()


def has_objects(page: PdfPage, *kinds: Literal["picture", "drawing"]) -> bool:
    """Whether there is something of these kinds on the page."""
    from pypdfium2 import raw

    numbers = {"picture": raw.FPDF_PAGEOBJ_IMAGE, "drawing": raw.FPDF_PAGEOBJ_PATH}
    return any(page.get_objects(filter=[numbers[kind] for kind in kinds], max_depth=4))


def draw_page(page: PdfPage) -> Picture:
    """Draw the page at 200 dots an inch, or fewer where that would be more than 4,000 a side."""
    longest = max(page.get_size()) or 1.0
    scale = min(_DOTS_AN_INCH / _POINTS_AN_INCH, _MOST_DOTS / longest)
    with closing(page.render(scale=scale, rev_byteorder=True, prefer_bgrx=False)) as bitmap:
        drawn = bitmap.to_numpy()
        if drawn.ndim == 2 or drawn.shape[2] == 1:
            drawn = np.repeat(drawn.reshape(*drawn.shape[:2], 1), 3, axis=2)
        return np.array(drawn[:, :, :3], np.uint8)


# Lines into blocks: a line that fills the page goes on in the next

_FULL = 0.75
"""Share of a long line's length from which a line is taken as wrapped."""
_LONG_RANK = 0.9
_ITEM = re.compile(r"(?:[•‣▪◦●○■–*]|[-](?=\s)|\d{1,3}[.)](?=\s)|[a-z]\)(?=\s))\s*")
_ENDS_A_SENTENCE = re.compile(r"[.!?…:。！？：][\"'”’»)\]」』）]*$")


def join_lines(lines: Sequence[str], page: int) -> Iterator[Block]:
    """Join lines into blocks.

    Args:
        lines: Lines of a page, none of them blank.
        page: Its number, from 1.
    """
    lengths = sorted(map(len, lines))
    full = lengths[int(len(lengths) * _LONG_RANK)] * _FULL if lengths else 0.0
    held, kind, before = "", _find_kind(lines[0]) if lines else "paragraph", ""
    for line in lines:
        starts_item = _ITEM.match(line) is not None
        joint = _find_joint(before, line, full, starts_item=starts_item, in_list=kind == "list")
        if joint is None:
            yield Block(held, kind, page, page)
            held, kind = line, _find_kind(line)
        else:
            held = held.removesuffix(HYPHEN) + joint + line
        before = line
    if held:
        yield Block(held.replace(HYPHEN, ""), kind, page, page)


def _find_kind(line: str) -> BlockKind:
    return "list" if _ITEM.match(line) else "paragraph"


def _find_joint(
    before: str, line: str, full: float, *, starts_item: bool, in_list: bool
) -> str | None:
    """Return what stands between two lines; None where a new block begins."""
    if not before or before.endswith(HYPHEN):
        return ""
    if starts_item:
        return "\n" if in_list else None
    if len(before) >= full:
        return "" if is_dense(before[-1]) and is_dense(line[0]) else " "
    return None if in_list or _ENDS_A_SENTENCE.search(before) else "\n"


# What is the same on all pages

Page = Sequence[PageLine]

_MARGIN = 0.1
"""Share of the page's height at its top and bottom where running titles stand."""
_FEWEST_PAGES = 3
_LEAST_SHARE = 0.5
_LARGER = 1.15
_LONGEST_HEADING = 120
_MOST_LEVELS = 6
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Layout:
    """What is the same on all pages.

    Attributes:
        body: Size of running text in points.
        running: Lines that come back in the margins, numbers as `#`.
        heading_sizes: Sizes of headings in points, largest first.
    """

    body: float = 0.0
    running: frozenset[str] = frozenset()
    heading_sizes: tuple[float, ...] = ()

    def is_running(self, line: PageLine) -> bool:
        """Whether a line is a running title or a page number."""
        if not _is_in_margin(line):
            return False
        return is_page_number(line.text) or _make_key(line, self.body) in self.running

    def heading_level(self, line: PageLine) -> int | None:
        """Return the level of a heading, 1 for the largest; None for running text."""
        if line.size not in self.heading_sizes or not _may_be_heading(line):
            return None
        return self.heading_sizes.index(line.size) + 1


def find_layout(pages: Sequence[Page]) -> Layout:
    """Find what is the same on the pages of a sample."""
    letters: Counter[float] = Counter()
    for line in chain.from_iterable(pages):
        letters[line.size] += len(line.text)
    body = letters.most_common(1)[0][0] if letters else 0.0
    keys = ({_make_key(line, body) for line in page if _is_in_margin(line)} for page in pages)
    counts = Counter(chain.from_iterable(keys))
    least = max(_FEWEST_PAGES, len(pages) * _LEAST_SHARE)
    layout = Layout(body, frozenset(key for key, count in counts.items() if count >= least))
    lines = filterfalse(layout.is_running, chain.from_iterable(pages))
    sizes = {line.size for line in lines if line.size >= body * _LARGER and _may_be_heading(line)}
    return replace(layout, heading_sizes=tuple(sorted(sizes, reverse=True)[:_MOST_LEVELS]))


def _may_be_heading(line: PageLine) -> bool:
    has_letters = any(sign.isalpha() for sign in line.text)
    return has_letters and len(line.text) <= _LONGEST_HEADING and not line.text.endswith((".", ","))


def _is_in_margin(line: PageLine) -> bool:
    return line.place < _MARGIN or line.place > 1 - _MARGIN


def _make_key(line: PageLine, body: float) -> str:
    """Return what is the same about a running title; `Chapter 7` in large letters is none."""
    return line.text if line.size >= body * _LARGER else _DIGITS.sub("#", line.text)


# Reading a file

_SAMPLED_PAGES = 40
_FEWEST_SIGNS = 16
"""A page with fewer, and a picture, is a scanned one."""
_MOST_BOOKMARKS = 10_000
_WRONG_PASSWORD = 4
_ENDS = (".", "!", "?", ":", "。", "！", "？")
_DATE = re.compile(r"(?:D:)?(?P<date>\d{8})(?P<time>\d{4}(?:\d\d)?)?(?P<zone>[+-]\d\d'?\d\d)?")
Outline = dict[int, list[tuple[int, str]]]
"""Level and title of the bookmarks by page, from 0."""


def read_pdf(path: Path, settings: ReadingSettings) -> Iterator[Read]:
    """Read a PDF; one page is in memory at a time."""
    with from_docs_extra("Reading PDF files"):
        from pypdfium2 import PdfDocument, PdfiumError
    try:
        document = PdfDocument(path)
    except PdfiumError as error:
        yield _explain_refusal(error)
        return
    with closing(document):
        if len(document) == 0:
            yield Problem("the PDF has no pages. Save it again from its source.")
            return
        if created := _read_creation_date(document):
            yield NoteFacts(dates={"created": created})
        yield from _Reading(document, settings.page_reader).blocks()


def _read_creation_date(document: PdfDocument) -> datetime | None:
    """Return when a PDF says that it was made, as in `D:20260102030405+01'00'`; in UTC without."""
    found = _DATE.match(document.get_metadata_dict().get("CreationDate", ""))
    if found is None:
        return None
    date, time, zone = found["date"], (found["time"] or "").ljust(6, "0"), found["zone"] or ""
    return read_date(f"{date}T{time}{zone.replace(chr(39), '')}")


def _explain_refusal(error: Exception) -> Problem:
    if getattr(error, "err_code", None) == _WRONG_PASSWORD:
        return Problem("the PDF is protected by a password. Save it without one.")
    return Problem(f"not a readable PDF ({_read_reason(error)}). Save it again from its source.")


def _read_reason(error: Exception) -> str:
    return str(error).removesuffix(".")


class _Reading:
    """One PDF that is being read."""

    def __init__(self, document: PdfDocument, page_reader: PageReader | None) -> None:
        self._document = document
        self._page_reader = page_reader
        self._outline = _read_outline(document)
        self._layout = find_layout(self._read_sample())
        self._ends_open = False

    def blocks(self) -> Iterator[Read]:
        for place in range(len(self._document)):
            yield from self._read_page(place)

    def _read_sample(self) -> list[Page]:
        """Read pages that are spread evenly; those that cannot be read are told of later."""
        step = max(1, len(self._document) // _SAMPLED_PAGES)
        read = (self._read_lines(place) for place in range(0, len(self._document), step))
        return [lines for lines in read if not isinstance(lines, Problem)]

    def _read_lines(self, place: int) -> list[PageLine] | Problem:
        from pypdfium2 import PdfiumError

        try:
            with closing(self._document[place]) as page, closing(page.get_textpage()) as textpage:
                return read_page_lines(textpage, page.get_height())
        except PdfiumError as error:
            return _describe_unreadable(error, place)

    def _read_page(self, place: int) -> Iterator[Read]:
        lines = self._read_lines(place)
        if isinstance(lines, Problem):
            yield lines
            return
        kept = [line for line in lines if not self._layout.is_running(line)]
        for _ in range(len(lines) - len(kept)):
            yield SkippedPart("running title or page number")
        if sum(len(line.text) for line in kept) >= _FEWEST_SIGNS:
            yield from self._join_sentences(self._make_blocks(kept, place))
            return
        scanned = self._read_scanned(place, kept)
        yield from self._make_blocks(kept, place) if scanned is None else scanned

    def _read_scanned(self, place: int, lines: Sequence[PageLine]) -> list[Read] | None:
        """Read a page that is a picture, or drawn without letters; None where it is neither."""
        from pypdfium2 import PdfiumError

        try:
            with closing(self._document[place]) as page:
                if not has_objects(page, "picture", *(() if lines else ("drawing",))):
                    return None
                if self._page_reader is None:
                    return [SkippedPart("scanned page"), *self._make_blocks(lines, place)]
                return list(_read_picture(page, self._page_reader, place + 1))
        except PdfiumError as error:
            return [_describe_unreadable(error, place)]

    def _make_blocks(self, lines: Sequence[PageLine], place: int) -> Iterator[Block]:
        number = place + 1
        bookmarks = list(self._outline.get(place, ()))
        found = {_strip_signs(line.text) for line in lines}
        for level, title in bookmarks:
            if _strip_signs(title) not in found:
                yield Block(title, "heading", number, number, level=level, title=title)
        held: list[str] = []
        titles = {_strip_signs(title): level for level, title in bookmarks}
        for heading, text in _find_headings(lines, self._layout, titles if self._outline else None):
            if heading is None:
                held.append(text)
                continue
            yield from join_lines(held, number)
            held = []
            yield Block(text, "heading", number, number, level=heading, title=text)
        yield from join_lines(held, number)

    def _join_sentences(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """Let a sentence go on over the end of a page."""
        for place, block in enumerate(blocks):
            goes_on = place == 0 and self._ends_open and _starts_within_a_sentence(block)
            yield replace(block, continues=True) if goes_on else block
            self._ends_open = block.kind == "paragraph" and not block.text.endswith(_ENDS)


def _describe_unreadable(error: Exception, place: int) -> Problem:
    reason = f"the page cannot be read ({_read_reason(error)})"
    return Problem(f"{reason}. Save the PDF again from its source.", place + 1)


def _read_picture(page: PdfPage, reader: PageReader, number: int) -> Iterator[Read]:
    try:
        text = reader.read(draw_page(page))
    except (MissingExtra, ServiceError) as error:
        yield Problem(str(error), number)
        return
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    yield from join_lines(lines, number)


def _find_headings(
    lines: Sequence[PageLine], layout: Layout, titles: dict[str, int] | None
) -> Iterator[tuple[int | None, str]]:
    """Return each line with its level as a heading; lines of one heading are put together.

    Args:
        lines: Those of a page.
        layout: Says by their size which are headings, where there are no bookmarks.
        titles: Level of each bookmark of the page; None for a document without bookmarks.
    """
    open_level, open_text = None, ""
    for line in lines:
        by_size = layout.heading_level(line) if titles is None else None
        level = by_size or (titles or {}).get(_strip_signs(line.text))
        if by_size is not None and by_size == open_level:
            open_text = f"{open_text} {line.text}"
            continue
        if open_level is not None:
            yield open_level, open_text
        open_level, open_text = level, line.text
        if level is None:
            yield None, line.text
    if open_level is not None:
        yield open_level, open_text


def _read_outline(document: PdfDocument) -> Outline:
    outline: Outline = defaultdict(list)
    for bookmark in islice(document.get_toc(), _MOST_BOOKMARKS + 1):
        destination = bookmark.get_dest()
        page = None if destination is None else destination.get_index()
        title = " ".join(bookmark.get_title().split())
        if page is not None and title:
            outline[page].append((bookmark.level + 1, title))
    return dict(outline)


def _starts_within_a_sentence(block: Block) -> bool:
    return block.kind == "paragraph" and (block.text[0].islower() or is_dense(block.text[0]))


def _strip_signs(title: str) -> str:
    """Return the letters and digits alone, so that blanks and dots make no difference."""
    return "".join(sign for sign in title.casefold() if sign.isalnum())
