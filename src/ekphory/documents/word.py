"""Word (.docx): headings, paragraphs, lists and tables of the body, tracked changes accepted."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ekphory.documents.blocks import Block, NoteFacts, Problem, Read, SkippedPart, from_docs_extra
from ekphory.documents.settings import ReadingSettings

if TYPE_CHECKING:
    from docx.document import Document

LARGEST_UNPACKED = 256 * 2**20
"""Most bytes of a file when it is unpacked: a small archive may hold any amount."""
_OLD_OFFICE = bytes.fromhex("d0cf11e0a1b11ae1")
_SAVE_AGAIN = "Open it in a word processor and save it again as .docx."
# Content controls wrap parts of the body.
_BODY = "./w:p | ./w:tbl | ./w:sdt/w:sdtContent/w:p | ./w:sdt/w:sdtContent/w:tbl"
_SIGNS = (
    ".//w:r/*[self::w:t or self::w:tab or self::w:br or self::w:cr or self::w:noBreakHyphen]"
    "[not(ancestor::*[local-name()='Fallback' or local-name()='moveFrom'])]"
)
_BLANKS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_DEEPEST_STYLE = 10
_OF_THE_TEMPLATE = datetime(2013, 12, 23, 23, 15, tzinfo=UTC)
"""What python-docx says of every file that is made by it and not dated."""


def read_word(path: Path, _settings: ReadingSettings) -> Iterator[Read]:
    """Read the body of a .docx file; headers, footers, footnotes and comments are not read."""
    problem = _find_problem(path)
    if problem is not None:
        yield problem
        return
    with from_docs_extra("Reading Word files"):
        import docx
        from docx.opc.exceptions import PackageNotFoundError
        from lxml.etree import LxmlError
    try:
        document = docx.Document(str(path))
        blocks = list(_read_blocks(document))
        created = document.core_properties.created
    except (
        *(PackageNotFoundError, LxmlError, zipfile.BadZipFile, zlib.error, OSError),
        *(KeyError, ValueError, AttributeError, TypeError, NotImplementedError),
    ) as error:
        reason = f"{type(error).__name__}: {error}"
        yield Problem(f"not a readable .docx file ({reason}). {_SAVE_AGAIN}")
        return
    if created is not None and created.replace(tzinfo=UTC) != _OF_THE_TEMPLATE:
        yield NoteFacts(dates={"created": created.replace(tzinfo=UTC)})
    yield from blocks


def _find_problem(path: Path) -> Problem | None:
    with path.open("rb") as stream:
        opening = stream.read(len(_OLD_OFFICE))
    if not opening:
        return Problem("the file is empty. Delete it, or write something into it.")
    if opening == _OLD_OFFICE:
        problem = "protected by a password, or an old .doc file"
        return Problem(f"{problem}. Save it as .docx without one.")
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        return Problem(f"not a readable .docx file ({error}). {_SAVE_AGAIN}")
    if size > LARGEST_UNPACKED:
        most = f"more than the {LARGEST_UNPACKED // 2**20} MB that are read"
        return Problem(f"unpacked it has {size / 2**20:,.0f} MB, {most}. Split it.")
    return None


def _read_blocks(document: Document) -> Iterator[Read]:
    levels = _Styles(document)
    items: list[str] = []
    for number, element in enumerate(document.element.body.xpath(_BODY), start=1):
        is_table = element.tag.endswith("}tbl")
        text = _read_table(element) if is_table else _read_text(element)
        style = "" if is_table else levels.find_name(element)
        if text and not is_table and _is_item(element, style):
            items.append(f"- {text}")
            continue
        if items:
            yield Block("\n".join(items), "list", number - len(items), number - 1)
            items = []
        level = _read_heading_level(style)
        if text and style.lower().startswith("toc"):
            yield SkippedPart("table of contents")
        elif text and level is not None:
            title = " ".join(text.split())
            yield Block(title, "heading", number, number, level=level, title=title)
        elif text:
            yield Block(text, "table" if is_table else "paragraph", number, number)
    if items:
        yield Block("\n".join(items), "list", number - len(items) + 1, number)


class _Styles:
    """The styles of a document by id, each as the built-in name that it is or comes from."""

    def __init__(self, document: Document) -> None:
        self._styles = {style.style_id: style for style in document.styles}

    def find_name(self, paragraph: Any) -> str:  # noqa: ANN401  an element of python-docx
        """Return the name of a paragraph's style, a heading's where it is derived from one."""
        style = self._styles.get(paragraph.style)
        own = str(getattr(style, "name", "") or "")
        for _ in range(_DEEPEST_STYLE):
            name = str(getattr(style, "name", "") or "")
            if _read_heading_level(name) is not None:
                return name
            style = getattr(style, "base_style", None)
        return own


def _read_heading_level(style: str) -> int | None:
    """Return the level of a heading: 0 for the title of the document."""
    name, _, number = style.rpartition(" ")
    if style == "Title":
        return 0
    return int(number) if name == "Heading" and number.isdecimal() else None


def _is_item(paragraph: Any, style: str) -> bool:  # noqa: ANN401  an element of python-docx
    numbered = bool(paragraph.xpath("./w:pPr/w:numPr"))
    return _read_heading_level(style) is None and (numbered or style.startswith("List "))


def _read_text(element: Any) -> str:  # noqa: ANN401  an element of python-docx
    signs = element.xpath(_SIGNS)
    parts = (_BLANKS.get(sign.tag.rpartition("}")[2], sign.text or "") for sign in signs)
    return "".join(parts).strip()


def _read_table(table: Any) -> str:  # noqa: ANN401  an element of python-docx
    rows = ([_read_cell(cell) for cell in row.xpath("./w:tc")] for row in table.xpath("./w:tr"))
    return "\n".join(" | ".join(cells) for cells in rows if any(cells))


def _read_cell(cell: Any) -> str:  # noqa: ANN401  an element of python-docx
    paragraphs = (" ".join(_read_text(entry).split()) for entry in cell.xpath(".//w:p"))
    return " ".join(text for text in paragraphs if text)
