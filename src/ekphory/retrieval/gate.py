"""Whether a reranker is worth its time: Memory-Spark's gate, and what else may tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Literal

import numpy as np
from numpy.typing import NDArray

# The gate of Memory-Spark, number for number.
#
# Source: `computeRerankerGate` in kleinpanic/memory-spark, `src/rerank/reranker.ts`.

GateMode = Literal["off", "hard", "soft", "auto"]

NEAREST = 5
"""How many of the best scores the spread is taken over."""


@dataclass(frozen=True, slots=True)
class GateThresholds:
    """Between which spreads of the nearest scores a reranker helps.

    Attributes:
        low: A smaller spread is a tie, which a reranker would break by chance.
        high: A larger spread is a clear winner, which a reranker could only spoil.
    """

    low: float = 0.02
    high: float = 0.08


PUBLISHED_THRESHOLDS = GateThresholds()


@dataclass(frozen=True, slots=True)
class GateDecision:
    """What the gate decided.

    Attributes:
        rerank: Whether the reranker runs.
        first_stage_weight: What the first stage's weight is multiplied by where ranks are blended.
        reason: The decision in words, as Memory-Spark logs it.
    """

    rerank: bool
    first_stage_weight: float
    reason: str


def gate_decision(
    scores: Sequence[float],
    *,
    mode: Literal["off", "hard", "soft"],
    thresholds: GateThresholds = PUBLISHED_THRESHOLDS,
) -> GateDecision:
    """Decide from the spread, largest minus smallest, of the first five scores.

    Args:
        scores: Raw cosine of the candidates, best first. Ranks fused and scaled to 1 would not do:
            their spread hardly differs between queries.
        mode: `off` always reranks; `hard` reranks within the thresholds, both included; `soft`
            always reranks and weights the first stage by the spread. The weight jumps from .8 to .5
            at the low threshold, as published.
        thresholds: Where the spread is a tie, and where it is a clear winner.
    """
    if mode == "off" or len(scores) < 2:
        return GateDecision(True, 1.0, "gate-off")
    nearest = [float(score) for score in scores[:NEAREST]]
    spread = max(nearest) - min(nearest)
    return _hard(spread, thresholds) if mode == "hard" else _soft(spread, thresholds)


def _hard(spread: float, thresholds: GateThresholds) -> GateDecision:
    low, high, shown = _plain(thresholds.low), _plain(thresholds.high), _fixed(spread, 4)
    if spread > thresholds.high:
        reason = f"hard-gate-high: spread={shown} > {high} (vector confident)"
        return GateDecision(False, 1.0, reason)
    if spread < thresholds.low:
        return GateDecision(False, 1.0, f"hard-gate-low: spread={shown} < {low} (tied set)")
    return GateDecision(True, 1.0, f"hard-gate-pass: spread={shown} in [{low}, {high}]")


def _soft(spread: float, thresholds: GateThresholds) -> GateDecision:
    low, high = thresholds.low, thresholds.high
    if spread >= high:
        weight = 1.0
    elif spread <= low:
        weight = 0.8 + 0.2 * (1 - spread / low)
    else:
        weight = 0.5 + 0.5 * ((spread - low) / (high - low))
    shown = f"spread={_fixed(spread, 4)} → vectorMultiplier={_fixed(weight, 3)}"
    return GateDecision(True, weight, f"soft-gate: {shown}")


def _fixed(value: float, digits: int) -> str:
    """Write a number as JavaScript's `toFixed` does: halves go up."""
    return str(Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def _plain(value: float) -> str:
    """Write a number as JavaScript does: whole ones without a point."""
    return str(int(value)) if value == int(value) else repr(value)


# What of the first stage's scores may tell whether a reranker has anything to gain.

GateFeature = Literal["cosine_spread", "probability_spread", "probability_gap", "best_probability"]


def gate_feature(name: GateFeature, scores: Mapping[str, NDArray[np.floating]]) -> float:
    """Compute one feature; 0 without candidates.

    | name | what it is |
    |---|---|
    | `cosine_spread` | largest minus smallest of the five largest cosines, as Memory-Spark's |
    | `probability_spread` | the same of the five largest probabilities |
    | `probability_gap` | the largest probability minus the second |
    | `best_probability` | the largest probability |

    Args:
        name: Which.
        scores: `cosine` and `probability` of the candidates, in any order.
    """
    values = scores["cosine" if name == "cosine_spread" else "probability"]
    largest = np.sort(values)[::-1][:NEAREST].astype(np.float64)
    if not len(largest):
        return 0.0
    if name == "best_probability":
        return float(largest[0])
    last = largest[:2] if name == "probability_gap" else largest
    return float(largest[0] - last[-1])
