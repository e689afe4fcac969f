"""Scores that mean something: from a fused score to the probability that a memory is relevant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from recollect.models.reranker import LocalReranker, RerankingModel

LEAST_EVIDENCE = 6.0
"""Below this the curve is that of a query with this much: training has too few of them."""


class ProbabilityCurve(Protocol):
    """From a fused score to the probability that it stands for."""

    def probabilities(self, scores: NDArray[np.float32], *, evidence: float) -> NDArray[np.float32]:
        """Probabilities in [0, 1], parallel to `scores`."""
        ...


class ScopeCurves(Protocol):
    """The curve of a scope, by what it holds."""

    def among(self, turn_share: float) -> ProbabilityCurve:
        """Give the curve in a scope of which this share, in [0, 1], are turns."""
        ...


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

    def towards(self, other: Calibration, share: float) -> Calibration:
        """Give the curve between the two whose logit is `share`, in [0, 1], the other's."""
        return Calibration(
            slope=self.slope + share * (other.slope - self.slope),
            steepening=self.steepening + share * (other.steepening - self.steepening),
            weight=self.weight + share * (other.weight - self.weight),
            intercept=self.intercept + share * (other.intercept - self.intercept),
        )

    def probabilities(self, scores: NDArray[np.float32], *, evidence: float) -> NDArray[np.float32]:
        """Probabilities in [0, 1], parallel to `scores`."""
        amount = evidence_amount(evidence)
        slope = self.slope + self.steepening * amount
        constant = self.weight * amount + self.intercept
        return logistic(slope * scores.astype(np.float64) + constant)


def evidence_amount(evidence: float) -> float:
    """Give what the curves weigh of a query's evidence: its logarithm, from `LEAST_EVIDENCE` on."""
    return float(np.log1p(max(evidence, LEAST_EVIDENCE)))


def logistic(logits: NDArray[np.float64]) -> NDArray[np.float32]:
    """Give 1 / (1 + exp(-logit)), without overflow."""
    # Beyond 700 the exponential overflows, and the probability is 0 anyway.
    return np.asarray(1 / (1 + np.exp(np.minimum(-logits, 700))), np.float32)


def reranker_probabilities(
    reranker: RerankingModel, scores: NDArray[np.float32]
) -> NDArray[np.float32] | None:
    """Give the probabilities that a reranker's scores mean; None where nobody has fitted them.

    A hit then keeps the probability that fusion gave it: a reranker's score orders the passages of
    one query, and need not mean the same for the next.
    """
    is_calibrated = isinstance(reranker, LocalReranker) and reranker.is_calibrated
    return scores if is_calibrated else None


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionCalibration:
    """Curves for the weighted sum of cosine and lexical share.

    Attributes:
        documents, turns: In a scope of documents and notes, and in one of conversations.
    """

    documents: Calibration
    turns: Calibration

    def among(self, turn_share: float) -> Calibration:
        """Give the curve in a scope of which this share, in [0, 1], are turns."""
        return self.documents.towards(self.turns, turn_share)


_DOCUMENTS = Calibration(slope=-1.087, steepening=4.026, weight=-2.398, intercept=-2.557)

FUSION_CALIBRATION = FusionCalibration(
    documents=_DOCUMENTS,
    turns=Calibration(slope=-1.116, steepening=3.982, weight=-1.227, intercept=-4.217),
)
"""By `recollect train calibration`: with the bundled embedder among documents, among turns with the
one before. Fitted anew among turns it says too much of conversations that others wrote (LOG 34)."""
EVEN_CALIBRATION = FusionCalibration(documents=_DOCUMENTS, turns=_DOCUMENTS)
"""Where words weigh among turns what they weigh among documents."""
