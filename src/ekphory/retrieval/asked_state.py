"""Which state of what changed a question asks for: the present one, an earlier one, or the first.

Of an English question a logistic regression over its words and pairs of words tells whether it asks
for an earlier state; it was learned from written questions by `ekphory train asked-state`. Cues in
other languages, and those of the first state, are rules.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Literal

from ekphory.retrieval.calibration import FITTED, read_fitted
from ekphory.retrieval.query import MOST_CHARACTERS, find_questions, find_tenses, words_of

ASKED_STATE_KIND = "asked state"
ASKED_STATE_FILE = FITTED / "asked_state.json"
BEGIN, NUMBER = "^", "#"
"""Stand for the beginning of a question, and for any word with a digit."""
_EVEN = 0.5

AskedState = Literal["present", "past", "first", "usual"]
"""The present state, an earlier one, the first one, or what is usual, whatever is so now."""


@dataclass(frozen=True, slots=True)
class PastWeights:
    """A logistic regression over words and pairs of words.

    Attributes:
        intercept: What a question without any of them has.
        weights: By word or pair, what it adds.
    """

    intercept: float
    weights: Mapping[str, float]

    def probability(self, text: str) -> float:
        """Return the probability that a question asks for an earlier state."""
        total = sum(self.weights.get(each, 0.0) for each in question_features(text))
        return 1 / (1 + math.exp(-(self.intercept + total)))


def question_features(text: str) -> set[str]:
    """Return the words and pairs of words of a question."""
    words = [NUMBER if any(map(str.isdigit, word)) else word for word in words_of(text)]
    return {*words, *(f"{first} {second}" for first, second in pairwise([BEGIN, *words]))}


def asked_state(text: str) -> AskedState:
    """Say which state of what changed `text` asks for.

    Of a text with statements and questions only the questions count.
    """
    asked = find_questions(text[-MOST_CHARACTERS:])
    cues = find_tenses(asked)
    if "first" in cues:
        return "first"
    if "past" in cues or _read_weights().probability(asked) > _EVEN:
        return "past"
    return "usual" if "usual" in cues else "present"


@cache
def _read_weights(path: Path = ASKED_STATE_FILE) -> PastWeights:
    values = read_fitted(path, kind=ASKED_STATE_KIND).values
    return PastWeights(float(values["intercept"]), dict(values["weights"]))
