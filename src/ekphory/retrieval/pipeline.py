"""A pipeline: a list of stages, checked when it is built, traced when it runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from ekphory.errors import InvalidInput
from ekphory.retrieval.stage import Stage
from ekphory.retrieval.state import Candidates, SearchState
from ekphory.trace import StageTrace, Trace

_SHOWN = 3


class Pipeline:
    """Runs its stages in order.

    Args:
        name: What traces and error messages call it.
        stages: In the canonical order.
        summary: What it is good for, in a sentence.

    Raises:
        InvalidInput: Two stages stand in the wrong order, or a stage lacks what it needs.
    """

    def __init__(self, name: str, stages: Sequence[Stage], *, summary: str = "") -> None:
        _check(name, stages)
        self.name = name
        self.summary = summary
        self.stages = tuple(stages)

    def run(self, state: SearchState) -> tuple[SearchState, Trace]:
        """Run all stages; returns the last state and what each stage did."""
        traces: list[StageTrace] = []
        for stage in self.stages:
            state, trace = _traced(stage, state)
            traces.append(trace)
        return state, Trace(self.name, tuple(traces))


def _traced(stage: Stage, before: SearchState) -> tuple[SearchState, StageTrace]:
    started = time.perf_counter()
    skipped = stage.skip_reason(before)
    after = before if skipped else stage.run(replace(before, notes=None, degraded=None))
    ended = time.perf_counter()
    return after, StageTrace(
        number=stage.number,
        name=stage.name,
        status="skipped" if skipped else "degraded" if after.degraded else "ran",
        reason=skipped or after.degraded,
        candidates_in=len(before.candidates),
        candidates_out=len(after.candidates),
        milliseconds=(ended - started) * 1000,
        detail={} if skipped else {**(after.notes or {}), **_best(before, after)},
    )


def _best(before: SearchState, after: SearchState) -> dict[str, list[float]]:
    """Give the best ranking values, before as well where the stage changed them."""
    if after.candidates is before.candidates:
        return {}
    earlier, later = _first_values(before.candidates), _first_values(after.candidates)
    changed = {"best_before": earlier} if earlier and earlier != later else {}
    return {**changed, "best": later}


def _first_values(candidates: Candidates) -> list[float]:
    return [round(value, 4) for value in candidates.ranking[:_SHOWN].tolist()]


def _check(name: str, stages: Sequence[Stage]) -> None:
    given: set[str] = set()
    for earlier, later in zip([None, *stages], stages, strict=False):
        if earlier is not None and earlier.number > later.number:
            raise InvalidInput(
                "stages",
                f"{earlier.name}, {later.name}",
                f"in pipeline {name!r} stage {earlier.number} stands before {later.number}",
                "Put them into the canonical order",
            )
        missing = later.needs - given
        if missing:
            raise InvalidInput(
                "stages",
                later.name,
                f"in pipeline {name!r} it needs {sorted(missing)}, which nothing before it gives",
                "Add a stage that gives it",
            )
        given |= later.gives
