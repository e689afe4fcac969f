"""Stage 9: what happened long ago ranks a little lower, unless it is a fact or a how-to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ekphory.retrieval.state import SearchState
from ekphory.types import MemoryType

MICROSECONDS_A_DAY = 86_400_000_000


def decay_factors(
    age_days: NDArray[np.float64], *, floor: float = 0.8, rate: float = 0.03
) -> NDArray[np.float32]:
    """Compute floor + (1 - floor)·exp(-rate·age); 1 for what lies ahead.

    Source: Memory-Spark's `applyTemporalDecay`, floor .8 and rate .03 a day.
    """
    ages = np.maximum(age_days, 0)
    return np.asarray(floor + (1 - floor) * np.exp(-rate * ages), np.float32)


class Decay:
    """Multiplies the ranking by a factor in [floor, 1] that falls with age, by memory type.

    Age is counted from when it happened (`at`), not from when a file was last written.

    Args:
        floor: The factor that the oldest memory keeps.
        rate: How fast it falls, a day.
        fading: Types of memory that fade at all.
    """

    number = 9
    name = "decay"
    needs = frozenset({"probability"})
    gives = frozenset({"decayed"})

    def __init__(
        self,
        *,
        floor: float = 0.9,
        rate: float = 0.03,
        fading: tuple[MemoryType, ...] = ("episodic", "unknown"),
    ) -> None:
        self.floor = floor
        self.rate = rate
        self.fading = fading

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to age without candidates."""
        return None if len(state.candidates) else "no candidates"

    def run(self, state: SearchState) -> SearchState:
        """Age the candidates and order anew."""
        candidates, columns = state.candidates, state.snapshot.columns
        age = (state.request.now - columns.at[candidates.rows]) / MICROSECONDS_A_DAY
        factors = decay_factors(age, floor=self.floor, rate=self.rate)
        fading = np.isin(columns.type[candidates.rows], self.fading)
        boosted = candidates.boosted(np.where(fading, factors, np.float32(1)))
        notes = {"floor": self.floor, "rate": self.rate, "fading": int(fading.sum())}
        return replace(state, candidates=boosted, notes=notes)
