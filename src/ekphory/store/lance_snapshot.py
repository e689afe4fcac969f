"""One state of a Lance store, read while others write, and what is kept of it in memory."""

from __future__ import annotations

import errno
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO, Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from ekphory.errors import StoreError
from ekphory.filters.lance_sql import to_lance_sql
from ekphory.filters.tree import And, Filter, Not
from ekphory.scope import OWNER_FIELDS
from ekphory.store import lance_rows, lance_table, protocol
from ekphory.store.lance import TABLE
from ekphory.store.ledger import LEDGER_FOLDER, has_ledger
from ekphory.store.writer import DirectoryLock
from ekphory.types import MemoryRecord

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

    def drop(self, keys: protocol.IntArray) -> None:
        """Hold nothing of memories that are gone."""
        with self._guard:
            for key in keys.tolist():
                self._records.pop(key, None)

    def drop_all_but(self, living: protocol.IntArray) -> None:
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


BlockT = TypeVar("BlockT", bound=protocol.KeyedBlock)


class ScopeBlocks(Generic[BlockT]):
    """Blocks of one scope's rows, each with later keys than the one before.

    A current row never changes, it only leaves the view, so a block never gets stale.

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
        self._guard = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Memory that all blocks take, in bytes."""
        return sum(block.nbytes for block in self._blocks)

    @property
    def loaded(self) -> tuple[BlockT, ...]:
        """The blocks that there are."""
        return self._blocks

    def prepare(self) -> None:
        """Count a use, and load the scope at the second."""
        with self._guard:
            self._uses += 1
            if self._uses == _USES_BEFORE_LOADING + 1:
                self._load()

    def holding(self, keys: protocol.IntArray) -> tuple[BlockT, ...]:
        """Return the blocks; where many of these keys are newer than all of them, with one more."""
        with self._guard:
            if self._blocks and np.count_nonzero(keys > self._last_key()) > _MOST_NEWER:
                self._load()
            return self._blocks

    def change(self, changed: Callable[[BlockT], BlockT]) -> None:
        """Put what `changed` makes of each block in its place."""
        with self._guard:
            blocks = map(changed, self._blocks)
            self._blocks = tuple(block for block in blocks if len(block.keys))

    def _load(self) -> None:
        block = self._scan(self._last_key())
        if len(block.keys):
            self._blocks += (block,)

    def _last_key(self) -> int:
        return int(self._blocks[-1].keys[-1]) if self._blocks else 0


class ScopeRecords:
    """Reads memories of one scope by key, from its second read on out of memory.

    Rows written after the load come through the cache until there are many.

    Args:
        store: Where they are read.
        scope: The condition on them.
        cache: What the others come through.
        loaded: All that there are by now; None where they are yet to be read.
    """

    def __init__(
        self,
        store: protocol.Store,
        scope: Filter,
        cache: RecordCache,
        *,
        loaded: protocol.RecordBlock | None = None,
    ) -> None:
        self._cache = cache
        self._was_loaded = loaded is not None
        self._scan: Callable[[int], protocol.RecordBlock] = lambda last: store.scan_records(
            scope, after_key=last
        )
        self._blocks: ScopeBlocks[protocol.RecordBlock] = ScopeBlocks(self._scan, loaded=loaded)

    @property
    def nbytes(self) -> int:
        """Memory that the held columns take."""
        return self._blocks.nbytes

    def note(self, written: Sequence[protocol.StoredMemory]) -> None:
        """Take in what this process wrote to the scope, where all else of it is held."""
        if self._was_loaded:
            self._cache.keep({memory.key: memory.record for memory in written})

    def note_newer(self, last: int) -> None:
        """Read what others wrote to the scope after this key, where all else of it is held."""
        if self._was_loaded:
            block = self._scan(last)
            newer = block.at(np.arange(len(block.keys)))
            self._cache.keep(dict(zip(block.keys.tolist(), newer, strict=True)))

    def drop(self, keys: protocol.IntArray) -> None:
        """Hold nothing of memories that are gone."""
        self._blocks.change(lambda block: block.without(keys))
        self._cache.drop(keys)

    def fetch(self, keys: Sequence[int]) -> dict[int, MemoryRecord]:
        """Return the records of these keys; one that is gone is left out.

        Only keys from this scope's snapshot may be asked for.
        """
        self._blocks.prepare()
        wanted = np.array(keys, np.int64)
        found = _find_in(self._blocks.holding(wanted), wanted)
        missing = [key for key in keys if key not in found]
        return found | self._cache.fetch(missing) if missing else found

    def held(self, keys: Sequence[int]) -> dict[int, MemoryRecord]:
        """Return those of the records that need not be read."""
        found = _find_in(self._blocks.loaded, np.array(keys, np.int64))
        return found | self._cache.held([key for key in keys if key not in found])


def _find_in(
    blocks: Sequence[protocol.RecordBlock], wanted: protocol.IntArray
) -> dict[int, MemoryRecord]:
    found: dict[int, MemoryRecord] = {}
    for block in blocks:
        places = lance_rows.look_up(block.keys, np.arange(len(block.keys)), wanted)
        held = wanted[places >= 0].tolist()
        if held:
            found |= zip(held, block.at(places[places >= 0]), strict=True)
    return found


# One state of a store: nothing of it changes under the reader.

_ROWS_READ = 8192
_SUCCESSOR_COLUMNS = ["superseded_by", "session", *OWNER_FIELDS]
_HISTORY: Filter = Not(protocol.CURRENT)


class StateGone(StoreError):
    """The state that was being read was purged, or merged away long after it was current."""


@dataclass(frozen=True, slots=True)
class KeptMemory:
    """One memory as the store keeps it, without its vectors.

    Attributes:
        key: Number of its row.
        record: The memory, or an earlier version of one.
        fingerprint: What identifies it where the caller gave no id; None where one was given.
    """

    key: int
    record: MemoryRecord
    fingerprint: str | None


class LanceSnapshot:
    """The newest state of a store at the moment of opening, and no later one.

    It holds no lock, so others go on writing. Its files stay for a minute after they were
    replaced, unless the store is purged or repaired; then reading raises `StateGone`.
    """

    def __init__(self, uri: str, *, version: int | None = None) -> None:
        """Open a state of the store at a Lance URI.

        Args:
            uri: Where it is.
            version: Number of the state; None for the newest.

        Raises:
            StoreError: There is no store, or it was not written by ekphory.
        """
        self._uri = uri
        with lance_table.translate_lance_errors("open", uri):
            self._table = lance_table.connect(uri).open_table(TABLE)
            self.version = int(self._table.version) if version is None else version
            self._table.checkout(self.version)
        self.identity: protocol.StoreIdentity = lance_rows.read_identity(
            self._table.schema, where=uri
        )

    def count(self, where: Filter) -> int:
        """Return how many memories match, history included."""
        with self._translate_errors():
            return int(self._table.count_rows(f"passage = 0 AND ({to_lance_sql(where)})"))

    def fragments(self) -> int:
        """Return how many data files there are at the least."""
        with self._translate_errors():
            statistics: Any = self._table.stats()
        return int(statistics["fragment_stats"]["num_fragments"])

    def index_folders(self) -> set[str]:
        """Return the names of the folders in which its indexes are."""
        with self._translate_errors():
            found = [index.index_uuid for index in self._table.list_indices()]
        return {str(folder) for folder in found if folder is not None}

    def rows(self, where: Filter) -> protocol.IntArray:
        """Return where the current matching memories are, in the order of writing."""
        parts = [
            np.stack([lance_rows.integers(part[name], missing=0) for name in ("key", "_rowid")])
            for part in self._stream(And((where, protocol.CURRENT)), ["key"])
        ]
        keys, rows = np.concatenate([np.empty((2, 0), np.int64), *parts], axis=1)
        return np.asarray(rows[np.argsort(keys)])

    def take(self, rows: protocol.IntArray) -> list[KeptMemory]:
        """Read the memories at these places, in the order in which they were written."""
        if len(rows) == 0:
            return []
        columns = [*lance_rows.keyed_record_columns(self.identity), "fingerprint"]
        with self._translate_errors():
            taken = self._table.take_row_ids(rows.tolist()).select(columns).to_arrow()
        found = taken.sort_by("key")
        keys, fingerprints = (found[name].to_pylist() for name in ("key", "fingerprint"))
        return list(map(KeptMemory, keys, lance_rows.to_records(found), fingerprints))

    def places(self, columns: Sequence[str]) -> pa.Table:
        """Return some columns of all rows, and `_rowid`, by which `take_stored` reads them."""
        with self._translate_errors():
            query = self._table.search().limit(lance_table.ALL_ROWS)
            return query.select(list(columns)).with_row_id(True).to_arrow()

    def take_stored(self, rows: protocol.IntArray) -> list[protocol.StoredMemory]:
        """Read memories with all that is derived from them, from all of their rows, by key."""
        with self._translate_errors():
            taken = self._table.take_row_ids(rows.tolist()).to_arrow()
            dimension = self.identity.embedder.dimension
            return lance_rows.to_stored(taken, dimension=dimension)

    def successors(self, where: Filter) -> Iterator[tuple[int, tuple[str | None, ...]]]:
        """Yield where every matching earlier version is, and which memory it is a version of.

        Yields:
            Its place; then the id of the memory, the session, and the owner's fields.
        """
        for part in self._stream(And((where, _HISTORY)), _SUCCESSOR_COLUMNS):
            columns = [part[name].to_pylist() for name in ("_rowid", *_SUCCESSOR_COLUMNS)]
            for row, *successor in zip(*columns, strict=True):
                yield row, tuple(successor)

    def _stream(self, where: Filter, columns: list[str]) -> Iterator[pa.Table]:
        """Read some columns and `_rowid` of the matching memories, piece by piece."""
        condition = f"passage = 0 AND ({to_lance_sql(where)})"
        with self._translate_errors():
            query = (
                self._table.search().where(condition, prefilter=True).limit(lance_table.ALL_ROWS)
            )
            for batch in query.select(columns).with_row_id(True).to_batches(_ROWS_READ):
                yield pa.Table.from_batches([batch])

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            with lance_table.translate_lance_errors("read", self._uri):
                yield
        except StoreError as error:
            if "not found" not in str(error).lower():
                raise
            raise StateGone(
                f"{self._uri}: the store was purged or repaired while version {self.version} "
                "of it was being read. Run the command again."
            ) from error


# The files of one state, held open so that none can vanish.

TABLE_FOLDER = f"{TABLE}.lance"


@dataclass(frozen=True, slots=True)
class HeldFile:
    """One file of a state.

    Attributes:
        path: Where it is below the store's directory, with forward slashes.
        length: In bytes; Lance never changes a file.
        stream: Its content, open, so that it stays when the file is removed.
    """

    path: str
    length: int
    stream: IO[bytes]


@dataclass(frozen=True, slots=True)
class StateFiles:
    """One state of a store as files.

    Attributes:
        version: Its number.
        identity: What the store was made with.
        memories, history: How many memories it holds, and how many earlier versions.
        files: All that it needs, and nothing of other states.
    """

    version: int
    identity: protocol.StoreIdentity
    memories: int
    history: int
    files: tuple[HeldFile, ...]


@contextmanager
def hold_newest_state(directory: Path) -> Iterator[StateFiles]:
    """Open all files of the newest state, for as long as the block lasts.

    The writer's lock is held for the milliseconds that this takes, since whoever removes files
    holds it. What is open then stays readable, whatever is merged or purged.

    Raises:
        StoreLocked: Another process has been writing for over a minute.
        StoreError: The store cannot be read, or has too many files to open.
    """
    with ExitStack() as opened:
        with DirectoryLock(directory).held(), _translate_file_errors(directory):
            state = LanceSnapshot(str(directory))
            manifest = lance_table.find_manifest(directory / TABLE_FOLDER, state.version)
            content = manifest.read_bytes()
            needed = [manifest, *lance_table.list_needed_files(directory / TABLE_FOLDER, content)]
            needed += _list_ledger_files(directory)
            files = tuple(_hold(path, directory, opened) for path in needed)
            _check(state, files, directory)
            memories, history = state.count(protocol.CURRENT), state.count(_HISTORY)
        yield StateFiles(state.version, state.identity, memories, history, files)


def _list_ledger_files(directory: Path) -> list[Path]:
    """Return the files of the ledger's newest state; none where there is no ledger."""
    if not has_ledger(str(directory)):
        return []
    table = directory / LEDGER_FOLDER
    manifests = lance_table.find_manifests(table / "_versions")
    manifest = manifests[max(manifests)]
    return [manifest, *lance_table.list_needed_files(table, manifest.read_bytes())]


def _check(state: LanceSnapshot, files: tuple[HeldFile, ...], directory: Path) -> None:
    folders = {PurePosixPath(held.path).parent.name for held in files}
    data = sum(held.path.startswith(f"{TABLE_FOLDER}/data/") for held in files)
    if data < state.fragments() or not state.index_folders() <= folders:
        raise StoreError(
            f"{directory}: files of version {state.version} are missing. "
            "`ekphory doctor` tells the state of the store."
        )


def _hold(path: Path, directory: Path, opened: ExitStack) -> HeldFile:
    stream = opened.enter_context(path.open("rb"))
    return HeldFile(
        path.relative_to(directory).as_posix(), os.fstat(stream.fileno()).st_size, stream
    )


@contextmanager
def _translate_file_errors(directory: Path) -> Iterator[None]:
    """Turn what the system raises about files into a `StoreError`."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise StoreError(
                f"{error.filename or directory}: cannot be read ({error.strerror}). `ekphory "
                "doctor --verify` names what is damaged, and `ekphory restore` brings a backup "
                "back."
            ) from error
        raise StoreError(
            f"{directory}: has more files than may be open at once. Merge them with "
            "`ekphory doctor --repair`, or raise the limit with `ulimit -n`."
        ) from error
