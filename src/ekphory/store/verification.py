"""Reading every row of a store and comparing it with its checksum."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from ekphory.errors import StoreError
from ekphory.filters.metadata_encoding import decode_metadata
from ekphory.store.lance_errors import cause_of
from ekphory.store.record_text import decode_record
from ekphory.store.row_checksums import CHECKSUM, RECORD, row_checksum, rows_with_vectors
from ekphory.store.store import Damage, IntArray, Progress, Verification

Take = Callable[[list[int], list[str]], pa.Table]
"""Reads some columns of the rows with these row ids."""

_ROWS_READ = 512
_MOST_FAILED_READS = 200
"""So often a file is read in ever smaller parts to find which rows of it are damaged."""


@dataclass(slots=True)
class _Tally:
    unverified: int = 0
    failed_reads: int = 0
    found: dict[str, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    """By problem: the memories' ids by row id."""


def verify_rows(
    places: pa.Table,
    take: Take,
    *,
    dimension: int,
    columns: list[str],
    files: dict[int, str],
    on_progress: Progress,
) -> Verification:
    """Read all rows and compare them with their checksums.

    Args:
        places: The columns _rowid and _rowaddr of all rows.
        take: Reads them; a `StoreError` is taken for damage.
        dimension: Of the vectors.
        columns: All columns of the table.
        files: The data file of each fragment, as far as known.
        on_progress: Told how far it is.
    """
    rows = places["_rowid"].to_numpy().astype(np.int64)
    fragments = (places["_rowaddr"].to_numpy() >> np.uint64(32)).astype(np.int64)
    done, unverified = 0, 0
    damage: list[Damage] = []
    for fragment in np.unique(fragments).tolist():
        tally = _Tally()
        its_rows = rows[fragments == fragment]
        for start in range(0, len(its_rows), _ROWS_READ):
            part = its_rows[start : start + _ROWS_READ]
            _verify(part, take, columns, dimension, tally)
            done += len(part)
            on_progress(done, len(rows))
        unverified += tally.unverified
        damage += _told(tally, files.get(fragment))
    return Verification(len(rows), unverified, tuple(damage))


def _verify(rows: IntArray, take: Take, columns: list[str], dimension: int, tally: _Tally) -> None:
    try:
        table = take(rows.tolist(), [*columns, "_rowid"])
        read = list(rows_with_vectors(table, dimension=dimension))
    except (StoreError, ValueError, TypeError, OverflowError) as error:
        tally.failed_reads += 1
        if len(rows) == 1 or tally.failed_reads > _MOST_FAILED_READS:
            cause = cause_of(error.__cause__ or error)
            tally.found[f"cannot be read ({cause})"].update(_ids(rows, take))
            return
        for half in np.array_split(rows, 2):
            _verify(half, take, columns, dimension, tally)
        return
    for row, vector in read:
        number = row.pop("_rowid")
        if row.get(CHECKSUM) is None:
            tally.unverified += 1
        elif row[CHECKSUM] != row_checksum(row, vector) or not _metadata_agree(row):
            tally.found["is not what was written"][number] = row["id"] or ""


def _metadata_agree(row: dict[str, object]) -> bool:
    """Whether the metadata that filters read are those of the memory."""
    record, metadata = row.get(RECORD), row.get("metadata")
    if not isinstance(record, str):
        return not metadata
    try:
        text = metadata.decode() if isinstance(metadata, bytes) else metadata
        return decode_record(record).metadata == decode_metadata(text if text else None)  # type: ignore[arg-type]
    except (ValueError, TypeError, KeyError, AttributeError):
        return False


def _ids(rows: IntArray, take: Take) -> Iterator[tuple[int, str]]:
    """Yield the row ids, each with the memory's id if that can be read."""
    try:
        found = take(rows.tolist(), ["id", "_rowid"])
        ids = dict(zip(found["_rowid"].to_pylist(), found["id"].to_pylist(), strict=True))
    except (StoreError, ValueError):
        ids = {}
    for row in rows.tolist():
        yield row, ids.get(row) or ""


def _told(tally: _Tally, file: str | None) -> Iterator[Damage]:
    for problem, found in tally.found.items():
        named = tuple(sorted({memory_id for memory_id in found.values() if memory_id}))
        yield Damage(file, named, len(found), problem)
