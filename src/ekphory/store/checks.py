"""Checks of a store: every row against its checksum, and what its state means in sentences."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from ekphory.errors import StoreError
from ekphory.store import lance_rows
from ekphory.store.lance_table import cause_of
from ekphory.store.protocol import Damage, IntArray, StoreHealth, Verification
from ekphory.types import Progress, decode_metadata

# Checksums of rows.

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
        on_progress: Called with how many rows were read, and of how many.
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
        damage += _list_damage(tally, files.get(fragment))
    return Verification(len(rows), unverified, tuple(damage))


def _verify(rows: IntArray, take: Take, columns: list[str], dimension: int, tally: _Tally) -> None:
    try:
        table = take(rows.tolist(), [*columns, "_rowid"])
        read = list(lance_rows.rows_with_vectors(table, dimension=dimension))
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
        if row.get(lance_rows.CHECKSUM) is None:
            tally.unverified += 1
        elif row[lance_rows.CHECKSUM] != lance_rows.row_checksum(
            row, vector
        ) or not _metadata_agree(row):
            tally.found["is not what was written"][number] = row["id"] or ""


def _metadata_agree(row: dict[str, Any]) -> bool:
    """Whether the metadata that filters read are those of the memory."""
    record, metadata = row.get(lance_rows.RECORD), row.get("metadata")
    if not isinstance(record, str):
        return not metadata
    try:
        return lance_rows.decode_record(record).metadata == decode_metadata(metadata)
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


def _list_damage(tally: _Tally, file: str | None) -> Iterator[Damage]:
    for problem, found in tally.found.items():
        named = tuple(sorted({memory_id for memory_id in found.values() if memory_id}))
        yield Damage(file, named, len(found), problem)


# Findings.

_MANY_SMALL_FRAGMENTS = 64
_MANY_VERSIONS = 512
_INDEX_FROM = 20_000
_COVERED_ENOUGH = 0.7
_SCOPES_NAMED = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        subject: What was looked at.
        state: Whether it is fine, worth knowing, something that `--repair` mends, or something that
            what the sentence names mends.
        sentence: The finding, for people.
    """

    subject: str
    state: Literal["fine", "note", "repairable", "wanting"]
    sentence: str


def examine(health: StoreHealth) -> tuple[Finding, ...]:
    """Judge every part of a store's state."""
    contents = (
        f"{_format_count(health.memories, 'memory', 'memories')}, "
        f"{_format_count(health.history, 'earlier version', 'earlier versions')} and "
        f"{_format_count(health.vectors, 'vector', 'vectors')}."
    )
    upkeep = Finding("upkeep", "fine", "Upkeep succeeds.")
    if health.upkeep_failure is not None:
        upkeep = Finding("upkeep", "repairable", health.upkeep_failure)
    return (
        Finding("contents", "fine", contents),
        _describe_size(health),
        _describe_fragments(health),
        _describe_versions(health),
        _describe_index(health),
        _describe_vectors(health),
        _describe_orphans(health),
        upkeep,
    )


def _describe_size(health: StoreHealth) -> Finding:
    if health.bytes is None:
        return Finding("bytes", "note", "Its size is not measured: it is not a local directory.")
    each = f", {health.bytes / health.memories:,.0f} bytes a memory" if health.memories else ""
    return Finding("bytes", "fine", f"{_format_size(health.bytes)} on disk{each}.")


def _describe_fragments(health: StoreHealth) -> Finding:
    files = _format_count(health.fragments, "data file", "data files")
    small = health.small_fragments
    if small > _MANY_SMALL_FRAGMENTS:
        sentence = f"{files}, of which {small:,} are small; merged, they read faster."
        return Finding("fragments", "repairable", sentence)
    return Finding("fragments", "fine", f"{files}, {small:,} of them small.")


def _describe_versions(health: StoreHealth) -> Finding:
    kept = _format_count(health.versions, "version", "versions")
    if health.versions > _MANY_VERSIONS:
        return Finding("versions", "repairable", f"{kept} are kept on disk; old ones can go.")
    return Finding("versions", "fine", f"{kept} kept on disk.")


def _describe_index(health: StoreHealth) -> Finding:
    covered = health.vector_index_rows
    if covered is None:
        if health.vectors < _INDEX_FROM:
            sentence = "No vector index, and none needed: so few vectors are searched exactly."
            return Finding("index", "fine", sentence)
        condition = f"once a scope of over {_INDEX_FROM:,} vectors is searched"
        return Finding("index", "note", f"No vector index yet; it is built {condition}.")
    share = covered / health.vectors if health.vectors else 1.0
    sentence = f"The vector index covers {covered:,} of {health.vectors:,} vectors ({share:.0%})"
    if share < _COVERED_ENOUGH:
        return Finding("index", "repairable", f"{sentence}; the others are scanned.")
    return Finding("index", "fine", f"{sentence}.")


def _describe_vectors(health: StoreHealth) -> Finding:
    beside = ""
    if health.previous_embedder is not None:
        beside = (
            f" Those of {health.previous_embedder} are kept: `ekphory reembed --undo` goes back to "
            "them, `--drop-previous` removes them."
        )
    for name in health.next_embedders:
        beside += f" Making them with {name} has begun; `ekphory reembed` goes on."
    if health.embedder_in_use is not None:
        sentence = (
            f"The vectors are of {health.embedder}, which is not at hand, so searches go by words "
            f"alone. `ekphory reembed` makes them anew with {health.embedder_in_use}."
        )
        return Finding("embedder", "wanting", sentence + beside)
    if health.unembedded:
        count = _format_count(health.unembedded, "memory has", "memories have")
        sentence = f"{count} no vector of {health.embedder} yet; `ekphory reembed` makes it."
        return Finding("embedder", "wanting", sentence + beside)
    state: Literal["fine", "note"] = "note" if beside else "fine"
    return Finding("embedder", state, f"The vectors are of {health.embedder}.{beside}")


def _describe_orphans(health: StoreHealth) -> Finding:
    scopes = health.orphaned_scopes
    if not scopes:
        return Finding("scopes", "fine", "Every scope holds a memory that can be found.")
    named = ", ".join(scopes[:_SCOPES_NAMED]) + (", …" if len(scopes) > _SCOPES_NAMED else "")
    sentence = (
        f"{_format_count(len(scopes), 'scope holds', 'scopes hold')} nothing but expired memories "
        f"or history: {named}. Wipe them with `ekphory forget --purge` if they are not wanted."
    )
    return Finding("scopes", "note", sentence)


def _format_count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _format_size(size: int) -> str:
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} bytes"
