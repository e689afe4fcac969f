"""What a project's memories are like: how many by pool, type, importance and time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ekphory.moments import to_microseconds
from ekphory.service.selection import Selection
from ekphory.service.timeline import Timeline, timeline
from ekphory.store.store import ScopeColumns

Mask = NDArray[np.bool_]
IMPORTANCE_STEPS = 10


@dataclass(frozen=True, slots=True)
class Outline:
    """Counts of memories.

    Each but `total` counts what the rest of a selection lets through: the pools stand there as
    they would be with any pool chosen, and so do the others.

    Attributes:
        total: Memories that the whole selection lets through.
        pools, types: How many of each.
        importance: How many in each tenth from 0 to 1; 1 lies in the last.
        timeline: How many at which time.
    """

    total: int
    pools: Mapping[str, int]
    types: Mapping[str, int]
    importance: tuple[int, ...]
    timeline: Timeline


def outline(columns: ScopeColumns, selection: Selection) -> Outline:
    """Count the memories of these columns that a selection lets through."""
    let_through = _let_through(columns, selection)

    def but_for(left_out: str | None = None) -> Mask:
        kept = np.ones(len(columns.key), np.bool_)
        for name, mask in let_through.items():
            if name != left_out:
                kept &= mask
        return kept

    in_time = but_for("time")
    return Outline(
        total=int(np.count_nonzero(but_for())),
        pools=_counted(columns.pool[but_for("pool")]),
        types=_counted(columns.type[but_for("type")]),
        importance=_by_tenth(columns.importance[but_for("importance")]),
        timeline=timeline(columns.at[in_time], columns.type[in_time]),
    )


def _let_through(columns: ScopeColumns, selection: Selection) -> dict[str, Mask]:
    masks: dict[str, Mask] = {}
    if selection.pool is not None:
        masks["pool"] = columns.pool == selection.pool
    if selection.type is not None:
        masks["type"] = columns.type == selection.type
    if selection.least_importance is not None:
        masks["importance"] = columns.importance >= np.float32(selection.least_importance)
    in_time = np.ones(len(columns.key), np.bool_)
    if selection.since is not None:
        in_time &= columns.at >= to_microseconds(selection.since)
    if selection.until is not None:
        in_time &= columns.at < to_microseconds(selection.until)
    return masks | {"time": in_time}


def _counted(names: NDArray[np.str_]) -> dict[str, int]:
    found, counts = np.unique(names, return_counts=True)
    return {str(name): int(count) for name, count in zip(found, counts, strict=True)}


def _by_tenth(importance: NDArray[np.float32]) -> tuple[int, ...]:
    counts, _ = np.histogram(importance, bins=IMPORTANCE_STEPS, range=(0, 1))
    return tuple(counts.tolist())
