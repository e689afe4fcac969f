"""Scores that mean something: from a fused score to the probability that a memory is relevant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.models.reranker import LocalReranker, RerankingModel

LEAST_EVIDENCE = 6.0
"""Below this the curve is that of a query with this much: training has too few of them."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A logistic curve over the score, steeper the more the query's words could tell.

    P = 1 / (1 + exp(-(slope·s + weight·e + steepening·s·e + intercept))), e = ln(1 + evidence).
    Logistic calibration is Platt's (1999). The evidence is the most BM25 that the query could
    reach in this scope: a full match of "Caroline" alone says less than one of five rare words.
    Within one query the evidence is fixed, so the probability grows with the score.

    Attributes:
        slope, steepening, weight, intercept: Fitted by `recollect train calibration`.
    """

    slope: float
    steepening: float
    weight: float
    intercept: float

    def probabilities(self, scores: NDArray[np.float32], *, evidence: float) -> NDArray[np.float32]:
        """Probabilities in [0, 1], parallel to `scores`."""
        amount = float(np.log1p(max(evidence, LEAST_EVIDENCE)))
        slope = self.slope + self.steepening * amount
        constant = self.weight * amount + self.intercept
        # Beyond 700 the exponential overflows, and the probability is 0 anyway.
        exponents = np.minimum(-(slope * scores.astype(np.float64) + constant), 700)
        return np.asarray(1 / (1 + np.exp(exponents)), np.float32)


def reranker_probabilities(
    reranker: RerankingModel, scores: NDArray[np.float32]
) -> NDArray[np.float32] | None:
    """Give the probabilities that a reranker's scores mean; None where nobody has fitted them.

    A hit then keeps the probability that fusion gave it: a reranker's score orders the passages of
    one query, and need not mean the same for the next.
    """
    is_calibrated = isinstance(reranker, LocalReranker) and reranker.is_calibrated
    return scores if is_calibrated else None


FUSION_CALIBRATION = Calibration(slope=-0.536, steepening=3.91, weight=-2.28, intercept=-3.15)
"""For the weighted sum of cosine and lexical share with the bundled embedder."""
