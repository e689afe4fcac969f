"""One page of a PDF as PDFium gives it: its lines with their places, or a picture of it."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from ekphory.documents.extra import from_docs_extra
from ekphory.documents.page_reader import Picture

if TYPE_CHECKING:
    from pypdfium2 import PdfPage, PdfTextPage

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


def lines_of_page(page: PdfPage) -> tuple[PageLine, ...]:
    """Give the lines in the order in which the page draws them."""
    textpage = page.get_textpage()
    try:
        return tuple(_lines(textpage, page.get_height()))
    finally:
        textpage.close()


def _lines(textpage: PdfTextPage, height: float) -> list[PageLine]:
    with from_docs_extra("Reading PDF files"):
        from pypdfium2 import raw
    count = textpage.count_chars()
    signs = [chr(raw.FPDFText_GetUnicode(textpage, place)) for place in range(count)]
    lines: list[PageLine] = []
    begun = 0
    for end in [*(place for place, sign in enumerate(signs) if sign == "\n"), count]:
        text = _clean("".join(signs[begun:end]))
        if text:
            blanks = next(place for place in range(begun, end) if not signs[place].isspace())
            size, bottom = _size_and_bottom(textpage, blanks)
            lines.append(PageLine(text, size, bottom / height if height > 0 else 0.0))
        begun = end + 1
    return lines


def _size_and_bottom(textpage: PdfTextPage, place: int) -> tuple[float, float]:
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


def shows(page: PdfPage, *kinds: Literal["picture", "drawing"]) -> bool:
    """Whether there is something of these kinds on the page."""
    from pypdfium2 import raw

    numbers = {"picture": raw.FPDF_PAGEOBJ_IMAGE, "drawing": raw.FPDF_PAGEOBJ_PATH}
    return any(page.get_objects(filter=[numbers[kind] for kind in kinds], max_depth=4))


def picture_of(page: PdfPage) -> Picture:
    """Draw the page at 200 dots an inch, or fewer where that would be more than 4,000 a side."""
    longest = max(page.get_size()) or 1.0
    scale = min(_DOTS_AN_INCH / _POINTS_AN_INCH, _MOST_DOTS / longest)
    bitmap = page.render(scale=scale, rev_byteorder=True, prefer_bgrx=False)
    try:
        drawn = bitmap.to_numpy()
        if drawn.ndim == 2 or drawn.shape[2] == 1:
            drawn = np.repeat(drawn.reshape(*drawn.shape[:2], 1), 3, axis=2)
        return np.array(drawn[:, :, :3], np.uint8)
    finally:
        bitmap.close()
