"""All shards read as one store, so that a search over them ranks as over one.

Words are weighed by how many memories of the whole scope hold them, and a probability depends on
that. So the columns that ranking needs are gathered from all shards, and ranked by the same code
that ranks those of one store. Keys are told apart by their shard: the key of a row is its key
there times the number of shards, plus the shard's number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from functools import reduce
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from ekphory.engine import Engine, assemble
from ekphory.errors import StoreError
from ekphory.filters.tree import Filter
from ekphory.models.embedder import EmbedderIdentity, EmbeddingModel
from ekphory.retrieval.lexical import TERMS_VERSION
from ekphory.retrieval.snapshot import Snapshots, join_columns
from ekphory.store import protocol
from ekphory.store.lance import LanceStore
from ekphory.store.ledger import Ledger, LedgerEntry, LedgerState
from ekphory.store.writer import Writer
from ekphory.types import MemoryRecord, Progress

_MOST_AT_ONCE = 16
Result = TypeVar("Result")


class SpanningStore:
    """Reads several stores as one; see `store.protocol.Store`. What writes is refused."""

    def __init__(self, parts: Sequence[LanceStore]) -> None:
        self._parts = tuple(parts)
        self._threads = ThreadPoolExecutor(
            min(len(parts), _MOST_AT_ONCE), thread_name_prefix="ekphory-shard"
        )

    @property
    def identity(self) -> protocol.StoreIdentity:
        """That of all of them."""
        return self._parts[0].identity

    def version(self) -> int:
        """Return the sum of their versions, which every write changes."""
        return sum(self._ask(lambda part, _: part.version()))

    def growth_since(self, version: int) -> None:
        """Nothing is known of what others wrote."""

    def select(
        self, where: Filter, *, order: protocol.Order, limit: int | None = None, offset: int = 0
    ) -> list[MemoryRecord]:
        """Read whole memories; those of one moment in the order of shards."""
        most = None if limit is None else limit + offset
        found = [
            record
            for records in self._ask(lambda part, _: part.select(where, order=order, limit=most))
            for record in records
        ]
        if order == "written":
            found.sort(key=lambda record: record.created_at)
        else:
            found.sort(key=lambda record: record.at, reverse=order == "newest")
        return found[offset:][:limit]

    def fetch(self, keys: Sequence[int]) -> dict[int, MemoryRecord]:
        """Read whole memories by key."""
        own = self._split(keys)
        found: dict[int, MemoryRecord] = {}
        for shard, part in enumerate(self._ask(lambda part, shard: part.fetch(own[shard]))):
            found |= {self._widen(key, shard): record for key, record in part.items()}
        return found

    def present(
        self, where: Filter, ids: Sequence[str], fingerprints: Sequence[str]
    ) -> list[protocol.Presence]:
        """Return which of these are stored."""
        found = self._ask(lambda part, _: part.present(where, ids, fingerprints))
        return [
            replace(entry, key=self._widen(entry.key, shard))
            for shard, entries in enumerate(found)
            for entry in entries
        ]

    def keys(self, where: Filter) -> protocol.IntArray:
        """Return the keys of the matching memories."""
        found = self._ask(lambda part, _: part.keys(where))
        return np.sort(np.concatenate([self._widen(each, n) for n, each in enumerate(found)]))

    def lacking(self, embedder: EmbedderIdentity) -> protocol.IntArray:
        """Return the keys of memories of which there is no vector by a model."""
        found = self._ask(lambda part, _: part.lacking(embedder))
        return np.sort(np.concatenate([self._widen(each, n) for n, each in enumerate(found)]))

    def count(self, where: Filter) -> int:
        """Return how many memories match."""
        return sum(self._ask(lambda part, _: part.count(where)))

    def scan(self, where: Filter, *, after_key: int = 0) -> protocol.ScopeColumns:
        """Read the ranking columns."""
        found = self._ask(
            lambda part, shard: part.scan(where, after_key=self._before(after_key, shard))
        )
        widened = [
            replace(each, key=self._widen(each.key, shard)) for shard, each in enumerate(found)
        ]
        joined = reduce(join_columns, widened)
        return _in_order(joined, np.argsort(joined.key))

    def scan_fields(self, where: Filter, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Read some fields of the current matching memories."""
        found = self._ask(lambda part, _: part.scan_fields(where, names))
        keys = np.concatenate([self._widen(each["key"], n) for n, each in enumerate(found)])
        order = np.argsort(keys)
        joined = {name: np.concatenate([each[name] for each in found])[order] for name in names}
        return {**joined, "key": keys[order]}

    def scan_vectors(
        self, where: Filter, *, after_key: int = 0, precision: protocol.Precision = np.float32
    ) -> protocol.KeyedVectors:
        """Read the vectors of the current matching memories."""
        return self._join_vectors(
            self._ask(
                lambda part, shard: part.scan_vectors(
                    where, after_key=self._before(after_key, shard), precision=precision
                )
            )
        )

    def scan_records(self, where: Filter, *, after_key: int = 0) -> protocol.RecordBlock:
        """Read the current matching memories, whole."""
        blocks = self._ask(
            lambda part, shard: part.scan_records(where, after_key=self._before(after_key, shard))
        )
        return _JoinedRecords.of(tuple(blocks))

    def scan_whole(self, where: Filter, *, room: int) -> None:
        """Return nothing: what lies in all shards is read in parts."""

    def vectors_of(self, keys: Sequence[int]) -> protocol.KeyedVectors:
        """Read the vectors of some memories."""
        own = self._split(keys)
        return self._join_vectors(self._ask(lambda part, shard: part.vectors_of(own[shard])))

    def nearest(
        self, where: Filter, vector: NDArray[np.float32], *, limit: int
    ) -> protocol.IntArray:
        """Find the rows with the largest dot product, so many in each shard."""
        found = self._ask(lambda part, _: part.nearest(where, vector, limit=limit))
        return np.concatenate([self._widen(each, shard) for shard, each in enumerate(found)])

    def health(self) -> protocol.StoreHealth:
        """Measure all of them together."""
        found = self._ask(lambda part, _: part.health())
        counts = "memories history vectors fragments small_fragments versions".split()
        summed = {name: sum(getattr(each, name) for each in found) for name in counts}
        orphans = {name for each in found for name in each.orphaned_scopes}
        return replace(found[0], **summed, orphaned_scopes=tuple(sorted(orphans)))

    def verify(self, on_progress: Progress) -> protocol.Verification:
        """Read every row of each, and compare it with its checksum."""
        found = [part.verify(on_progress) for part in self._parts]
        return protocol.Verification(
            sum(each.rows for each in found),
            sum(each.unverified for each in found),
            tuple(damage for each in found for damage in each.damage),
        )

    def upkeep_is_due(self) -> bool:
        """Upkeep is each shard's own."""
        return False

    index_is_due = upkeep_is_due

    def note_newest(self) -> None:
        """Nothing was written: the newest versions are asked for, as before every read."""

    tidy = note_newest

    def append(self, *_: object) -> NoReturn:
        """Refuse what writes.

        Raises:
            StoreError: Always.
        """
        raise _make_read_only_error()

    supersede = delete = purge = maintain = build_index = repair = append
    keep_vectors = switch_vectors = drop_previous_vectors = append

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown()

    def _ask(self, read: Callable[[LanceStore, int], Result]) -> list[Result]:
        return list(self._threads.map(read, self._parts, range(len(self._parts))))

    def _widen(self, key: Any, shard: int) -> Any:  # noqa: ANN401  one key, or an array of them
        return key * len(self._parts) + shard

    def _before(self, key: int, shard: int) -> int:
        """Return the last key of a shard that is not after a key of all."""
        return (key - shard) // len(self._parts)

    def _split(self, keys: Sequence[int]) -> list[list[int]]:
        own: list[list[int]] = [[] for _ in self._parts]
        for key in keys:
            own[int(key) % len(own)].append(int(key) // len(own))
        return own

    def _join_vectors(self, found: Sequence[protocol.KeyedVectors]) -> protocol.KeyedVectors:
        keys = np.concatenate([self._widen(each.keys, n) for n, each in enumerate(found)])
        # The windows of a memory stay in the order of its text.
        order = np.argsort(keys, kind="stable")
        return protocol.KeyedVectors(
            keys[order], np.concatenate([each.vectors for each in found])[order]
        )


@dataclass(frozen=True, slots=True)
class _JoinedRecords:
    """Blocks of several stores as one.

    Attributes:
        blocks: One of each store.
        keys: Of all rows, ascending.
        places: Where each row is in the block of its store.
    """

    blocks: tuple[protocol.RecordBlock, ...]
    keys: protocol.IntArray
    places: protocol.IntArray

    @classmethod
    def of(cls, blocks: tuple[protocol.RecordBlock, ...]) -> _JoinedRecords:
        """Join the blocks of all stores, in their order."""
        keys = np.concatenate([each.keys * len(blocks) + n for n, each in enumerate(blocks)])
        places = np.concatenate([np.arange(len(each.keys)) for each in blocks])
        order = np.argsort(keys)
        return cls(blocks, keys[order], places[order])

    @property
    def nbytes(self) -> int:
        """Memory that they take."""
        return sum(block.nbytes for block in self.blocks) + 2 * self.keys.nbytes

    def at(self, places: protocol.IntArray) -> list[MemoryRecord]:
        """Return the memories at these places, in order."""
        shards = self.keys[places] % len(self.blocks)
        found: list[MemoryRecord | None] = [None] * len(places)
        for shard in np.unique(shards).tolist():
            own = np.flatnonzero(shards == shard)
            records = self.blocks[shard].at(self.places[places[own]])
            for place, record in zip(own.tolist(), records, strict=True):
                found[place] = record
        return [record for record in found if record is not None]

    def without(self, keys: protocol.IntArray) -> _JoinedRecords:
        """Return the blocks without the memories that have these keys."""
        shards = len(self.blocks)
        blocks = tuple(
            block.without(keys[keys % shards == shard] // shards)
            for shard, block in enumerate(self.blocks)
        )
        return _JoinedRecords.of(blocks)


def _in_order(columns: protocol.ScopeColumns, order: protocol.IntArray) -> protocol.ScopeColumns:
    """Return rows in another order, the terms of each with it."""
    counts = columns.term_counts[order].astype(np.int64)
    starts = (np.cumsum(columns.term_counts, dtype=np.int64) - columns.term_counts)[order]
    before = np.cumsum(counts) - counts
    terms = columns.terms[np.repeat(starts - before, counts) + np.arange(int(counts.sum()))]
    ordered = {
        entry.name: getattr(columns, entry.name)[order]
        for entry in fields(columns)
        if entry.name != "terms"
    }
    return protocol.ScopeColumns(terms=terms, **ordered)


class SpanningLedger(Ledger):
    """Reads the ledgers of several stores as one."""

    def __init__(self, uri: str, parts: Sequence[Ledger]) -> None:
        """Take the URI of all, and the ledger of each."""
        super().__init__(uri)
        self._parts = parts

    def read(self) -> LedgerState:
        """Return the newest state of all of them."""
        states = [part.read() for part in self._parts]
        entries: dict[str, LedgerEntry] = {}
        for shard, state in enumerate(states):
            for name, entry in state.entries.items():
                older, newer = (key * len(states) + shard for key in entry.keys)
                # Its id stays: it is that of the rows in their shard.
                entries[name] = replace(entry, keys=(older, newer))
        return LedgerState(sum(state.version for state in states), entries, judged_to=None)

    def append(self, *_: object, **__: object) -> NoReturn:
        """Refuse what writes.

        Raises:
            StoreError: Always.
        """
        raise _make_read_only_error()

    make = purge = append


def _make_read_only_error() -> StoreError:
    return StoreError(
        "A handle on all shards only reads. Bind it to an org and a project to write."
    )


class _NoWriting:
    """The lock of what is only read: the store itself refuses to be written."""

    def held(self) -> AbstractContextManager[None]:
        """Hold nothing."""
        return nullcontext()

    def give_back(self) -> None:
        """Nothing is ever held."""


def make_spanning_engine(uri: str, embedder: EmbeddingModel, parts: Sequence[str]) -> Engine:
    """Open several stores as one that is only read.

    Args:
        uri: Of all of them.
        embedder: What their vectors are made with.
        parts: The URI of each.
    """
    identity = protocol.StoreIdentity(protocol.SCHEMA_VERSION, TERMS_VERSION, embedder.identity)
    stores = [LanceStore.open(part, identity) for part in parts]
    opened = zip(parts, stores, strict=True)
    ledgers = [Ledger(part, connection=each.connection) for part, each in opened]
    store, ledger = SpanningStore(stores), SpanningLedger(uri, ledgers)
    writer = Writer(store, _NoWriting())
    embedders = {embedder.identity: embedder}
    snapshots = Snapshots(store, embedders)
    engine = assemble(
        uri, embedders, snapshots=snapshots, writer=writer, ledger=ledger, reader=None
    )
    return replace(engine, spanned=tuple(parts))
