"""How sure a link of a chain is: ratings whose weights were chosen by hand, no probabilities."""

from __future__ import annotations

import math
from dataclasses import dataclass

_LEAST = 1e-3
_MOST = 20.0


@dataclass(frozen=True, slots=True)
class LinkFeatures:
    """What is known about a link when it is judged; larger speaks for it.

    Attributes:
        fit: Of a lead its score: the memory is about the entity, and states the relation beside it.
            Of the last memory how far it is about the entity.
        margin: That over the next one's.
        support: Of a lead how well the next step went on from it; of the last memory the
            probability that search gave it. In [0, 1].
    """

    fit: float
    margin: float
    support: float

    @property
    def fit_term(self) -> float:
        """The logarithm of the fit, which is at least a thousandth."""
        return math.log(max(self.fit, _LEAST))

    @property
    def margin_term(self) -> float:
        """The logarithm of the margin, which counts between 1 and 20."""
        return math.log(min(max(self.margin, 1.0), _MOST))


@dataclass(frozen=True, slots=True)
class LinkCurve:
    """1 / (1 + exp(-(intercept + fit·ln fit + margin·ln margin + support·support)))."""

    intercept: float
    fit: float
    margin: float
    support: float

    def rating(self, features: LinkFeatures) -> float:
        """Return how sure the link is, in [0, 1]; it orders links, and is right less often."""
        logit = (
            self.intercept
            + self.fit * features.fit_term
            + self.margin * features.margin_term
            + self.support * features.support
        )
        return 1 / (1 + math.exp(-logit))


LINK_CURVE = LinkCurve(intercept=1.5, fit=1.2, margin=0.5, support=2.0)
"""For a name that stands in a relation."""
EVIDENCE_CURVE = LinkCurve(intercept=1.0, fit=1.0, margin=0.3, support=1.0)
"""For the memory at the end; likewise."""
ENOUGH = 0.8
"""Rating of a whole chain from which no other lead is tried."""
