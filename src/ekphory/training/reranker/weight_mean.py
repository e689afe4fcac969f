"""The mean of a model's weights over the last steps of a run. Needs torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ekphory.training.contrastive import Tensor


class WeightMean:
    """Adds weights up step by step.

    Source: Izmailov et al., "Averaging Weights Leads to Wider Optima and Better Generalization",
    UAI 2018.
    """

    def __init__(self) -> None:
        self._means: list[Tensor] = []
        self._count = 0

    def add(self, weights: Sequence[Tensor]) -> None:
        """Count one step's weights in."""
        self._count += 1
        if not self._means:
            self._means = [weight.detach().clone() for weight in weights]
            return
        for mean, weight in zip(self._means, weights, strict=True):
            mean.lerp_(weight.detach(), 1 / self._count)

    def put_into(self, weights: Sequence[Tensor]) -> None:
        """Replace the weights by their mean; without a step nothing changes."""
        for mean, weight in zip(self._means, weights, strict=bool(self._means)):
            weight.data.copy_(mean)

    def state(self) -> dict[str, Any]:
        """Give what `restore` needs."""
        return {"means": self._means, "count": self._count}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where `state` was taken."""
        self._means, self._count = list(state["means"]), int(state["count"])
