"""The probability that a hit answers: a curve over all that is known of it, kept in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ekphory.models.platt_scaling import log_odds
from ekphory.retrieval.calibration import evidence_amount, logistic
from ekphory.retrieval.lexical import long_share
from ekphory.retrieval.state import Candidates, SearchState

FloatArray = NDArray[np.float64]
FEATURES = (
    *("first_stage", "sum", "lead", "lead_of_best", "cosine_lead", "standing", "standing_in_scope"),
    *("lexical", "evidence", "scope", "turns", "long", "boost", "place", "best"),
)
"""What is known of every candidate; see `answer_features`."""
READ_FEATURES = (*FEATURES, "reranker", "reranker_lead")
"""The same of one that a reranker has read."""
COMPARING = (
    *("scope", "turns", "long", "boost", "place", "best"),
    *("lead", "lead_of_best", "cosine_lead", "standing", "standing_in_scope"),
)
"""What tells a hit from the others; absolute scores do not carry over to what others write."""
COMPARING_READ = (
    *("scope", "long", "place", "best"),
    *("lead", "lead_of_best", "cosine_lead", "standing", "standing_in_scope"),
    *("reranker", "reranker_lead"),
)
"""Chats of training are too like those that it learned from to say what is special about chats."""
BELIEVING = ("sum", "lexical", "lead", "evidence", "scope", "turns", "long")
"""What tells whether there is an answer."""
BELIEVING_READ = ("sum", "lexical", "cosine_lead", "turns", "long", "reranker")
SURROUNDING = ("turns",)
"""What a scope is like; how little evidence is little depends on it."""
_MOST_LOGIT = 9.0
_MOST_BOOST = 1.0
_BESIDE = 10
_LEAST_LEAD = 0.02


@dataclass(frozen=True, slots=True)
class AnswerCurve:
    """A logistic curve, P = 1 / (1 + exp(-log odds)), with log odds intercept + Σ weight·feature.

    Attributes:
        intercept: The log odds where all features are 0.
        weights: By the name of a feature.
    """

    intercept: float
    weights: Mapping[str, float]

    def log_odds(self, features: FloatArray, names: Sequence[str]) -> FloatArray:
        """Return log odds, shape (candidates,).

        Args:
            features: Shape (candidates, features).
            names: Of its columns.
        """
        columns = [names.index(name) for name in self.weights]
        weights = np.array(list(self.weights.values()))
        return np.asarray(features[:, columns] @ weights + self.intercept, np.float64)


@dataclass(frozen=True, slots=True)
class HitCurves:
    """The probability that a hit answers: that it does if any does, times the belief that one does.

    Attributes:
        answers: Over how a hit compares with the others; fitted where there is an answer.
        answerable: Whether there is an answer, over what is known of the best hit.
        least: Log odds of `answerable` below which the belief falls, over what the scope is like.
            The belief is min(1, exp(sharpness·(log odds - least))).
        sharpness: How fast it falls.
    """

    answers: AnswerCurve
    answerable: AnswerCurve
    least: AnswerCurve
    sharpness: float

    def probabilities(self, features: FloatArray, names: Sequence[str]) -> FloatArray:
        """Return probabilities in [0, 1], shape (candidates,).

        Args:
            features: Of the candidates, best first, shape (candidates, features).
            names: Of its columns.
        """
        if not len(features):
            return np.empty(0)
        likely = logistic(self.answers.log_odds(features, names)).astype(np.float64)
        return np.asarray(likely * self.belief(features[:1], names))

    def belief(self, best: FloatArray, names: Sequence[str]) -> FloatArray:
        """Return how far one believes that there is an answer, in (0, 1], shape (questions,).

        Args:
            best: Features of the best hit of each question, shape (questions, features).
            names: Of its columns.
        """
        above = self.answerable.log_odds(best, names) - self.least.log_odds(best, names)
        return np.asarray(np.exp(self.sharpness * np.minimum(0.0, above)))


def descending(probabilities: FloatArray) -> FloatArray:
    """Return the nearest values that never rise: neighbours in the wrong order get their mean.

    Source: pool adjacent violators, Ayer et al., "An Empirical Distribution Function for Sampling
    with Incomplete Information", 1955.
    """
    blocks: list[tuple[float, int]] = []
    for value in probabilities.tolist():
        total, count = value, 1
        while blocks and blocks[-1][0] / blocks[-1][1] < total / count:
            earlier, size = blocks.pop()
            total, count = total + earlier, count + size
        blocks.append((total, count))
    means = [np.full(count, total / count) for total, count in blocks]
    return np.concatenate([np.empty(0), *means])


def answer_features(state: SearchState) -> FloatArray:
    """Return what is known of the candidates, best first, shape (candidates, features).

    - `first_stage`: log odds of the first stage's probability, within ±9.
    - `sum`, `lead`, `standing`: the fused score, by how much it is above the best other one, and
      above the mean of the best ten; `standing_in_scope` is that times `scope`.
    - `lead_of_best`: of the first hit, the logarithm of its lead + .02; else 0.
    - `cosine_lead`: by how much its cosine is above the best other one.
    - `lexical`: the share of the query's words, weighted by how rare they are.
    - `evidence`, `scope`: logarithms of the most BM25 that the query could reach, and of how many
      memories were searched; `turns` and `long`: what they are like.
    - `boost`: logarithm of what weights, age and time multiplied the score by, within ±1.
    - `place`: logarithm of the place in the list, from 1; `best`: whether it is the first.
    """
    candidates, snapshot = state.candidates, state.snapshot
    scores = candidates.scores
    total = scores["fused"].astype(np.float64)
    odds = np.clip(log_odds(scores["probability"].astype(np.float64)), -_MOST_LOGIT, _MOST_LOGIT)
    places = np.arange(len(candidates), dtype=np.float64)
    first = (places == 0).astype(np.float64)
    searched = int(np.count_nonzero(state.request.visible))
    lead = _lead(total, searched)
    size = float(np.log1p(searched))
    # What was searched and is no candidate has nothing of the query.
    standing = total - np.sort(total)[::-1][:_BESIDE].sum() / max(1, min(_BESIDE, searched))
    columns = {
        "first_stage": odds,
        "sum": total,
        "lead": lead,
        "lead_of_best": first * np.log(_LEAST_LEAD + np.maximum(0.0, lead)),
        "cosine_lead": _lead(np.nan_to_num(_or_zeros(candidates, "cosine")), searched),
        "standing": standing,
        "standing_in_scope": standing * size,
        "lexical": np.nan_to_num(_or_zeros(candidates, "lexical")),
        "evidence": np.full(len(total), evidence_amount(_evidence(candidates))),
        "scope": np.full(len(total), size),
        "turns": np.full(len(total), snapshot.turn_share),
        "long": np.full(len(total), long_share(snapshot.lexical.mean_length)),
        "boost": np.clip(np.log(_boost(candidates)), -_MOST_BOOST, _MOST_BOOST),
        "place": np.log1p(places),
        "best": first,
    }
    return np.stack([columns[name] for name in FEATURES], axis=1)


def read_features(state: SearchState) -> FloatArray:
    """Return the same, and what a reranker said, of the candidates that it has read.

    - `reranker`: log odds of its score, within ±9.
    - `reranker_lead`: by how much they are above the best other ones.
    """
    read = ~np.isnan(state.candidates.scores["reranker"])
    odds = log_odds(state.candidates.scores["reranker"][read].astype(np.float64))
    odds = np.clip(odds, -_MOST_LOGIT, _MOST_LOGIT)
    lead = _lead(odds, len(odds))
    return np.concatenate([answer_features(state)[read], np.stack([odds, lead], 1)], axis=1)


def _lead(values: FloatArray, searched: int) -> FloatArray:
    """Return by how much each is above the best other one; 0 where there is no other.

    Where a single candidate was found among several that were searched, the others have 0.
    """
    if len(values) < 2:
        return values.copy() if searched > 1 else np.zeros(len(values))
    order = np.argsort(-values, kind="stable")
    others = np.full(len(values), values[order[0]])
    others[order[0]] = values[order[1]]
    return np.asarray(values - others, np.float64)


def _evidence(candidates: Candidates) -> float:
    bound = candidates.scores.get("lexical_bound")
    return 0.0 if bound is None or not len(bound) else float(bound[0])


def _or_zeros(candidates: Candidates, name: str) -> FloatArray:
    found = candidates.scores.get(name)
    return np.zeros(len(candidates)) if found is None else found.astype(np.float64)


def _boost(candidates: Candidates) -> FloatArray:
    found = candidates.scores.get("boost")
    return np.ones(len(candidates)) if found is None else np.maximum(found, 1e-6).astype(float)
