"""The probability that a memory is relevant, where words are all that is known of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.retrieval.calibration import evidence_amount, logistic

SMALLEST_SHARE = 0.02
"""Added to the score, so that a passage without a word of the query has a logarithm. Ours."""


@dataclass(frozen=True, slots=True)
class LexicalCurve:
    """A logistic curve over the logarithm of the weighted lexical share.

    P = 1 / (1 + exp(-(slope·ln(s + .02) + weight·e + intercept))), e = ln(1 + evidence) as in
    `Calibration`. Over the share itself the curve says 1 of every passage with most of the words;
    over its logarithm a better match stays the more probable one (docs/LOG.md, experiment 35).

    Attributes:
        slope, weight, intercept: Fitted by `recollect train calibration`.
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


LEXICAL_CALIBRATION = LexicalCalibration(
    documents=LexicalCurve(slope=6.121, weight=2.512, intercept=-1.858),
    turns=LexicalCurve(slope=2.819, weight=1.953, intercept=-4.409),
)
"""By `recollect train calibration`, for `fast`."""
