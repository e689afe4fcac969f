"""What a search did, stage by stage; the text of memories is never in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

StageStatus = Literal["ran", "skipped", "degraded"]


@dataclass(frozen=True, slots=True)
class StageTrace:
    """One stage of one search.

    Attributes:
        number: Place in the canonical order of fifteen stages; 0 for what lies outside it.
        name: The stage's name.
        status: `degraded` when the stage used something lesser than it should have.
        reason: Why it was skipped or degraded.
        candidates_in, candidates_out: Number of candidates before and after.
        milliseconds: Time that the stage took.
        detail: What the stage has to say about itself: settings and counts.
    """

    number: int
    name: str
    status: StageStatus
    reason: str | None
    candidates_in: int
    candidates_out: int
    milliseconds: float
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Trace:
    """The stages of one search, in the order in which they ran."""

    preset: str
    stages: tuple[StageTrace, ...] = ()

    @property
    def milliseconds(self) -> float:
        """Time that all stages took together."""
        return sum(stage.milliseconds for stage in self.stages)

    @property
    def degraded(self) -> bool:
        """Whether any stage used something lesser than it should have."""
        return any(stage.status == "degraded" for stage in self.stages)

    def to_dict(self) -> dict[str, Any]:
        """Give the trace as plain data, for JSON."""
        stages = [_plain(stage) for stage in self.stages]
        return {"preset": self.preset, "stages": stages, "milliseconds": self.milliseconds}


def _plain(stage: StageTrace) -> dict[str, Any]:
    """Do as `dataclasses.asdict` does, in a tenth of its time."""
    named = {entry.name: getattr(stage, entry.name) for entry in fields(stage)}
    return named | {"detail": dict(stage.detail)}
