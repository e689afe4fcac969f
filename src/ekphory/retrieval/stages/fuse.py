"""Stage 5: one score out of the arms, and the probability that it stands for."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from ekphory.retrieval.calibration import ScopeCurves
from ekphory.retrieval.fitted_probabilities import MEANING_CURVES
from ekphory.retrieval.fusion import (
    LEXICAL_WEIGHT,
    RRF_CONSTANT,
    LexicalWeight,
    adaptive_weights,
    first_found,
    reciprocal_rank,
    weighted_sum,
)
from ekphory.retrieval.state import Candidates, ScoreArray, SearchState

FusionMethod = Literal[
    "weighted_sum", "reciprocal_rank", "adaptive_reciprocal_rank", "dense", "lexical"
]
_ARMS = {"dense": frozenset({"cosine"}), "lexical": frozenset({"lexical"})}
_BOTH_ARMS = frozenset({"cosine", "lexical"})


class Fuse:
    """Fuses `cosine` and `lexical`, all pools on one scale.

    `weighted_sum` compares between queries; the reciprocal ranks order by ranks alone, which are
    those in one list of all pools; `dense` and `lexical` take one arm as it is. The calibrated
    probability always comes from the weighted sum, of which a single arm gives a part: ranks say
    nothing of relevance.

    Args:
        method: How the arms become one.
        lexical_weight: How much a full lexical match counts against a cosine of 1, by what the
            scope holds.
        list_per_hit: Where ranks are fused, an arm's list ends after so many rows for each hit
            wanted; None takes all that were found.
        calibration: From the weighted sum, or the part of it that `method` takes, to a probability.
    """

    number = 5
    name = "fuse"
    gives = frozenset({"fused", "probability"})

    def __init__(
        self,
        *,
        method: FusionMethod = "weighted_sum",
        lexical_weight: LexicalWeight = LEXICAL_WEIGHT,
        list_per_hit: int | None = None,
        calibration: ScopeCurves = MEANING_CURVES,
    ) -> None:
        self.method = method
        self.lexical_weight = lexical_weight
        self.list_per_hit = list_per_hit
        self.calibration = calibration
        self.needs = _ARMS.get(method, _BOTH_ARMS)

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to fuse without candidates."""
        return None if len(state.candidates) else "no candidates"

    def run(self, state: SearchState) -> SearchState:
        """Score the candidates anew and order them."""
        candidates, turns = state.candidates, state.snapshot.turn_share
        lexical_weight = self.lexical_weight.among(turns)
        total = self._total(candidates, lexical_weight)
        bound = candidates.scores.get("lexical_bound")
        evidence = 0.0 if bound is None else float(bound[0])
        probability = self.calibration.among(turns).probabilities(total, evidence=evidence)
        scores = {**candidates.scores, "fused": total, "probability": probability}
        fused = replace(candidates, scores=scores)
        notes: dict[str, object] = {
            "method": self.method,
            "lexical_weight": round(lexical_weight, 3),
        }
        if "reciprocal" not in self.method:
            # Ordered by the sum, of which the probability is a growing function.
            return replace(state, candidates=fused.ranked(probability), notes=notes)
        ranks, weights = self._ranks(candidates, state.request.k)
        notes |= {"arm_weights": weights}
        return replace(state, candidates=fused.ranked(ranks), notes=notes, order="ranks")

    def _total(self, candidates: Candidates, lexical_weight: float) -> ScoreArray:
        if self.method == "dense":
            return candidates.scores["cosine"]
        lexical = candidates.scores["lexical"]
        if self.method == "lexical":
            return np.asarray(np.float32(lexical_weight) * lexical, np.float32)
        cosine = candidates.scores["cosine"]
        return weighted_sum(cosine, lexical, lexical_weight=lexical_weight)

    def _ranks(self, candidates: Candidates, k: int) -> tuple[ScoreArray, tuple[float, float]]:
        most = None if self.list_per_hit is None else self.list_per_hit * k
        lexical = candidates.scores["lexical"]
        dense = first_found(candidates.scores["cosine"], most)
        words = first_found(np.where(lexical > 0, lexical, np.float32(np.nan)), most)
        adaptive = self.method == "adaptive_reciprocal_rank"
        weights = adaptive_weights(dense, words) if adaptive else (1.0, 1.0)
        fused = reciprocal_rank(dense, words, constant=RRF_CONSTANT, weights=weights)
        return fused, weights
