"""PDF, page by page: text, headings from the outline or the size of the letters, scanned pages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ekphory.documents.blocks import Block, LeftOut, Problem, Read
from ekphory.documents.extra import from_docs_extra
from ekphory.documents.page_reader import PageReader
from ekphory.documents.page_text import blocks_of_page
from ekphory.documents.pdf_layout import Layout, layout_of
from ekphory.documents.pdf_page import PageLine, lines_of_page, picture_of, shows
from ekphory.documents.settings import ReadingSettings
from ekphory.documents.tokens import is_dense
from ekphory.errors import MissingExtra, ServiceError

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage

_SAMPLED_PAGES = 40
_FEWEST_SIGNS = 16
"""A page with fewer, and a picture, is a scanned one."""
_MOST_BOOKMARKS = 10_000
_WRONG_PASSWORD = 4
_ENDS = (".", "!", "?", ":", "。", "！", "？")
Outline = dict[int, list[tuple[int, str]]]
"""Level and title of the bookmarks by page, from 0."""


def read_pdf(path: Path, settings: ReadingSettings) -> Iterator[Read]:
    """Read a PDF; one page is in memory at a time."""
    with from_docs_extra("Reading PDF files"):
        from pypdfium2 import PdfDocument, PdfiumError
    try:
        document = PdfDocument(path)
    except PdfiumError as error:
        yield _why_closed(error)
        return
    with closing(document):
        if len(document) == 0:
            yield Problem("the PDF has no pages. Save it again from its source.")
            return
        yield from _Reading(document, settings.page_reader).blocks()


def _why_closed(error: Exception) -> Problem:
    if getattr(error, "err_code", None) == _WRONG_PASSWORD:
        return Problem("the PDF is protected by a password. Save it without one.")
    return Problem(f"not a readable PDF ({_reason(error)}). Save it again from its source.")


def _reason(error: Exception) -> str:
    return str(error).removesuffix(".")


class _Reading:
    """One PDF that is being read."""

    def __init__(self, document: PdfDocument, page_reader: PageReader | None) -> None:
        self._document = document
        self._page_reader = page_reader
        self._outline = _outline(document)
        self._layout = layout_of(self._sample())
        self._ends_open = False

    def blocks(self) -> Iterator[Read]:
        for place in range(len(self._document)):
            yield from self._page(place)

    def _sample(self) -> list[tuple[PageLine, ...]]:
        """Read pages that are spread evenly; those that cannot be read are told of later."""
        step = max(1, len(self._document) // _SAMPLED_PAGES)
        read = (self._lines(place) for place in range(0, len(self._document), step))
        return [lines for lines in read if not isinstance(lines, Problem)]

    def _lines(self, place: int) -> tuple[PageLine, ...] | Problem:
        from pypdfium2 import PdfiumError

        try:
            with closing(self._document[place]) as page:
                return lines_of_page(page)
        except PdfiumError as error:
            return _unreadable_page(error, place)

    def _page(self, place: int) -> Iterator[Read]:
        lines = self._lines(place)
        if isinstance(lines, Problem):
            yield lines
            return
        kept = [line for line in lines if not self._layout.is_running(line)]
        for _ in range(len(lines) - len(kept)):
            yield LeftOut("running title or page number")
        if sum(len(line.text) for line in kept) >= _FEWEST_SIGNS:
            yield from self._joined(self._text_blocks(kept, place))
            return
        scanned = self._scanned(place, kept)
        if scanned is None:
            yield from self._text_blocks(kept, place)
        else:
            yield from scanned

    def _scanned(self, place: int, lines: Sequence[PageLine]) -> list[Read] | None:
        """Read a page that is a picture, or drawn without letters; None where it is neither."""
        from pypdfium2 import PdfiumError

        try:
            with closing(self._document[place]) as page:
                return self._picture(page, lines, place)
        except PdfiumError as error:
            return [_unreadable_page(error, place)]

    def _picture(self, page: PdfPage, lines: Sequence[PageLine], place: int) -> list[Read] | None:
        if not (shows(page, "picture") if lines else shows(page, "picture", "drawing")):
            return None
        if self._page_reader is None:
            return [LeftOut("scanned page"), *self._text_blocks(lines, place)]
        return list(_read_picture(page, self._page_reader, place + 1))

    def _text_blocks(self, lines: Sequence[PageLine], place: int) -> Iterator[Block]:
        number = place + 1
        bookmarks = list(self._outline.get(place, ()))
        found = {_plain(line.text) for line in lines}
        for level, title in bookmarks:
            if _plain(title) not in found:
                yield Block(title, "heading", number, number, level=level, title=title)
        held: list[str] = []
        for heading, text in _headed(
            lines, self._layout, bookmarks, has_outline=bool(self._outline)
        ):
            if heading is None:
                held.append(text)
                continue
            yield from blocks_of_page(held, number)
            held = []
            yield Block(text, "heading", number, number, level=heading, title=text)
        yield from blocks_of_page(held, number)

    def _joined(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """Let a sentence go on over the end of a page."""
        for place, block in enumerate(blocks):
            goes_on = place == 0 and self._ends_open and _starts_within_a_sentence(block)
            yield replace(block, continues=True) if goes_on else block
            self._ends_open = block.kind == "paragraph" and not block.text.endswith(_ENDS)


def _unreadable_page(error: Exception, place: int) -> Problem:
    reason = f"the page cannot be read ({_reason(error)})"
    return Problem(f"{reason}. Save the PDF again from its source.", place + 1)


def _read_picture(page: PdfPage, reader: PageReader, number: int) -> Iterator[Read]:
    try:
        text = reader.read(picture_of(page))
    except (MissingExtra, ServiceError) as error:
        yield Problem(str(error), number)
        return
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    yield from blocks_of_page(lines, number)


def _headed(
    lines: Sequence[PageLine],
    layout: Layout,
    bookmarks: list[tuple[int, str]],
    *,
    has_outline: bool,
) -> Iterator[tuple[int | None, str]]:
    """Give each line with its level as a heading; lines of one heading are put together."""
    titles = {_plain(title): level for level, title in bookmarks}
    open_level, open_text = None, ""
    for line in lines:
        level = titles.get(_plain(line.text)) if has_outline else layout.heading_level(line)
        if level is not None and level == open_level and not has_outline:
            open_text = f"{open_text} {line.text}"
            continue
        if open_level is not None:
            yield open_level, open_text
        open_level, open_text = level, line.text
        if level is None:
            yield None, line.text
    if open_level is not None:
        yield open_level, open_text


def _outline(document: PdfDocument) -> Outline:
    outline: Outline = defaultdict(list)
    for count, bookmark in enumerate(document.get_toc()):
        destination = bookmark.get_dest()
        page = None if destination is None else destination.get_index()
        title = " ".join(bookmark.get_title().split())
        if page is not None and title:
            outline[page].append((bookmark.level + 1, title))
        if count == _MOST_BOOKMARKS:
            break
    return dict(outline)


def _starts_within_a_sentence(block: Block) -> bool:
    return block.kind == "paragraph" and (block.text[0].islower() or is_dense(block.text[0]))


def _plain(title: str) -> str:
    """Give the letters and digits alone, so that blanks and dots make no difference."""
    return "".join(sign for sign in title.casefold() if sign.isalnum())
