"""Scores that mean something: from a fused score to the probability that a memory is relevant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ekphory.models.reranker import LocalReranker, RerankingModel

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
        slope, steepening, weight, intercept: Fitted by `ekphory train calibration`.
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


SMALLEST_SHARE = 0.02
"""Added to the score, so that a passage without a word of the query has a logarithm. Ours."""


@dataclass(frozen=True, slots=True)
class LexicalCurve:
    """A logistic curve over the logarithm of the weighted lexical share.

    P = 1 / (1 + exp(-(slope·ln(s + .02) + weight·e + intercept))), e = ln(1 + evidence) as in
    `Calibration`. Over the share itself the curve says 1 of every passage with most of the words;
    over its logarithm a better match stays the more probable one (docs/LOG.md, experiment 35).

    Attributes:
        slope, weight, intercept: Fitted by `ekphory train calibration`.
    """

    slope: float
    weight: float
    intercept: float

    def probabilities(self, scores: NDArray[np.float32], *, evidence: float) -> NDArray[np.float32]:
        """Probabilities in [0, 1], parallel to `scores`."""
        shares = np.log(np.maximum(scores.astype(np.float64), 0) + SMALLEST_SHARE)
        return logistic(
            self.slope * shares + self.weight * evidence_amount(evidence) + self.intercept
        )

    def towards(self, other: LexicalCurve, share: float) -> LexicalCurve:
        """Give the curve between the two whose logit is `share`, in [0, 1], the other's."""
        return LexicalCurve(
            slope=self.slope + share * (other.slope - self.slope),
            weight=self.weight + share * (other.weight - self.weight),
            intercept=self.intercept + share * (other.intercept - self.intercept),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LexicalCalibration:
    """Curves for the lexical share alone, weighed as among documents.

    Attributes:
        documents, turns: In a scope of documents and notes, and in one of conversations.
    """

    documents: LexicalCurve
    turns: LexicalCurve

    def among(self, turn_share: float) -> LexicalCurve:
        """Give the curve in a scope of which this share, in [0, 1], are turns."""
        return self.documents.towards(self.turns, turn_share)
