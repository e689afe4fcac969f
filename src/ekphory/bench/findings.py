"""What is gathered of one system while it is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ekphory.bench.results import Latency, SystemReport, WriteSpeed


@dataclass(slots=True)
class Writes:
    """Sums over the stretches that one system wrote."""

    rows: int = 0
    seconds: float = 0.0
    upkeep_seconds: float = 0.0
    index_seconds: float = 0.0

    def note(self, answer: Mapping[str, Any]) -> None:
        """Add one stretch."""
        for name in ("rows", "seconds", "upkeep_seconds", "index_seconds"):
            setattr(self, name, getattr(self, name) + answer[name])

    def speed(self) -> WriteSpeed:
        """Give the speed of all stretches together."""
        return WriteSpeed(
            rows=self.rows,
            per_second=round(self.rows / (self.seconds + self.upkeep_seconds), 1),
            upkeep_seconds=round(self.upkeep_seconds, 2),
            index_seconds=round(self.index_seconds, 2),
        )


@dataclass(slots=True)
class Findings:
    """What is known so far of one system at one size."""

    fill: Writes = field(default_factory=Writes)
    write: Writes = field(default_factory=Writes)
    index: Mapping[str, Any] = field(default_factory=dict)
    bytes: int = 0
    cold: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)
    stages: dict[str, list[float]] = field(default_factory=dict)
    recall: Mapping[str, Any] = field(default_factory=dict)
    adds: list[float] = field(default_factory=list)
    peaks: dict[str, int] = field(default_factory=dict)
    start_up: Mapping[str, float] = field(default_factory=dict)

    def note_peak(self, phase: str, answer: Mapping[str, Any]) -> None:
        """Keep how much memory the process has held by now."""
        if answer["peak_bytes"] is not None:
            self.peaks[phase] = answer["peak_bytes"]

    def note_search(self, answer: Mapping[str, Any]) -> None:
        """Add one warm search."""
        self.warm.append(answer["milliseconds"])
        for stage, milliseconds in answer["stages"].items():
            self.stages.setdefault(stage, []).append(milliseconds)
        self.note_peak("search", answer)

    def report(self, name: str) -> SystemReport:
        """Summarise."""
        return SystemReport(
            name=name,
            fill=self.fill.speed(),
            write=self.write.speed() if self.write.rows else None,
            add=Latency.of(self.adds) if self.adds else None,
            cold=Latency.of(self.cold),
            warm=Latency.of(self.warm),
            stages={stage: Latency.of(each) for stage, each in self.stages.items()},
            recall=self.recall.get("recall", {}),
            short=self.recall.get("short"),
            index_seconds=self.index.get("seconds"),
            index_rows=self.index.get("rows"),
            bytes=self.bytes,
            peak_bytes=self.peaks,
            start_up=self.start_up,
            fragments=self.index.get("fragments"),
            versions=self.index.get("versions"),
        )
