"""Makes a memory hold what documents hold now: new passages first, then the old ones go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Protocol, runtime_checkable

from ekphory.documents.blocks import LeftOut
from ekphory.documents.readers import reader_for
from ekphory.documents.settings import ReadingSettings
from ekphory.documents.tree import DocumentFile
from ekphory.errors import MissingExtra
from ekphory.filters.storable_text import is_storable
from ekphory.filters.tree import And, Comparison, Contains, Field, Filter, In
from ekphory.importers.document_records import (
    DIGEST,
    LAST,
    SOURCE,
    Document,
    digest_of,
    records_of,
)
from ekphory.importers.record import ImportedRecord, Unreadable
from ekphory.importers.report import Tally
from ekphory.scope import Scope
from ekphory.store.owner import owned_in_any_session
from ekphory.store.store import Order
from ekphory.types import MemoryRecord, WriteReport

_DOCUMENTS_A_QUERY = 100
_PASSAGES_A_WRITE = 256
_IDS_A_QUERY = 500
_ROWS_A_PAGE = 10_000
_ALL = 2**31 - 1


@runtime_checkable
class DocumentMemory(Protocol):
    """What documents are imported into; `Memory` is one."""

    scope: Scope

    def add_many(self, records: Iterable[dict[str, object]]) -> WriteReport:
        """Write the records durably and report what became of each."""
        ...

    def list(
        self,
        *,
        filter: Filter | None = None,  # noqa: A002  as in `Memory`
        limit: int = 100,
        offset: int = 0,
        order: Order = "newest",
    ) -> Sequence[MemoryRecord]:
        """Read memories in order."""
        ...

    def forget(self, *, filter: Filter | None = None) -> int:  # noqa: A002  as in `Memory`
        """Forget all that match; returns how many."""
        ...


@dataclass(frozen=True, slots=True)
class Collection:
    """Documents that belong together.

    Attributes:
        root: The folder below which they lie.
        name: What names the collection in a store, in place of the folder's path.
        pool: Where their passages go.
        settings: How they are read.
    """

    root: Path
    name: str
    pool: str
    settings: ReadingSettings

    def session_of(self, name: str) -> str:
        """Give what names a document in the store: the collection and its path in it."""
        return f"{self.name}/{name}"


@dataclass(frozen=True, slots=True)
class _Known:
    """What a memory holds of one document."""

    ids: frozenset[str] = frozenset()
    digests: frozenset[object] = frozenset()
    is_whole: bool = False


class DocumentSync:
    """Brings a memory up to date with documents, and counts what it does."""

    def __init__(self, memory: DocumentMemory, collection: Collection, tally: Tally) -> None:
        self._memory = memory
        self._collection = collection
        self._tally = tally
        self._waiting: list[ImportedRecord] = []
        self._outdated: dict[str, list[str]] = {}
        self._refused: set[object] = set()
        self._mine = _own_documents(memory.scope)

    def update(self, files: Iterable[DocumentFile], on_file: Callable[[], None]) -> None:
        """Import what is new in these documents, and forget what they no longer hold.

        A document that cannot be read to its end loses nothing.
        """
        remaining = iter(files)
        while batch := list(islice(remaining, _DOCUMENTS_A_QUERY)):
            documents = [document for file in batch if (document := self._document(file))]
            known = self._known([document.session for document in documents])
            for document in documents:
                self._read(document, known.get(document.session, _Known()))
                on_file()
        self._write()

    def forget_gone(self, below: str = "") -> None:
        """Forget the documents of the collection that are no longer there.

        Args:
            below: Only these: a document, or a folder with all that is in it.
        """
        gone = [
            session
            for session in self._sessions(below)
            if not _exists(self._collection.root / session[len(self._collection.name) + 1 :])
        ]
        for sessions in _chunks(gone, _IDS_A_QUERY):
            which = In(Field("session"), tuple(sessions))
            self._tally.forget(self._memory.forget(filter=And((self._mine, which))))

    def _document(self, file: DocumentFile) -> Document | None:
        reader = reader_for(file.path)
        if reader is None:
            return None
        if not is_storable(file.name):
            message = "its name is not UTF-8. Rename it."
            self._tally.fail(Unreadable(repr(file.name), "file", message))
            return None
        session = self._collection.session_of(file.name)
        return Document(file, reader, session, self._collection.pool)

    def _known(self, sessions: Sequence[str]) -> dict[str, _Known]:
        which = And((self._mine, In(Field("session"), tuple(sessions))))
        found: dict[str, list[MemoryRecord]] = {}
        for record in self._memory.list(filter=which, limit=_ALL, order="written"):
            found.setdefault(record.session or "", []).append(record)
        return {session: _what_is_known(records) for session, records in found.items()}

    def _read(self, document: Document, known: _Known) -> None:
        settings = self._collection.settings
        ids: set[str] = set()
        sound = True
        try:
            digest = digest_of(document, settings)
            if known.is_whole and known.digests == {digest}:
                self._tally.skip(len(known.ids))
                return
            for found in records_of(document, settings, digest):
                if isinstance(found, ImportedRecord):
                    ids.add(self._take(found, known))
                elif isinstance(found, LeftOut):
                    self._tally.leave_out(found.reason)
                else:
                    sound = False
                    self._tally.fail(found)
        except MissingExtra as error:
            sound = False
            self._tally.fail(Unreadable(document.file.name, "file", str(error)))
        except OSError as error:
            sound = False
            message = f"{error.strerror or error}. Check that it exists and may be read."
            self._tally.fail(Unreadable(document.file.name, "file", message))
        if sound:
            self._outdated[document.session] = sorted(known.ids - ids)

    def _take(self, record: ImportedRecord, known: _Known) -> str:
        memory_id = str(record.fields["id"])
        if memory_id in known.ids:
            self._tally.skip(1)
        else:
            self._waiting.append(record)
            if len(self._waiting) == _PASSAGES_A_WRITE:
                self._write()
        return memory_id

    def _write(self) -> None:
        """Write what waits; only then forget what it replaces."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            report = self._memory.add_many([record.fields for record in waiting])
            self._tally.count(waiting, report)
            self._refused |= {waiting[one.index].fields["session"] for one in report.failed}
        sound = (ids for session, ids in self._outdated.items() if session not in self._refused)
        outdated, self._outdated = [memory_id for ids in sound for memory_id in ids], {}
        for ids in _chunks(outdated, _IDS_A_QUERY):
            which = And((self._mine, In(Field("id"), tuple(ids))))
            self._tally.forget(self._memory.forget(filter=which))

    def _sessions(self, below: str) -> list[str]:
        """Give the names of the documents that the memory holds of the collection."""
        prefix = self._collection.session_of(below)
        which = And((self._mine, Contains(Field("session"), prefix)))
        sessions: dict[str, None] = {}
        for offset in range(0, _ALL, _ROWS_A_PAGE):
            page = self._memory.list(
                filter=which, limit=_ROWS_A_PAGE, offset=offset, order="written"
            )
            sessions |= dict.fromkeys(record.session or "" for record in page)
            if len(page) < _ROWS_A_PAGE:
                break
        return [session for session in sessions if _lies_in(session, prefix)]


def _what_is_known(records: Sequence[MemoryRecord]) -> _Known:
    return _Known(
        ids=frozenset(record.id for record in records),
        digests=frozenset(record.metadata.get(DIGEST) for record in records),
        is_whole=any(record.metadata.get(LAST) is True for record in records),
    )


def _own_documents(scope: Scope) -> Filter:
    """Give the condition for documents that a handle of exactly this scope has written.

    A wider handle sees those of narrower ones, and all see those of their project, but each
    replaces its own alone.
    """
    return And((owned_in_any_session(scope), Comparison(Field("source"), "eq", SOURCE)))


def _lies_in(session: str, prefix: str) -> bool:
    whole = prefix.rstrip("/")
    return session == whole or session.startswith(f"{whole}/")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        # It may be there, behind a folder that cannot be looked into.
        return True


def _chunks(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), size):
        yield names[start : start + size]
