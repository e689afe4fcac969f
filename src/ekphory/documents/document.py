"""One document, from its file to the passages that are worth remembering."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ekphory.documents.blocks import LeftOut, Problem, Read
from ekphory.documents.passages import Passage, passages
from ekphory.documents.quality import reason_to_leave_out
from ekphory.documents.readers import Reader
from ekphory.documents.settings import ReadingSettings


def read_document(
    path: Path, reader: Reader, settings: ReadingSettings
) -> Iterator[Passage | LeftOut | Problem]:
    """Read the passages of a document in order.

    Yields:
        Passages, what was left out with its reason, and what could not be read. A document with
        nothing to read in it yields a problem.

    Raises:
        MissingExtra: `[docs]` is not installed.
    """
    found_any = False
    for found in passages(_told_of_the_system(path, reader, settings)):
        found_any = True
        reason = reason_to_leave_out(found) if isinstance(found, Passage) else None
        yield found if reason is None else LeftOut(reason)
    if not found_any:
        yield Problem("there is no text in it.")


def _told_of_the_system(path: Path, reader: Reader, settings: ReadingSettings) -> Iterator[Read]:
    try:
        yield from reader.read(path, settings)
    except OSError as error:
        yield Problem(f"{error.strerror or error}. Check that it exists and may be read.")
