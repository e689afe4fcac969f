"""How the learning rate changes over a run."""

from __future__ import annotations

from collections.abc import Callable


def rise_and_fall(steps: int, *, warm_up: float) -> Callable[[int], float]:
    """Give the share of the highest rate at each step: up to 1, then linearly down to 0.1.

    Args:
        steps: Length of the run.
        warm_up: Share of the steps in which the rate rises.
    """
    rising = max(1, round(warm_up * steps))

    def share(step: int) -> float:
        if step < rising:
            return (step + 1) / rising
        return 1 - 0.9 * (step - rising) / max(1, steps - rising)

    return share
