"""Makes small documents: PDFs with reportlab, scanned pages with Pillow, Word files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen import canvas

from ekphory.documents.passages import Passage, read_document
from ekphory.documents.settings import ReadingSettings
from ekphory.documents.tree import find_reader

A4 = (595, 842)


def read(path: Path, settings: ReadingSettings | None = None) -> list:
    """Read a document to the end."""
    reader = find_reader(path)
    assert reader is not None
    return list(read_document(path, reader, settings or ReadingSettings()))


def passages_of(path: Path, settings: ReadingSettings | None = None) -> list[Passage]:
    return [found for found in read(path, settings) if isinstance(found, Passage)]


class PdfMaker:
    """Draws pages: a line with its size of letters, from the top down."""

    def __init__(self, path: Path, password: str | None = None) -> None:
        self.path = path
        self._canvas = canvas.Canvas(str(path), pagesize=A4, encrypt=password)
        self._page = 0

    def page(
        self,
        *lines: str | tuple[str, int],
        header: str = "",
        footer: str = "",
        bookmarks: Sequence[tuple[int, str]] = (),
    ) -> PdfMaker:
        """Add a page; a line is 11 points high where it does not say."""
        height = 700
        for line in lines:
            text, size = line if isinstance(line, tuple) else (line, 11)
            self._draw(text, size, height)
            height -= size + 6
        self._draw(header, 9, 815)
        self._draw(footer, 9, 25)
        for level, title in bookmarks:
            self._canvas.bookmarkPage(f"{self._page} {title}")
            self._canvas.addOutlineEntry(title, f"{self._page} {title}", level)
        return self._end()

    def scan(self, *lines: str) -> PdfMaker:
        """Add a page that is a picture of these lines."""
        picture = Image.new("RGB", (1240, 1754), "white")
        pen, font = ImageDraw.Draw(picture), ImageFont.load_default(size=36)
        for number, line in enumerate(lines):
            pen.text((120, 150 + 70 * number), line, fill="black", font=font)
        self._canvas.drawImage(ImageReader(picture), 0, 0, *A4)
        return self._end()

    def save(self) -> Path:
        self._canvas.save()
        return self.path

    def _draw(self, text: str, size: int, height: int) -> None:
        self._canvas.setFont("Helvetica", size)
        self._canvas.drawString(72, height, text)

    def _end(self) -> PdfMaker:
        self._canvas.showPage()
        self._page += 1
        return self
