"""Where a score becomes a probability: curves, the learned gate, and their files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, cast, get_args

import numpy as np
from numpy.typing import NDArray

from ekphory.atomic_write import atomic_rename
from ekphory.errors import ModelError
from ekphory.models.embedder import EmbedderIdentity
from ekphory.models.reranker import (
    SMALL_RERANKER,
    TINY_RERANKER,
    LocalReranker,
    RerankingModel,
    bundled_name,
    log_odds,
    model_id,
)
from ekphory.retrieval.gate import GateDecision, GateFeature, GateThresholds
from ekphory.retrieval.lexical import long_share
from ekphory.retrieval.pipeline import Candidates, SearchState

# Files of fitted constants: what an `ekphory train` command found, and what it holds for.
#
# Each file is written by the command that it names. It says which models the constants belong to,
# the hashes of what they were fitted on, the seed, and the error that was measured.

FITTED = Path(__file__).parents[1] / "fitted"
"""The folder of the package's own files."""
_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedFile:
    """Fitted constants and where they come from.

    Attributes:
        kind: What they are, such as `probabilities` or `gate`.
        command: The command that writes the file.
        models: `name@revision` of each model that they hold for, by its role.
        data: SHA-256 of what they were fitted on, by its name.
        seed: Of whatever was drawn.
        measured: Errors on what was held back, by name.
        values: The constants.
    """

    kind: str
    command: str
    models: Mapping[str, str]
    data: Mapping[str, str]
    seed: int
    measured: Mapping[str, float] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)


def write_fitted(path: Path, file: FittedFile) -> None:
    """Write the file that `read_fitted` reads; what was there is replaced in one step."""
    content = {"format": _FORMAT, **asdict(file)}
    text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(text + "\n", encoding="utf-8")
    atomic_rename(part, path)


def read_fitted(path: Path, *, kind: str) -> FittedFile:
    """Read fitted constants.

    Raises:
        ModelError: There is no such file, it cannot be read, or it holds something else.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content.pop("format") != _FORMAT or content["kind"] != kind:
            raise ValueError(f"must be of format {_FORMAT} and kind {kind!r}")
        return FittedFile(**content)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ModelError(
            f"{path}: must be a file of fitted constants of kind {kind!r} "
            f"({type(error).__name__}: {error}). Write it anew with `ekphory train`, or install "
            "the package again."
        ) from error


def require_models(file: FittedFile, used: Mapping[str, str]) -> None:
    """Refuse constants that were fitted for another model.

    Args:
        file: What was read.
        used: `name@revision` of the models in use, by their role.

    Raises:
        ModelError: One of them is not the model that the constants hold for.
    """
    for role, model in used.items():
        fitted = file.models.get(role)
        if fitted != model:
            raise ModelError(
                f"{file.kind}: the constants were fitted for the {role} {fitted}, and {model} is "
                f"in use. Fit them anew with `{file.command}`."
            )


# Scores that mean something: from a fused score to the probability that a memory is relevant.

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
        slope, steepening, weight, intercept: Fitted by `ekphory train calibration`.
    """

    slope: float
    steepening: float
    weight: float
    intercept: float

    def probabilities(self, scores: NDArray[np.float32], *, evidence: float) -> NDArray[np.float32]:
        """Probabilities in [0, 1], parallel to `scores`."""
        amount = evidence_amount(evidence)
        slope = self.slope + self.steepening * amount
        constant = self.weight * amount + self.intercept
        return logistic(slope * scores.astype(np.float64) + constant)


def evidence_amount(evidence: float) -> float:
    """Return the logarithm of a query's evidence, from `LEAST_EVIDENCE` on."""
    return float(np.log1p(max(evidence, LEAST_EVIDENCE)))


def logistic(logits: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return 1 / (1 + exp(-logit)), without overflow."""
    # Beyond 700 the exponential overflows, and the probability is 0 anyway.
    return np.asarray(1 / (1 + np.exp(np.minimum(-logits, 700))), np.float32)


def reranker_probabilities(
    reranker: RerankingModel, scores: NDArray[np.float32]
) -> NDArray[np.float32] | None:
    """Return the probabilities that a reranker's scores mean; None where nobody has fitted them.

    A hit then keeps the probability that fusion gave it: a reranker's score orders the passages of
    one query, and need not mean the same for the next.
    """
    is_calibrated = isinstance(reranker, LocalReranker) and reranker.is_calibrated
    return scores if is_calibrated else None


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
        by_evidence = self.weight * evidence_amount(evidence)
        return logistic(self.slope * shares + by_evidence + self.intercept)


Curve = TypeVar("Curve", Calibration, LexicalCurve)


@dataclass(frozen=True, kw_only=True)
class ScopeCalibration(Generic[Curve]):
    """Curves of one kind for scopes of any content.

    Attributes:
        documents, turns: In a scope of documents and notes, and in one of conversations.
    """

    documents: Curve
    turns: Curve

    def among(self, turn_share: float) -> Curve:
        """Return the curve in a scope of which this share, in [0, 1], are turns.

        Its logit is that of `documents`, and to this share that of `turns`.
        """
        turns = asdict(self.turns)
        return type(self.documents)(
            **{
                name: value + turn_share * (turns[name] - value)
                for name, value in asdict(self.documents).items()
            }
        )


FusionCalibration = ScopeCalibration[Calibration]
"""Curves for the weighted sum of cosine and lexical share."""
LexicalCalibration = ScopeCalibration[LexicalCurve]
"""Curves for the lexical share alone, weighed as among documents."""


# The probability that a hit answers: a curve over all that is known of it, kept in order.

ProbabilityArray = NDArray[np.float64]
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

    def log_odds(self, features: ProbabilityArray, names: Sequence[str]) -> ProbabilityArray:
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

    def probabilities(self, features: ProbabilityArray, names: Sequence[str]) -> ProbabilityArray:
        """Return probabilities in [0, 1], shape (candidates,).

        Args:
            features: Of the candidates, best first, shape (candidates, features).
            names: Of its columns.
        """
        if not len(features):
            return np.empty(0)
        likely = logistic(self.answers.log_odds(features, names)).astype(np.float64)
        return np.asarray(likely * self.belief(features[:1], names))

    def belief(self, best: ProbabilityArray, names: Sequence[str]) -> ProbabilityArray:
        """Return how far one believes that there is an answer, in (0, 1], shape (questions,).

        Args:
            best: Features of the best hit of each question, shape (questions, features).
            names: Of its columns.
        """
        above = self.answerable.log_odds(best, names) - self.least.log_odds(best, names)
        return np.asarray(np.exp(self.sharpness * np.minimum(0.0, above)))


def make_descending(probabilities: ProbabilityArray) -> ProbabilityArray:
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


def answer_features(state: SearchState) -> ProbabilityArray:
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
    evidence = np.append(_scores_or(candidates, "lexical_bound", 0.0), 0.0)
    boost = np.maximum(_scores_or(candidates, "boost", 1.0), 1e-6)
    # What was searched and is no candidate has nothing of the query.
    standing = total - np.sort(total)[::-1][:_BESIDE].sum() / max(1, min(_BESIDE, searched))
    columns = {
        "first_stage": odds,
        "sum": total,
        "lead": lead,
        "lead_of_best": first * np.log(_LEAST_LEAD + np.maximum(0.0, lead)),
        "cosine_lead": _lead(np.nan_to_num(_scores_or(candidates, "cosine", 0.0)), searched),
        "standing": standing,
        "standing_in_scope": standing * size,
        "lexical": np.nan_to_num(_scores_or(candidates, "lexical", 0.0)),
        "evidence": np.full(len(total), evidence_amount(float(evidence[0]))),
        "scope": np.full(len(total), size),
        "turns": np.full(len(total), snapshot.turn_share),
        "long": np.full(len(total), long_share(snapshot.lexical.mean_length)),
        "boost": np.clip(np.log(boost), -_MOST_BOOST, _MOST_BOOST),
        "place": np.log1p(places),
        "best": first,
    }
    return np.stack([columns[name] for name in FEATURES], axis=1)


def read_features(state: SearchState) -> ProbabilityArray:
    """Return the same, and what a reranker said, of the candidates that it has read.

    - `reranker`: log odds of its score, within ±9.
    - `reranker_lead`: by how much they are above the best other ones.
    """
    read = ~np.isnan(state.candidates.scores["reranker"])
    odds = log_odds(state.candidates.scores["reranker"][read].astype(np.float64))
    odds = np.clip(odds, -_MOST_LOGIT, _MOST_LOGIT)
    lead = _lead(odds, len(odds))
    return np.concatenate([answer_features(state)[read], np.stack([odds, lead], 1)], axis=1)


def _lead(values: ProbabilityArray, searched: int) -> ProbabilityArray:
    """Return by how much each is above the best other one; 0 where there is no other.

    Where a single candidate was found among several that were searched, the others have 0.
    """
    if len(values) < 2:
        return values.copy() if searched > 1 else np.zeros(len(values))
    order = np.argsort(-values, kind="stable")
    others = np.full(len(values), values[order[0]])
    others[order[0]] = values[order[1]]
    return np.asarray(values - others, np.float64)


def _scores_or(candidates: Candidates, name: str, absent: float) -> ProbabilityArray:
    """Return a named score of the candidates, and `absent` for each where there is none."""
    found = candidates.scores.get(name)
    return np.full(len(candidates), absent) if found is None else found.astype(np.float64)


# The curves that `ekphory train calibration` fitted, and which models they hold for.

PROBABILITIES_KIND = "probabilities"
PROBABILITIES_FILE = FITTED / "probabilities.json"
"""The package's own curves."""
WORDS, MEANING = "words", "meaning"
"""A search by words alone, and one by words and meaning."""


@dataclass(frozen=True, slots=True)
class FittedProbabilities:
    """What the file holds.

    Attributes:
        file: Where it comes from.
        words, meaning: Curves of the first stage.
        hits: By `WORDS`, `MEANING` or the name of a reranker.
    """

    file: FittedFile
    words: LexicalCalibration
    meaning: FusionCalibration
    hits: Mapping[str, HitCurves]

    def curve_for(self, embedder: EmbedderIdentity, *, words_alone: bool) -> HitCurves | None:
        """Return the curve of the first stage's hits; None for another embedder or revision."""
        if words_alone:
            return self.hits[WORDS]
        return self.hits[MEANING] if self.file.models["embedder"] == embedder.model_id else None

    def curve_for_reader(self, reranker: RerankingModel) -> HitCurves | None:
        """Return the curve of what a reranker has read; None for one that has none.

        Raises:
            ModelError: The reranker is another revision of the one that it was fitted with.
        """
        name, model = bundled_name(reranker), model_id(reranker) or ""
        if name is None or name not in self.hits:
            return None
        # The role is the reranker's name: another one under it has no curve.
        if model.partition("@")[0] != self.file.models.get(name, "").partition("@")[0]:
            return None
        require_models(self.file, {name: model})
        return self.hits[name]


@cache
def fitted_probabilities(path: Path = PROBABILITIES_FILE) -> FittedProbabilities:
    """Read what `ekphory train calibration` wrote, once a process.

    Raises:
        ModelError: There is no such file, it cannot be read, or it holds something else.
    """
    file = read_fitted(path, kind=PROBABILITIES_KIND)
    try:
        return probabilities_of(file)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(
            f"{path}: holds no curves ({type(error).__name__}: {error}). Write it anew with "
            f"`{file.command}`."
        ) from error


def probabilities_of(file: FittedFile) -> FittedProbabilities:
    """Return the curves of a file that was read."""
    first: Mapping[str, Any] = file.values["first_stage"]
    return FittedProbabilities(
        file,
        LexicalCalibration(**{what: LexicalCurve(**curve) for what, curve in first[WORDS].items()}),
        FusionCalibration(**{what: Calibration(**curve) for what, curve in first[MEANING].items()}),
        {
            name: HitCurves(
                answers=AnswerCurve(**curves["answers"]),
                answerable=AnswerCurve(**curves["answerable"]),
                least=AnswerCurve(**curves["least"]),
                sharpness=float(curves["sharpness"]),
            )
            for name, curves in file.values["hits"].items()
        },
    )


@dataclass(frozen=True, slots=True)
class FirstStageCurves:
    """The first stage's curves, read from the package's file when a search needs them.

    Attributes:
        of: `words` for the lexical share alone; `meaning` for its weighted sum with the cosine, and
            `even` for the same where words weigh among turns what they weigh among documents.
    """

    of: Literal["words", "meaning", "even"]

    def among(self, turn_share: float) -> Calibration | LexicalCurve:
        """Return the curve in a scope of which this share, in [0, 1], are turns."""
        fitted = fitted_probabilities()
        if self.of == "words":
            return fitted.words.among(turn_share)
        return fitted.meaning.among(turn_share if self.of == "meaning" else 0.0)


ScopeCurves = FirstStageCurves | FusionCalibration | LexicalCalibration
"""The curves of scopes, by what these hold."""
MEANING_CURVES = FirstStageCurves("meaning")
EVEN_CURVES = FirstStageCurves("even")
WORD_CURVES = FirstStageCurves("words")


# The gate that `ekphory train gate` learned: when a reranker has nothing to gain.

GATE_KIND = "gate"
GATE_FILES = {name: FITTED / f"gate-{name}.json" for name in (SMALL_RERANKER, TINY_RERANKER)}
"""The package's own gates, by the bundled reranker that each was learned with."""


@dataclass(frozen=True, slots=True)
class GateBand:
    """The band of one feature within which reranking pays.

    Attributes:
        feature: What of the first stage's scores is compared.
        thresholds: The ends of the band, both inside.
    """

    feature: GateFeature
    thresholds: GateThresholds

    def decide(self, value: float) -> GateDecision:
        """Say whether to rerank where the feature has this value."""
        low, high = self.thresholds.low, self.thresholds.high
        inside = low <= value <= high
        place = "within" if inside else "outside"
        shown = f"{self.feature}={value:.4f} {place} [{low:.4f}, {high:.4f}]"
        return GateDecision(inside, 1.0, f"auto-gate-{'pass' if inside else 'skip'}: {shown}")


@dataclass(frozen=True, slots=True)
class FittedGate:
    """A gate and the two models that it was learned with.

    How far scores spread is a property of the embedder, and what there is to gain one of the
    reranker, so a gate holds for the two it was learned with.

    Attributes:
        file: Where it comes from.
        band: What it compares.
    """

    file: FittedFile
    band: GateBand

    def band_for(self, embedder: EmbedderIdentity, reranker: RerankingModel) -> GateBand | None:
        """Return the band for two models; None for others, which have no gate.

        Raises:
            ModelError: The reranker is another revision of that of the file.
        """
        reranker_id = model_id(reranker)
        used = {"embedder": embedder.model_id, "reranker": reranker_id or ""}
        is_other = used["embedder"] != self.file.models.get("embedder")
        if reranker_id is None or is_other or _names(used) != _names(self.file.models):
            return None
        require_models(self.file, used)
        return self.band


@cache
def read_gate(path: Path) -> FittedGate:
    """Read what `ekphory train gate` wrote, once a process.

    Raises:
        ModelError: There is no such file, it cannot be read, or it holds something else.
    """
    file = read_fitted(path, kind=GATE_KIND)
    try:
        feature, low, high = (file.values[name] for name in ("feature", "low", "high"))
        if feature not in get_args(GateFeature):
            raise ValueError(f"feature must be one of {get_args(GateFeature)}, got {feature!r}")
        thresholds = GateThresholds(low=float(low), high=float(high))
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(
            f"{path}: must have the values feature, low and high "
            f"({type(error).__name__}: {error}). Write it anew with `{file.command}`."
        ) from error
    return FittedGate(file, GateBand(cast("GateFeature", feature), thresholds))


def bundled_gate(reranker: RerankingModel) -> FittedGate | None:
    """Return the package's own gate for a bundled reranker; None for any other."""
    path = GATE_FILES.get(bundled_name(reranker) or "")
    return None if path is None else read_gate(path)


def _names(models: Mapping[str, str]) -> dict[str, str]:
    """Return the models' names by role, without their revisions."""
    return {role: model.rpartition("@")[0] for role, model in models.items()}
