"""What is held of a scope in memory: blocks of its memories, and those that were written last."""

from __future__ import annotations

import importlib
import logging
import sys
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa

from ekphory.errors import StoreError
from ekphory.filters.lance_sql import matches
from ekphory.filters.tree import And, Filter
from ekphory.store import lance_rows, protocol
from ekphory.store.protocol import (
    CURRENT,
    NEVER,
    Growth,
    IntArray,
    KeyedVectors,
    ScopeColumns,
    StoredMemory,
    WholeScope,
)
from ekphory.threads import ForkSafeLock, run_after_fork
from ekphory.types import MemoryRecord, to_microseconds

_log = logging.getLogger("ekphory")

# Whole memories as a block of columns.


@dataclass(frozen=True, slots=True)
class ArrowRecords:
    """A block of memories; see `RecordBlock`.

    Attributes:
        keys: Key of each row, ascending.
        table: The columns that hold whole memories, in the order of the keys.
    """

    keys: IntArray
    table: pa.Table

    @classmethod
    def of(cls, rows: pa.Table) -> ArrowRecords:
        """Sort rows with a column `key` into a block."""
        ordered = rows.sort_by("key").combine_chunks()
        keys = lance_rows.integers(ordered["key"], missing=0)
        return cls(keys, ordered.drop_columns(["key"]))

    @property
    def nbytes(self) -> int:
        """Memory of the columns and keys."""
        return int(self.table.nbytes) + self.keys.nbytes

    def at(self, places: IntArray) -> list[MemoryRecord]:
        """Return the memories at these places, in order."""
        return lance_rows.to_records(self.table.take(pa.array(places)))

    def without(self, keys: IntArray) -> ArrowRecords:
        """Return the block without the memories that have these keys."""
        kept = np.isin(self.keys, keys, invert=True)
        return ArrowRecords(self.keys[kept], self.table.filter(pa.array(kept)))


# Whole memories by key; a current row never changes, it only leaves the view.

CACHED_RECORDS = 20_000


class RecordCache:
    """Reads current memories through a bounded cache, the least recently used going first.

    Only keys from a scope's snapshot may be asked for: the cache itself knows no scope.
    """

    def __init__(self, store: protocol.Store, *, size: int = CACHED_RECORDS) -> None:
        self._store = store
        self._size = size
        self._records: OrderedDict[int, MemoryRecord] = OrderedDict()
        self._guard = threading.Lock()

    def fetch(self, keys: Sequence[int]) -> dict[int, MemoryRecord]:
        """Return the records of these keys; one that is gone is left out."""
        found = self.held(keys)
        missing = [key for key in keys if key not in found]
        if missing:
            fetched = self._store.fetch(missing)
            read = {key: _as_scanned(record) for key, record in fetched.items()}
            found |= read
            with self._guard:
                self._records |= read
                self._shrink()
        return found

    def held(self, keys: Sequence[int]) -> dict[int, MemoryRecord]:
        """Return those of the records that need not be read."""
        with self._guard:
            found = {key: self._records[key] for key in keys if key in self._records}
            for key in found:
                self._records.move_to_end(key)
        return found

    def keep(self, records: Mapping[int, MemoryRecord]) -> None:
        """Hold what was just written."""
        with self._guard:
            self._records |= records
            self._shrink()

    def drop(self, keys: IntArray) -> None:
        """Hold nothing of memories that are gone."""
        with self._guard:
            for key in keys.tolist():
                self._records.pop(key, None)

    def drop_all_but(self, living: IntArray) -> None:
        """Hold nothing of memories whose keys are not among these."""
        with self._guard:
            held = np.fromiter(self._records, np.int64, len(self._records))
        self.drop(np.setdiff1d(held, living))

    def _shrink(self) -> None:
        while len(self._records) > self._size:
            self._records.popitem(last=False)


def _as_scanned(record: MemoryRecord) -> MemoryRecord:
    """Undo that a record was refiled as history since its scope was scanned."""
    if record.superseded_by is None:
        return record
    return replace(record, id=record.superseded_by, superseded_by=None)


# What is held of one scope in memory.

# A process that searches once, such as a command, does not wait for what it will not use.
_USES_BEFORE_LOADING = 1
_MOST_NEWER = 100
_LARGE = 5_000
"""From so many rows on a search does not wait for them."""


BlockT = TypeVar("BlockT", bound=protocol.KeyedBlock)


class ScopeBlocks(Generic[BlockT]):
    """Blocks of one scope's rows, each with later keys than the one before.

    A current row never changes, it only leaves the view, so a block never gets stale. A large scope
    is read by a thread of its own, for which no search waits. Safe for several threads.

    Args:
        scan: Reads the scope's rows after a key.
        loaded: All rows that there are by now; None where they are yet to be read.
    """

    def __init__(self, scan: Callable[[int], BlockT], *, loaded: BlockT | None = None) -> None:
        self._scan = scan
        self._uses = 0 if loaded is None else _USES_BEFORE_LOADING + 1
        self._blocks: tuple[BlockT, ...] = ()
        if loaded is not None and len(loaded.keys):
            self._blocks = (loaded,)
        self._guard = ForkSafeLock()
        self._loading: threading.Thread | None = None
        self._changes: list[Callable[[BlockT], BlockT]] = []

    @property
    def nbytes(self) -> int:
        """Memory that all blocks take, in bytes."""
        return sum(block.nbytes for block in self._blocks)

    @property
    def loaded(self) -> tuple[BlockT, ...]:
        """The blocks that there are."""
        return self._blocks

    def prepare(self, rows: int) -> None:
        """Count a use, and load the scope, or begin to, at the second.

        Args:
            rows: About how many it has.
        """
        with self._guard:
            self._uses += 1
            if self._uses != _USES_BEFORE_LOADING + 1:
                return
            if rows < _LARGE:
                self._keep(self._scan(0))
                return
            self._loading = threading.Thread(
                target=self._load_first, name="ekphory-blocks", daemon=True
            )
            self._loading.start()

    def settle(self) -> None:
        """Wait for what is being loaded."""
        if self._loading is not None:
            self._loading.join()

    def holding(self, keys: IntArray) -> tuple[BlockT, ...]:
        """Return the blocks; where many of these keys are newer than all of them, with one more."""
        with self._guard:
            if self._blocks and np.count_nonzero(keys > self._last_key()) > _MOST_NEWER:
                self._keep(self._scan(self._last_key()))
            return self._blocks

    def change(self, changed: Callable[[BlockT], BlockT]) -> None:
        """Put what `changed` makes of each block in its place, also of one that is being read."""
        with self._guard:
            blocks = map(changed, self._blocks)
            self._blocks = tuple(block for block in blocks if len(block.keys))
            if self._loading is not None and self._loading.is_alive():
                self._changes.append(changed)

    def _load_first(self) -> None:
        try:
            block = self._scan(0)
        except StoreError as error:
            # Rows are read one by one, as before.
            _log.info("a scope was not read into memory: %s", error)
            return
        with self._guard:
            for changed in self._changes:
                block = changed(block)
            self._changes.clear()
            self._keep(block)

    def _keep(self, block: BlockT) -> None:
        if len(block.keys):
            self._blocks += (block,)

    def _last_key(self) -> int:
        return int(self._blocks[-1].keys[-1]) if self._blocks else 0


class ScopeRecords:
    """Reads memories of one scope by key, after its second read out of memory.

    Rows written after the load come through the cache until there are many.

    Args:
        store: Where they are read.
        scope: The condition on them.
        cache: What the others come through.
        rows: About how many there are.
        loaded: All that there are by now; None where they are yet to be read.
    """

    def __init__(
        self,
        store: protocol.Store,
        scope: Filter,
        cache: RecordCache,
        *,
        rows: int,
        loaded: protocol.RecordBlock | None = None,
    ) -> None:
        self._cache = cache
        self._rows = rows
        self._was_loaded = loaded is not None
        self._scan: Callable[[int], protocol.RecordBlock] = lambda last: store.scan_records(
            scope, after_key=last
        )
        self._blocks: ScopeBlocks[protocol.RecordBlock] = ScopeBlocks(self._scan, loaded=loaded)

    @property
    def nbytes(self) -> int:
        """Memory that the held columns take."""
        return self._blocks.nbytes

    def settle(self) -> None:
        """Wait for what is being read into memory."""
        self._blocks.settle()

    def note(self, written: Sequence[StoredMemory]) -> None:
        """Take in what this process wrote to the scope, where all else of it is held."""
        if self._was_loaded:
            self._cache.keep({memory.key: memory.record for memory in written})

    def note_newer(self, last: int) -> None:
        """Read what others wrote to the scope after this key, where all else of it is held."""
        if self._was_loaded:
            block = self._scan(last)
            newer = block.at(np.arange(len(block.keys)))
            self._cache.keep(dict(zip(block.keys.tolist(), newer, strict=True)))

    def drop(self, keys: IntArray) -> None:
        """Hold nothing of memories that are gone."""
        self._blocks.change(lambda block: block.without(keys))
        self._cache.drop(keys)

    def fetch(self, keys: Sequence[int]) -> dict[int, MemoryRecord]:
        """Return the records of these keys; one that is gone is left out.

        Only keys from this scope's snapshot may be asked for.
        """
        self._blocks.prepare(self._rows)
        wanted = np.array(keys, np.int64)
        found = _find_in(self._blocks.holding(wanted), wanted)
        missing = [key for key in keys if key not in found]
        return found | self._cache.fetch(missing) if missing else found

    def held(self, keys: Sequence[int]) -> dict[int, MemoryRecord]:
        """Return those of the records that need not be read."""
        found = _find_in(self._blocks.loaded, np.array(keys, np.int64))
        return found | self._cache.held([key for key in keys if key not in found])


def _find_in(blocks: Sequence[protocol.RecordBlock], wanted: IntArray) -> dict[int, MemoryRecord]:
    found: dict[int, MemoryRecord] = {}
    for block in blocks:
        places = lance_rows.look_up(block.keys, np.arange(len(block.keys)), wanted)
        held = wanted[places >= 0].tolist()
        if held:
            found |= zip(held, block.at(places[places >= 0]), strict=True)
    return found


# What this process wrote last.

_MOST_MEMORIES = 1_024


@dataclass(frozen=True, slots=True)
class _Commit:
    before: int
    after: int
    memories: tuple[StoredMemory, ...]


class RecentWrites:
    """Remembers the last commits of this process, for as long as nobody else made one between.

    Safe for several threads.
    """

    def __init__(self) -> None:
        self._commits: deque[_Commit] = deque()
        self._held = 0
        self._guard = threading.Lock()

    def note(self, memories: Sequence[StoredMemory], *, before: int, after: int) -> None:
        """Take in a commit that added memories."""
        with self._guard:
            follows = not self._commits or self._commits[-1].after == before
            # Only then did nobody else write in between.
            if after != before + 1 or not follows:
                self._forget()
                return
            self._commits.append(_Commit(before, after, tuple(memories)))
            self._held += len(memories)
            while self._held > _MOST_MEMORIES or len(self._commits) > _MOST_MEMORIES:
                self._held -= len(self._commits.popleft().memories)

    def note_rearranged(self, *, before: int, after: int) -> None:
        """Take in commits that moved memories, while the store was locked, and changed none."""
        with self._guard:
            if self._commits and self._commits[-1].after == before:
                self._commits.append(_Commit(before, after, ()))
            else:
                self._forget()

    def forget(self) -> None:
        """Forget all: something was changed that cannot be told as an addition."""
        with self._guard:
            self._forget()

    def since(self, version: int, *, newest: int) -> Growth | None:
        """Return what was added after `version` up to `newest`; None where that is not known."""
        with self._guard:
            if not self._commits or self._commits[-1].after != newest:
                return None
            if version < self._commits[0].before:
                return None
            added = [each.memories for each in self._commits if each.before >= version]
        return Growth(newest, tuple(memory for memories in added for memory in memories))

    def records(self, keys: Sequence[int], *, newest: int) -> dict[int, MemoryRecord]:
        """Return those of these memories that were added of late; none where others wrote since."""
        with self._guard:
            if not self._commits or self._commits[-1].after != newest:
                return {}
            wanted = set(keys)
            return {
                memory.key: memory.record
                for commit in self._commits
                for memory in commit.memories
                if memory.key in wanted
            }

    def _forget(self) -> None:
        self._commits.clear()
        self._held = 0


def current_within(memories: Sequence[StoredMemory], scope: Filter) -> tuple[StoredMemory, ...]:
    """Return the current memories among these that `scope` lets through."""
    wanted = And((scope, CURRENT))
    return tuple(memory for memory in memories if matches(wanted, memory.record))


def columns_of(memories: Sequence[StoredMemory]) -> ScopeColumns:
    """Return the ranking columns of these memories, which are in the order of keys."""
    records = [memory.record for memory in memories]
    terms = [memory.terms for memory in memories]
    return ScopeColumns(
        key=np.array([memory.key for memory in memories], np.int64),
        thread=np.array([memory.thread for memory in memories], np.int64),
        sequence=np.array([record.sequence or 0 for record in records], np.int64),
        at=np.array([to_microseconds(record.at) for record in records], np.int64),
        expires_at=np.array(
            [to_microseconds(r.expires_at) if r.expires_at else NEVER for r in records], np.int64
        ),
        importance=np.array([record.importance for record in records], np.float32),
        importance_given=np.array(
            ["importance" not in record.predicted for record in records], np.bool_
        ),
        pool=np.array([record.pool for record in records], np.str_),
        type=np.array([record.type for record in records], np.str_),
        terms=np.concatenate([np.empty(0, np.uint32), *terms]),
        term_counts=np.array([len(row) for row in terms], np.int32),
    )


def vectors_of(memories: Sequence[StoredMemory], *, dimension: int) -> KeyedVectors:
    """Return the vectors of these memories."""
    keys = [key for memory in memories for key in [memory.key] * len(memory.vectors)]
    empty = np.empty((0, dimension), np.float32)
    vectors = np.concatenate([empty, *(memory.vectors for memory in memories)])
    return KeyedVectors(np.array(keys, np.int64), vectors)


# All of a scope, read at once: on object storage a request takes as long as megabytes of data.

_READ_WHOLE = 32 * 2**20
"""A table of up to so many bytes is read file by file, each with one request."""
_GAP = 2**20
"""Of a larger one so much is read in vain rather than asked for apart."""
_PACKAGE = "lance"
_SPLIT_BY = ("passage", "vector")
_WIDE = (lance_rows.RECORD, "vector")


_is_usable = True
"""Not in a fork of a process that had loaded the library (decision 0020)."""


def _note_fork() -> None:
    global _is_usable
    _is_usable = _PACKAGE not in sys.modules


run_after_fork(_note_fork)


def can_read_at_once() -> bool:
    """Return whether there is the library that reads files in pieces of a size of ours."""
    return _is_usable and find_spec(_PACKAGE) is not None


def read_at_once(
    table: str, condition: str, columns: Sequence[str], *, version: int, nbytes: int
) -> pa.Table:
    """Read rows of a table on object storage with as few requests as that takes.

    Args:
        table: Its Lance URI.
        condition: Which rows.
        columns: Which columns of theirs; `_rowid` is given too.
        version: Number of the state that is read.
        nbytes: Size of all of its files.
    """
    is_small = nbytes <= _READ_WHOLE
    dataset = importlib.import_module(_PACKAGE).dataset(
        table, version=version, block_size=_READ_WHOLE if is_small else _GAP
    )
    found: pa.Table = dataset.scanner(
        columns=list(columns),
        filter=condition,
        with_row_id=True,
        # What is small is read of all rows, rather than asked for apart once they are known.
        late_materialization=False if is_small else [name for name in _WIDE if name in columns],
        use_scalar_index=False,
    ).to_table()
    return found.replace_schema_metadata(dataset.schema.metadata)


def name_columns(*groups: Sequence[str]) -> list[str]:
    """Name each column once, and those by which `to_whole_scope` tells windows apart."""
    return list(dict.fromkeys([*(name for group in groups for name in group), *_SPLIT_BY]))


def first_windows(rows: pa.Table) -> pa.Table:
    """Return the rows that hold a whole memory, without its vector, in the order of keys."""
    rest = rows.drop_columns(["vector"])
    return rest.filter(pa.compute.equal(rest["passage"], 0)).sort_by("key")


def to_whole_scope(rows: pa.Table, memories: pa.Table, *, records: Sequence[str]) -> WholeScope:
    """Lay a scope out.

    Args:
        rows: All rows of the scope.
        memories: Their `first_windows`.
        records: The columns that hold whole memories, `key` among them.
    """
    dimension = rows.schema.field("vector").type.list_size
    batches = rows.select(["key", *_SPLIT_BY]).to_batches()
    vectors = np.empty((rows.num_rows, dimension), np.float32)
    return WholeScope(
        lance_rows.to_scope_columns(memories),
        lance_rows.gather_vectors(batches, into=vectors),
        ArrowRecords.of(memories.select(list(records))),
    )
