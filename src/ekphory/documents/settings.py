"""How documents are read."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from ekphory.documents.page_reader import PageReader
from ekphory.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingSettings:
    """How documents are read.

    Attributes:
        encoding: Of text files that are neither UTF-8 nor carry a byte order mark; None refuses
            them.
        page_reader: Reads pages that are pictures; None passes them over.
    """

    encoding: str | None = None
    page_reader: PageReader | None = None

    def __post_init__(self) -> None:
        if self.encoding is None:
            return
        try:
            codecs.lookup(self.encoding)
        except (LookupError, ValueError) as error:
            raise InvalidInput(
                "encoding", self.encoding, "no such encoding", "Give one like cp1252 or utf-16-le."
            ) from error
