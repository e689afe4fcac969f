"""Stage 5: one score out of the two arms, and the probability that it stands for."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from recollect.retrieval.calibration import FUSION_CALIBRATION, Calibration
from recollect.retrieval.fusion import LEXICAL_WEIGHT, reciprocal_rank, weighted_sum
from recollect.retrieval.state import SearchState

FusionMethod = Literal["weighted_sum", "reciprocal_rank"]


class Fuse:
    """Fuses `cosine` and `lexical`.

    `weighted_sum` compares between queries; `reciprocal_rank` orders by ranks alone. The
    calibrated probability always comes from the weighted sum, since ranks say nothing of relevance.
    """

    number = 5
    name = "fuse"
    needs = frozenset({"cosine", "lexical"})
    gives = frozenset({"fused", "probability"})

    def __init__(
        self,
        *,
        method: FusionMethod = "weighted_sum",
        lexical_weight: tuple[float, float] = LEXICAL_WEIGHT,
        calibration: Calibration = FUSION_CALIBRATION,
    ) -> None:
        self.method = method
        self.lexical_weight = lexical_weight
        self.calibration = calibration

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to fuse without candidates."""
        return None if len(state.candidates) else "no candidates"

    def run(self, state: SearchState) -> SearchState:
        """Score the candidates anew and order them."""
        candidates = state.candidates
        cosine, lexical = candidates.scores["cosine"], candidates.scores["lexical"]
        turns, documents = self.lexical_weight
        weight = turns + state.snapshot.lexical.long_share * (documents - turns)
        total = weighted_sum(cosine, lexical, lexical_weight=weight)
        evidence = float(candidates.scores["lexical_bound"][0])
        probability = self.calibration.probabilities(total, evidence=evidence)
        scores = {**candidates.scores, "fused": total, "probability": probability}
        fused = replace(candidates, scores=scores)
        if self.method == "weighted_sum":
            # Ordered by the sum, of which the probability is a growing function.
            ranked = fused.ranked(probability)
        else:
            found = np.where(lexical > 0, lexical, np.float32(np.nan))
            ranked = fused.ranked(reciprocal_rank(cosine, found))
        return replace(
            state,
            candidates=ranked,
            notes={"method": self.method, "lexical_weight": round(weight, 2)},
        )
