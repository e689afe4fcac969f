"""Which reader reads which file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from ekphory.documents.blocks import Read, Unit
from ekphory.documents.html import read_html
from ekphory.documents.markdown import read_markdown
from ekphory.documents.pdf import read_pdf
from ekphory.documents.plain_text import read_plain_text
from ekphory.documents.restructured_text import read_restructured_text
from ekphory.documents.settings import ReadingSettings
from ekphory.documents.word import read_word
from ekphory.errors import MissingExtra

READING_VERSION = 1
"""Raised when documents are read or cut in another way, so that they are read anew."""


@dataclass(frozen=True, slots=True)
class Reader:
    """How one kind of file is read.

    Attributes:
        name: The kind, for people.
        suffixes: Ends of the names of such files, in lower case.
        unit: What places in it are counted in.
        read: Gives its blocks in order.
        needs: Names of modules that `[docs]` installs.
    """

    name: str
    suffixes: tuple[str, ...]
    unit: Unit
    read: Callable[[Path, ReadingSettings], Iterator[Read]]
    needs: tuple[str, ...] = ()

    def missing_extra(self) -> MissingExtra | None:
        """Give the error of a reader whose modules are not installed."""
        if all(find_spec(module) is not None for module in self.needs):
            return None
        return MissingExtra("docs", f"Reading {self.name} files")


READERS = (
    Reader("Markdown", (".md", ".markdown"), "line", read_markdown, ("markdown_it",)),
    Reader("text", (".txt",), "line", read_plain_text),
    Reader("reStructuredText", (".rst",), "line", read_restructured_text),
    Reader("PDF", (".pdf",), "page", read_pdf, ("pypdfium2",)),
    Reader("Word", (".docx",), "paragraph", read_word, ("docx", "lxml")),
    Reader("HTML", (".html", ".htm"), "line", read_html, ("lxml",)),
)
_BY_SUFFIX = {suffix: reader for reader in READERS for suffix in reader.suffixes}
DOCUMENT_SUFFIXES = tuple(_BY_SUFFIX)


def reader_for(path: Path) -> Reader | None:
    """Give the reader of a file, by the end of its name; None for what is no document."""
    return _BY_SUFFIX.get(path.suffix.lower())
