"""Upkeep of a Lance table: merging files, dropping versions, extending the index."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import lancedb
import pyarrow as pa

from ekphory.errors import StoreError, StoreLocked
from ekphory.scope import OWNER_FIELDS, owner_name
from ekphory.store.lance_index import FEWEST_ROWS, VectorIndex
from ekphory.store.lance_table import (
    ALL_ROWS,
    connect,
    find_manifests,
    is_remote,
    list_needed_files,
)
from ekphory.store.protocol import RESIDENT_ROWS, StoreHealth
from ekphory.store.writer import DirectoryLock

# Removing files that no version needs: left by kills, merges and purges.
#
# Lance's own cleanup goes by the clock and passes over what a killed write left behind. Here
# versions are chosen by their number, and a file stays only if a version that is kept names it.

INDEX_LOCK_FILE = ".ekphory.index.lock"
"""Held while an index is built, which happens beside the writer's lock."""
_HINT = "latest_version_hint.json"


def index_lock(directory: Path) -> DirectoryLock:
    """Return the lock that whoever builds an index holds, so that its files are left alone."""
    return DirectoryLock(directory, name=INDEX_LOCK_FILE)


def sweep_table(table: Path, *, keep_from: int, seconds: float | None = None) -> None:
    """Remove what no version from `keep_from` on needs; the caller holds the writer's lock.

    Args:
        table: The folder of the Lance table.
        keep_from: The oldest version that stays readable; the newest one always does.
        seconds: How long an index that is being built is waited for; None for a minute.

    Raises:
        StoreLocked: It is still being built then.
        StoreError: A file cannot be read or removed.
    """
    with index_lock(table.parent).held(seconds=seconds):
        _remove(_find_unneeded(table, keep_from=keep_from), table=table)


def _find_unneeded(table: Path, *, keep_from: int) -> list[Path]:
    manifests = find_manifests(table / "_versions")
    newest = max(manifests, default=None)
    if newest is None:
        raise StoreError(
            f"{table / '_versions'}: holds no version of the table, so nothing is removed. "
            "Restore a backup with `ekphory restore`."
        )
    kept = [path for number, path in manifests.items() if number >= min(keep_from, newest)]
    needed = {table / "_versions" / _HINT, *kept}
    needed.update(list_needed_files(table, *(path.read_bytes() for path in kept)))
    return [path for path in table.rglob("*") if path.is_file() and path not in needed]


def _remove(files: Sequence[Path], *, table: Path) -> None:
    try:
        for path in files:
            path.unlink()
    except OSError as error:
        raise StoreError(
            f"{error.filename}: cannot be removed ({error.strerror}). Check the permissions of the "
            "store's folder, and repeat."
        ) from error
    for folder in sorted((table / "_indices").glob("*/"), reverse=True):
        # One that holds a file stays.
        with suppress(OSError):
            folder.rmdir()


# Upkeep by policy.

STABLE_ROW_IDS = {"new_table_enable_stable_row_ids": "true"}
"""Row ids survive merging, so that what was read of a row's place stays true."""

# Merging rewrites the file it merges into, so in a large table it waits until that is worth it.
_SMALL_TABLE = 20_000
_MOST_COMMITS = 256
WHEN_BUSY, WHEN_QUIET = (64, 0.25), (8, 0.02)
"""Files are merged after so many commits, and such a growth."""
_UNCOVERED_SHARE = 0.3
# Another process may still read an older version; this long it stays readable.
_SECONDS_KEPT = 60.0
_VERSIONS_KEPT = timedelta(seconds=_SECONDS_KEPT)
# LanceDB warns of zero, and rounds what is shorter to it.
_NO_TIME = timedelta(milliseconds=1)
_READ_ROWS = 8192
_ALIVE = "superseded_by IS NULL AND (expires_at IS NULL OR expires_at > current_timestamp)"
Complete = Callable[[pa.RecordBatch], pa.RecordBatch]


class Upkeep:
    """Counts what was written since the last upkeep, and does what is due."""

    def __init__(
        self, uri: str, table: lancedb.table.Table, index: VectorIndex, *, commits: int
    ) -> None:
        """Take a table.

        Args:
            uri: Where it is.
            table: The table.
            index: Its vector index.
            commits: How many lie there unmerged, as those of processes that wrote once and ended.
        """
        self._uri = uri
        self._table = table
        self._index = index
        self._commits = commits
        self._rows = 0
        self._rows_in_all: int | None = None
        self._seen: tuple[float, int] | None = None
        """When this process saw which version as the newest: what is older is swept next."""

    @property
    def may_be_due(self) -> bool:
        """Whether so much has gathered that merging is due, as far as this process counted."""
        (commits, growth), rows = WHEN_BUSY, self._rows_in_all
        return self._commits >= commits and (rows is None or self._has_grown(rows, growth))

    def note_commit(self, rows: int) -> None:
        """Count one commit of so many rows."""
        self._commits += 1
        self._rows += rows
        if self._rows_in_all is not None:
            self._rows_in_all += rows

    def merge_after(self, commits: int, growth: float) -> bool:
        """Merge small files when so many have gathered; return whether it was done."""
        if self._commits < commits:
            return False
        self._rows_in_all = self._table.count_rows()
        if not self._has_grown(self._rows_in_all, growth):
            return False
        if self._rows_in_all >= FEWEST_ROWS:
            self._index.build_scalar()
        self._table.optimize(cleanup_older_than=_VERSIONS_KEPT)
        self._commits = self._rows = 0
        self._sweep_outdated()
        self._index.wanted |= self._index_is_outgrown()
        return True

    def build_index_if_due(self) -> None:
        """Build the index when a large scope was searched with too little of it covered."""
        if not self._index.wanted:
            return
        if is_remote(self._uri):
            self._index.build()
            return
        with index_lock(Path(self._uri)).held():
            self._index.build()

    def run_all(self) -> None:
        """Merge files, remove what no version needs, and rebuild the index now."""
        self._table.optimize(cleanup_older_than=_NO_TIME)
        self._commits = self._rows = 0
        self._sweep_all()
        if self._largest_owner() > RESIDENT_ROWS:
            self._index.build()

    def rewrite(self, schema: pa.Schema, name: str, *, completed: Complete) -> bool:
        """Write the living rows to new files and remove all others, whatever the clock says.

        The vector index goes with them; return whether there was one.

        Merging files would not do: Lance merges only where a good share of a file is deleted.

        Args:
            schema: Of the table that is written.
            name: Of the table.
            completed: Gives rows of an earlier schema version what they lack.

        Raises:
            StoreLocked: An index is being built; nothing was removed yet.
        """
        indexed = self._index.covered_rows() is not None
        reader = self._table.search().limit(ALL_ROWS).to_batches(_READ_ROWS)

        def batches() -> Iterator[pa.RecordBatch]:
            yield from (completed(batch) for batch in reader if batch.num_rows)

        none = completed(pa.RecordBatch.from_pylist([], schema=reader.schema))
        living = pa.RecordBatchReader.from_batches(
            none.schema.with_metadata(schema.metadata), batches()
        )
        connect(self._uri).create_table(
            name, data=living, mode="overwrite", storage_options=STABLE_ROW_IDS
        )
        self._table.checkout_latest()
        self._table.optimize(cleanup_older_than=_NO_TIME, delete_unverified=True)
        self._sweep_all()
        return indexed

    def rewrite_in_place(self) -> bool:
        """Write the living rows anew in one commit, which fails where another process has written.

        The vector index goes with them; return whether there was one. What a write that failed has
        left behind goes with Lance's own cleanup, after seven days: it may be of a write that is
        under way.
        """
        indexed = self._index.covered_rows() is not None
        # Those of ids and scopes hold what they were built of; they are built again with time.
        for index in self._table.list_indices():
            self._table.drop_index(index.name)
        self._table.update(values_sql={"passage": "passage"})
        self._table.optimize(cleanup_older_than=_NO_TIME)
        return indexed

    def health(self) -> StoreHealth:
        """Measure fragments, versions, bytes, coverage and scopes."""
        self._table.checkout_latest()
        statistics: Any = self._table.stats()
        fragments = statistics["fragment_stats"]
        return StoreHealth(
            memories=self._table.count_rows("passage = 0 AND superseded_by IS NULL"),
            history=self._table.count_rows("passage = 0 AND superseded_by IS NOT NULL"),
            vectors=self._table.count_rows(),
            fragments=fragments["num_fragments"],
            small_fragments=fragments["num_small_fragments"],
            versions=len(self._table.list_versions()),
            bytes=_bytes_on_disk(self._uri),
            vector_index_rows=self._index.covered_rows(),
            orphaned_scopes=tuple(sorted(self._owners("TRUE") - self._owners(_ALIVE))),
        )

    def _owners(self, condition: str) -> set[str]:
        query = self._table.search().limit(ALL_ROWS).select(list(OWNER_FIELDS)).where(condition)
        rows = query.to_arrow().group_by(list(OWNER_FIELDS)).aggregate([]).to_pylist()
        return {owner_name(row[name] for name in OWNER_FIELDS) for row in rows}

    def _index_is_outgrown(self) -> bool:
        rows = self._table.count_rows()
        if rows <= RESIDENT_ROWS:
            return False
        uncovered = rows - (self._index.covered_rows() or 0)
        wanting = uncovered > _UNCOVERED_SHARE * rows or self._index.is_outgrown(rows)
        return wanting and self._largest_owner() > RESIDENT_ROWS

    def _largest_owner(self) -> int:
        query = self._table.search().limit(ALL_ROWS).select([*OWNER_FIELDS, "key"])
        groups = query.to_arrow().group_by(list(OWNER_FIELDS)).aggregate([("key", "count")])
        return max(groups["key_count"].to_pylist(), default=0)

    def _sweep_all(self) -> None:
        if not is_remote(self._uri):
            sweep_table(self._folder, keep_from=self._checkout_newest())

    def _sweep_outdated(self) -> None:
        """Remove, once a minute, what only versions need that were outdated for that long.

        How long ago is counted by this process, whatever happens to the clock meanwhile.
        """
        if is_remote(self._uri):
            return
        now = time.monotonic()
        since, version = self._seen or (now, 0)
        if now - since >= _SECONDS_KEPT:
            # Where an index is being built, the next time will do.
            with suppress(StoreLocked):
                sweep_table(self._folder, keep_from=version, seconds=0)
        elif self._seen is not None:
            return
        self._seen = now, self._checkout_newest()

    def _checkout_newest(self) -> int:
        self._table.checkout_latest()
        return int(self._table.version)

    @property
    def _folder(self) -> Path:
        return Path(self._uri) / f"{self._table.name}.lance"

    def _has_grown(self, rows: int, growth: float) -> bool:
        return rows <= _SMALL_TABLE or self._commits >= _MOST_COMMITS or self._rows >= growth * rows


def _bytes_on_disk(uri: str) -> int | None:
    if is_remote(uri):
        return None
    return sum(entry.stat().st_size for entry in Path(uri).rglob("*") if entry.is_file())


def open_table(
    connection: lancedb.db.DBConnection, uri: str, name: str, schema: pa.Schema
) -> lancedb.table.Table:
    """Open a table of the database at `uri`, or make it where there is none."""
    # Opened, not listed: a table that is being made is listed before it can be opened.
    with suppress(ValueError):
        return connection.open_table(name)
    # Of two processes that make a table at once, one would replace what the other made and wrote.
    with _lock_making(uri):
        try:
            return connection.create_table(name, schema=schema, storage_options=STABLE_ROW_IDS)
        except ValueError:
            # Another process made it in between.
            return connection.open_table(name)


def _lock_making(uri: str) -> AbstractContextManager[None]:
    if is_remote(uri):
        return nullcontext()
    directory = Path(uri)
    directory.mkdir(parents=True, exist_ok=True)
    return DirectoryLock(directory).held()
