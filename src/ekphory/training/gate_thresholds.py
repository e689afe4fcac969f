"""Learns when a reranker may be skipped: thresholds for the gate's `auto` mode."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ekphory.errors import DatasetError
from ekphory.evaluation.reranking.gate import (
    GATE_FEATURES,
    GateCases,
    GateOutcome,
    gate_outcome,
    passes,
)
from ekphory.retrieval.gate_features import GateFeature
from ekphory.retrieval.reranker_gate import GateThresholds

KEPT = 0.98
"""Share of the gain that a gate has to keep."""
_STEPS = 50
_LOWEST, _HIGHEST = 0.0, 2.0
"""No feature lies outside."""


@dataclass(frozen=True, slots=True)
class LearnedGate:
    """Thresholds on one feature.

    Attributes:
        feature: What is compared.
        thresholds: Between which values a reranker is worth its time; learned on all questions.
        checked: What thresholds learned on one half of the conversations do on the other half,
            both ways taken together: what is to be expected of new conversations.
    """

    feature: GateFeature
    thresholds: GateThresholds
    checked: GateOutcome


def learn_gates(cases: GateCases, *, keep: float = KEPT) -> tuple[LearnedGate, ...]:
    """Learn a gate on each feature, the one that skips most first.

    Gates that keep enough on conversations that they were not learned on come before the others.

    Raises:
        DatasetError: Reranking gains nothing on these questions, or there is one conversation.
    """
    if len(set(cases.pools.tolist())) < 2:
        raise DatasetError("Learning a gate needs two conversations or more. Give more rows.")
    gates = [
        LearnedGate(
            feature,
            learn_thresholds(cases, feature, keep=keep),
            _checked(cases, feature, keep),
        )
        for feature in GATE_FEATURES
    ]
    return tuple(
        sorted(gates, key=lambda gate: (gate.checked.gain_kept < keep, -gate.checked.skipped))
    )


def learn_thresholds(
    cases: GateCases, feature: GateFeature, *, keep: float = KEPT
) -> GateThresholds:
    """Find the narrowest band of a feature within which reranking gains enough.

    Its ends are among fifty quantiles: finer ones would follow single questions.

    Raises:
        DatasetError: Reranking gains nothing on these questions.
    """
    total = float(cases.gains.sum())
    if total <= 0:
        raise DatasetError(
            f"reranking changes MAP from {cases.first_stage.mean():.3f} to "
            f"{cases.reranked.mean():.3f}: there is no gain to keep. Take another reranker."
        )
    values = cases.features[feature]
    ends = np.unique(np.quantile(values, np.linspace(0, 1, _STEPS + 1)))
    bands = [(low, high) for place, low in enumerate(ends) for high in ends[place:]]
    inside = [(values >= low) & (values <= high) for low, high in bands]
    enough = [place for place, band in enumerate(inside) if cases.gains[band].sum() >= keep * total]
    low, high = bands[min(enough, key=lambda place: int(inside[place].sum()))]
    # The ends of what was seen are no ends of what may come.
    return GateThresholds(
        _LOWEST if low == ends[0] else float(low), _HIGHEST if high == ends[-1] else float(high)
    )


def _checked(cases: GateCases, feature: GateFeature, keep: float) -> GateOutcome:
    is_even = np.isin(cases.pools, np.unique(cases.pools)[::2])
    reranked = np.zeros(len(is_even), bool)
    for learned in (is_even, ~is_even):
        others = cases.only(~learned)
        thresholds = learn_thresholds(cases.only(learned), feature, keep=keep)
        reranked[~learned] = passes(others, feature, thresholds)
    return gate_outcome(cases, reranked)
