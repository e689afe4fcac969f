"""One state of a Lance store, read while others write, and what is kept of it in memory."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np
import pyarrow as pa

from ekphory.errors import StoreError
from ekphory.filters.lance_sql import to_lance_sql
from ekphory.filters.tree import And, Filter, Not
from ekphory.scope import OWNER_FIELDS
from ekphory.store import lance_rows, lance_table, protocol
from ekphory.store.lance import TABLE, TABLE_FOLDER
from ekphory.store.ledger import LEDGER_FOLDER, has_ledger
from ekphory.store.writer import DirectoryLock
from ekphory.types import MemoryRecord

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
        # It may be purged between its being found and its being opened.
        with self._translate_errors():
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

    def current_keys(self) -> frozenset[int]:
        """Return the keys of all current memories."""
        parts = self._stream(protocol.CURRENT, ["key"])
        return frozenset(key for part in parts for key in part["key"].to_pylist())

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
            if not lance_table.is_of_gone_version(error):
                raise
            raise StateGone(
                f"{self._uri}: the store was purged or repaired while version {self.version} "
                "of it was being read. Run the command again."
            ) from error


# The files of one state, held open so that none can vanish.


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
