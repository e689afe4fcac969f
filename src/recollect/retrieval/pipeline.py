"""A pipeline: a list of stages, checked when it is built, traced when it runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from recollect.errors import InvalidInput
from recollect.retrieval.stage import Stage
from recollect.retrieval.state import SearchState
from recollect.trace import StageTrace, Trace


class Pipeline:
    """Runs its stages in order.

    Raises:
        InvalidInput: Two stages stand in the wrong order, or a stage lacks what it needs.
    """

    def __init__(self, name: str, stages: Sequence[Stage]) -> None:
        _check(name, stages)
        self.name = name
        self.stages = tuple(stages)

    def run(self, state: SearchState) -> tuple[SearchState, Trace]:
        """Run all stages; returns the last state and what each stage did."""
        traces: list[StageTrace] = []
        for stage in self.stages:
            before = len(state.candidates)
            started = time.perf_counter()
            reason = stage.skip_reason(state)
            state = state if reason else stage.run(replace(state, notes=None))
            traces.append(
                StageTrace(
                    number=stage.number,
                    name=stage.name,
                    status="skipped" if reason else "ran",
                    reason=reason,
                    candidates_in=before,
                    candidates_out=len(state.candidates),
                    milliseconds=(time.perf_counter() - started) * 1000,
                    detail={} if reason else dict(state.notes or {}),
                )
            )
        return state, Trace(self.name, tuple(traces))


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
