"""What was measured, as plain values that go to JSON as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Latency:
    """How long one kind of call took, in milliseconds."""

    p50: float
    p95: float
    count: int

    @classmethod
    def of(cls, milliseconds: Sequence[float]) -> Latency:
        """Summarise at least one sample."""
        p50, p95 = np.percentile(milliseconds, [50, 95])
        return cls(round(float(p50), 3), round(float(p95), 3), len(milliseconds))


@dataclass(frozen=True, slots=True)
class WriteSpeed:
    """How fast batches of 256 became durable.

    Attributes:
        rows: How many were written.
        per_second: With upkeep (merging files), without building the vector index.
        upkeep_seconds: Of that, upkeep.
        index_seconds: Building vector indexes, beside.
    """

    rows: int
    per_second: float
    upkeep_seconds: float
    index_seconds: float


@dataclass(frozen=True, slots=True)
class SystemReport:
    """One system at one size.

    Attributes:
        name: `ekphory`, `lancedb`, or a peer.
        fill: Writing with vectors that were there already.
        write: Writing with the model; for a peer computed from `fill` and the model's own speed.
        add: One memory a call, with the model; None where it was not measured.
        cold: First search of a scope in a fresh process whose model is loaded.
        warm: Distinct queries after that, with the query's embedding.
        stages: Warm time by stage.
        recall: Share of the exact nearest that the dense arm finds, by k.
        short: Searches that gave fewer hits than the scope could, for k of 10, 100 and 1,000.
        index_seconds: Waited for the vector index after the last write; None where none is due.
        index_rows: Rows that the vector index covers.
        bytes: On disk.
        peak_bytes: Most memory of the process, by phase; empty where it cannot be read.
        start_up: Milliseconds of a fresh process, by step; the median.
        fragments, versions: Data files and versions kept when searches begin, where known.
    """

    name: str
    fill: WriteSpeed
    write: WriteSpeed | None
    add: Latency | None
    cold: Latency
    warm: Latency
    stages: Mapping[str, Latency]
    recall: Mapping[str, float]
    short: int | None
    index_seconds: float | None
    index_rows: int | None
    bytes: int
    peak_bytes: Mapping[str, int]
    start_up: Mapping[str, float]
    fragments: int | None = None
    versions: int | None = None


@dataclass(frozen=True, slots=True)
class SizeReport:
    """All systems with the same memories.

    Attributes:
        rows: Memories in each store.
        scopes: Projects that they are spread over.
        systems: ekphory first.
        ratios: How many times faster ekphory is, by system and measure.
    """

    rows: int
    scopes: int
    systems: tuple[SystemReport, ...]
    ratios: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class EmbeddingSpeed:
    """The model alone.

    Attributes:
        embedder: Its identity.
        texts_per_second: Passages in batches of 256.
        query: One query.
        peak_bytes: Most memory of a process that only embeds.
    """

    embedder: str
    texts_per_second: float
    query: Latency
    peak_bytes: int | None


@dataclass(frozen=True, slots=True)
class BenchReport:
    """Everything that one run measured.

    Attributes:
        machine, versions, options: Under what conditions.
        embedding: The model alone.
        sizes: By layout, ascending.
        peers: Beside other products; None when not asked for.
        skipped: What could not be measured, with the reason.
        seconds: How long it all took.
    """

    machine: Mapping[str, str | int | float]
    versions: Mapping[str, str]
    options: Mapping[str, Any]
    embedding: EmbeddingSpeed
    sizes: tuple[SizeReport, ...]
    peers: SizeReport | None
    skipped: Mapping[str, str]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Give plain data, for JSON."""
        return asdict(self)


def ratios(systems: Sequence[SystemReport]) -> dict[str, dict[str, float]]:
    """How many times faster the first system is than each other, by measure."""
    first = systems[0]
    return {other.name: _ratios(first, other) for other in systems[1:]}


def _ratios(first: SystemReport, other: SystemReport) -> dict[str, float]:
    found = {
        "fill": first.fill.per_second / other.fill.per_second,
        "search p50": other.warm.p50 / first.warm.p50,
        "search p95": other.warm.p95 / first.warm.p95,
        "cold search p50": other.cold.p50 / first.cold.p50,
        "bytes": other.bytes / first.bytes,
    }
    if first.write is not None and other.write is not None:
        found["write"] = first.write.per_second / other.write.per_second
    if first.add is not None and other.add is not None:
        found["add p50"] = other.add.p50 / first.add.p50
    return {name: round(value, 3) for name, value in found.items()}
