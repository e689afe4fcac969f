"""The fifteen stages of a search in a row: those that ran, were skipped, or are not there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ekphory.retrieval.description import StageDescription, describe
from ekphory.retrieval.pipeline import Pipeline
from ekphory.trace import StageStatus, StageTrace, Trace

RowStatus = StageStatus | Literal["absent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaterfallRow:
    """One stage.

    Attributes:
        number: Place in the canonical order; 0 for the opening of the scope.
        name: The stage's name.
        status: As in `StageTrace`; `absent` where the preset does without it.
        reason: Why it was skipped or degraded.
        candidates_in, candidates_out: Number of candidates before and after.
        begins: Milliseconds from the beginning of the search.
        milliseconds: Time that it took.
        purpose: What it does, in a sentence.
        settings: Its settings by name.
        detail: What it has to say about this search.
    """

    number: int
    name: str
    status: RowStatus
    reason: str | None = None
    candidates_in: int = 0
    candidates_out: int = 0
    begins: float = 0.0
    milliseconds: float = 0.0
    purpose: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    detail: Mapping[str, Any] = field(default_factory=dict)


def waterfall(trace: Trace, pipeline: Pipeline) -> tuple[WaterfallRow, ...]:
    """Give all stages in the canonical order.

    Args:
        trace: What a search did.
        pipeline: The preset that it was made with.
    """
    described = {(each.number, each.name): each for each in describe(pipeline)}
    rows: list[WaterfallRow] = []
    begins = 0.0
    for stage in trace.stages:
        rows.append(_ran(stage, described.pop((stage.number, stage.name), None), begins))
        begins += stage.milliseconds
    rows += (
        # Of an empty query no stage runs, whatever the preset has.
        _skipped(each, begins)
        if each.used
        else WaterfallRow(number=each.number, name=each.name, status="absent")
        for each in described.values()
    )
    return tuple(sorted(rows, key=lambda row: row.number))


def _ran(stage: StageTrace, described: StageDescription | None, begins: float) -> WaterfallRow:
    return WaterfallRow(
        number=stage.number,
        name=stage.name,
        status=stage.status,
        reason=stage.reason,
        candidates_in=stage.candidates_in,
        candidates_out=stage.candidates_out,
        begins=begins,
        milliseconds=stage.milliseconds,
        purpose="" if described is None else described.purpose,
        settings={} if described is None else _shown(described.settings),
        detail=dict(stage.detail),
    )


def _skipped(described: StageDescription, begins: float) -> WaterfallRow:
    return WaterfallRow(
        number=described.number,
        name=described.name,
        status="skipped",
        reason="nothing was asked",
        begins=begins,
        purpose=described.purpose,
        settings=_shown(described.settings),
    )


def _shown(settings: Mapping[str, object]) -> dict[str, Any]:
    """Only what can be shown: numbers, names, and lists and tables of them."""
    return {
        name: value
        for name, value in settings.items()
        if value is None or isinstance(value, bool | int | float | str | list | dict)
    }
