"""Passages of a document into records: what names them, and where they came from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ekphory.documents.blocks import LeftOut, Problem, place_label
from ekphory.documents.document import read_document
from ekphory.documents.parents import parent_id
from ekphory.documents.passages import Passage
from ekphory.documents.readers import READING_VERSION, Reader
from ekphory.documents.settings import ReadingSettings
from ekphory.documents.tree import DocumentFile
from ekphory.importers.record import ImportedRecord, Unreadable
from ekphory.types import Scalar

SOURCE = "document"
DIGEST = "digest"
"""Metadata of every passage: a digest of its file and of how it was read."""
LAST = "last"
"""Metadata of the last passage of a document that was read without a problem."""
_READ_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Document:
    """A document that is being imported.

    Attributes:
        file: Where it lies.
        reader: What reads it.
        session: What names it among all documents of a store.
        pool: Where its passages go.
    """

    file: DocumentFile
    reader: Reader
    session: str
    pool: str


def digest_of(document: Document, settings: ReadingSettings) -> str:
    """Compute a digest of what the file holds and of all that decides what becomes of it.

    Raises:
        OSError: The file cannot be read.
    """
    page_reader = "" if settings.page_reader is None else settings.page_reader.name
    encoding = settings.encoding or ""
    way = (str(READING_VERSION), document.file.name, document.pool, encoding, page_reader)
    digest = hashlib.sha256("\0".join(way).encode("utf-8", "surrogatepass"))
    with document.file.path.open("rb") as stream:
        while piece := stream.read(_READ_BYTES):
            digest.update(piece)
    return digest.hexdigest()[:32]


def records_of(
    document: Document, settings: ReadingSettings, digest: str
) -> Iterator[ImportedRecord | LeftOut | Unreadable]:
    """Read a document into records, in order.

    The id of a record is made of all that it says and where it says it. So a passage that moved
    within its document is written anew, and its lines are always right.

    Raises:
        MissingExtra: `[docs]` is not installed.
    """
    changed = _last_change(document.file.path)
    held: tuple[Passage, int] | None = None
    count, sound = 0, True
    for found in read_document(document.file.path, document.reader, settings):
        if isinstance(found, Passage):
            if held is not None:
                yield _record(document, *held, {DIGEST: digest}, changed)
            held = found, count
            count += 1
        elif isinstance(found, Problem):
            sound = False
            yield _unreadable(document, found)
        else:
            yield found
    if held is not None:
        marks: dict[str, Scalar] = {DIGEST: digest} | ({LAST: True} if sound else {})
        yield _record(document, *held, marks, changed)


def _record(
    document: Document,
    passage: Passage,
    sequence: int,
    metadata: dict[str, Scalar],
    changed: datetime | None,
) -> ImportedRecord:
    lines = place_label(passage.first, passage.last, document.reader.unit)
    fields: dict[str, object] = {
        "text": passage.text,
        "path": document.file.name,
        "heading": " > ".join(passage.section.headings) or None,
        "lines": lines,
        "session": document.session,
        "sequence": sequence,
        "parent_id": parent_id(document.session, passage.section),
        "pool": document.pool,
        "source": SOURCE,
        # What a document states does not fade, whenever its file was last touched.
        "type": "semantic",
    }
    identity = "\0".join(f"{name}={value}" for name, value in fields.items())
    digest = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    fields |= {"id": f"document:{digest}", "at": changed, "metadata": metadata}
    return ImportedRecord(fields, f"{document.file.name} ({lines})")


def _unreadable(document: Document, problem: Problem) -> Unreadable:
    name, position = document.file.name, problem.position
    if position is None:
        return Unreadable(name, "file", problem.message)
    unit = document.reader.unit
    return Unreadable(f"{name} ({place_label(position, position, unit)})", unit, problem.message)


def _last_change(path: Path) -> datetime | None:
    """Give when the file was last changed; None where its clock is beyond what can be stored."""
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, tz=UTC)
    except (OSError, OverflowError, ValueError):
        return None
