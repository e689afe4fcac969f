"""Fits all probabilities, and writes the file that search reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path

import numpy as np

from ekphory.errors import DatasetError, InvalidInput, MissingExtra
from ekphory.memory import Memory
from ekphory.models.embedder import EmbeddingModel
from ekphory.models.onnx_models import load_bundled
from ekphory.models.reranker import (
    BUNDLED_RERANKERS,
    SMALL_RERANKER,
    TINY_RERANKER,
    RerankingModel,
    bundled_reranker,
    model_id,
)
from ekphory.retrieval import calibration
from ekphory.retrieval.calibration import (
    PROBABILITIES_FILE,
    AnswerCurve,
    Calibration,
    FittedFile,
    HitCurves,
    LexicalCurve,
    ScopeCurves,
)
from ekphory.retrieval.pipeline import Pipeline, SearchState
from ekphory.retrieval.presets import ACCURATE, BALANCED, FAST, PRESETS
from ekphory.retrieval.stages.find import Fuse
from ekphory.retrieval.stages.shape import Cut
from ekphory_lab.evaluation.metrics import FloatArray, best_hit_error, expected_calibration_error
from ekphory_lab.evaluation.reranking.candidates import FIRST_STAGE
from ekphory_lab.evaluation.stated_probabilities import EMPTY_BELOW, AskedScope
from ekphory_lab.training.probability_scopes import (
    DEVELOPMENT_CONVERSATIONS,
    SQUAD_SENTENCES,
    data_hashes,
    pool_scopes,
    probability_scopes,
)
from ekphory_lab.training.texts import each_row

# Told before an hour of searches, and not after it.
try:
    from scipy.optimize import linprog
except ImportError as error:
    raise MissingExtra("train", "Fitting probabilities", package="ekphory-lab") from error

_HELD_OUT = 4

# Fits the curves that turn the fused score into a probability; no evaluation data is read.
#
# Every question is searched among a few hundred other passages, as in a scope of that size; each
# returned passage is one observation: its fused score, and whether it answers the question. Scopes
# of documents and of conversations have a curve each, and so do searches by meaning and words and
# searches by words alone.

_SCOPE_SENTENCES = 600
_CURVE_DEPTH = 50
_NEWTON_STEPS = 50
_RIDGE = 1e-3
_LEAST_MISS = 1e-12
"""Too little to be seen in a fit, enough for data in which the score tells every answer."""


@dataclass(frozen=True, slots=True)
class CurveFit:
    """A fitted curve and how well it holds on questions that it was not fitted on.

    Attributes:
        curve: The curve.
        observations: Number of scored passages that it was fitted on.
        expected_calibration_error: On held-out questions, ten bins of equal width.
    """

    curve: Calibration | LexicalCurve
    observations: int
    expected_calibration_error: float


def fit_fusion_calibration(
    directory: Path,
    *,
    scopes: int = 8,
    conversations: Path = DEVELOPMENT_CONVERSATIONS,
    embedder: EmbeddingModel | None = None,
) -> dict[str, dict[str, CurveFit]]:
    """Fit on SQuAD questions to sentences, and on questions to written conversations.

    Args:
        directory: Holds `squad_sentences.jsonl.gz`.
        scopes: At most so many of each, at least 4; every fourth is held out. The conversations
            of the package make 8.
        conversations: Folder of written conversations.
        embedder: None for the bundled one.

    Returns:
        The curves of each of `FITTED_PRESETS` among documents and among turns.

    Raises:
        DatasetError: A file is missing, or holds fewer than four scopes.
        InvalidInput: `scopes` is below 4.
    """
    if scopes < _HELD_OUT:
        raise InvalidInput("scopes", scopes, "leaves none to be held out", "Give 4 or more.")
    documents = islice(_squad_scopes(directory / SQUAD_SENTENCES), scopes)
    turns = islice(pool_scopes(conversations), scopes)
    by_kind = {
        "documents": _first_stage_curves(documents, embedder, source=SQUAD_SENTENCES),
        "turns": _first_stage_curves(turns, embedder, source=str(conversations)),
    }
    return {name: {kind: by_kind[kind][name] for kind in by_kind} for name in FITTED_PRESETS}


def _first_stage_curves(
    scopes: Iterable[AskedScope], embedder: EmbeddingModel | None, *, source: str
) -> dict[str, CurveFit]:
    observed = []
    for scope in scopes:
        with scope.written(embedder=embedder) as memory:
            observed.append({name: _observations(memory, scope, name) for name in FITTED_PRESETS})
    if len(observed) < _HELD_OUT:
        raise DatasetError(
            f"{source}: {len(observed)} scopes, so none is held out. Give data for {_HELD_OUT}."
        )
    return {
        name: _curve_fit([each[name] for each in observed], fit)
        for name, fit in FITTED_PRESETS.items()
    }


def _curve_fit(observed: list[FloatArray], fit: CurveFitter) -> CurveFit:
    tests = np.concatenate(observed[_HELD_OUT - 1 :: _HELD_OUT])
    known = np.concatenate(
        [each for number, each in enumerate(observed, start=1) if number % _HELD_OUT != 0]
    )
    curve = fit(*known.T)
    probabilities = [
        curve.probabilities(np.array([score], np.float32), evidence=evidence)[0]
        for score, evidence, _ in tests
    ]
    error = expected_calibration_error(np.array(probabilities, np.float64), tests[:, 2])
    return CurveFit(curve, len(known), error)


def fit_logistic(scores: FloatArray, evidence: FloatArray, relevant: FloatArray) -> Calibration:
    """Maximum likelihood of the curve of both arms; shapes (observations,)."""
    amount = _amounts(evidence)
    design = np.stack([scores, scores * amount, amount, np.ones_like(scores)], axis=1)
    slope, steepening, weight, intercept = most_likely(design, relevant)
    return Calibration(slope, steepening, weight, intercept)


def fit_lexical(scores: FloatArray, evidence: FloatArray, relevant: FloatArray) -> LexicalCurve:
    """Maximum likelihood of the curve of words alone; shapes (observations,)."""
    shares = np.log(scores + calibration.SMALLEST_SHARE)
    design = np.stack([shares, _amounts(evidence), np.ones_like(scores)], axis=1)
    slope, weight, intercept = most_likely(design, relevant)
    return LexicalCurve(slope, weight, intercept)


CurveFitter = Callable[[FloatArray, FloatArray, FloatArray], Calibration | LexicalCurve]
FITTED_PRESETS: Mapping[str, CurveFitter] = {"balanced": fit_logistic, "fast": fit_lexical}
"""Both arms, and words alone."""


_LOGISTIC = Calibration(slope=1.0, steepening=0.0, weight=0.0, intercept=0.0)
_UNSCALED = calibration.FusionCalibration(documents=_LOGISTIC, turns=_LOGISTIC)
"""Curves before there are any: they keep the order of the scores."""


def _uncalibrated(preset: Pipeline) -> Pipeline:
    """Return a pipeline that needs no fitted constants."""
    stages = [
        replace(stage, calibration=_UNSCALED) if isinstance(stage, Fuse) else stage
        for stage in preset.stages
        if stage.name not in ("calibrate", "reranker gate", "rerank", "rerank again")
    ]
    return Pipeline(preset.name, stages)


def _amounts(evidence: FloatArray) -> FloatArray:
    return np.array([calibration.evidence_amount(each) for each in evidence])


def most_likely(
    design: FloatArray,
    relevant: FloatArray,
    counts: FloatArray | None = None,
    factors: FloatArray | None = None,
) -> list[float]:
    """Return the coefficients of a logistic regression, by Fisher's scoring.

    Args:
        design: Shape (observations, coefficients).
        relevant: 0 or 1, shape (observations,).
        counts: How often each observation counts; None for once.
        factors: In (0, 1], what the curve is multiplied by to be the probability of each; None
            for 1.
    """
    times = np.ones(len(design)) if counts is None else counts
    believed = np.ones(len(design)) if factors is None else factors
    weights = np.zeros(design.shape[1])
    for _ in range(_NEWTON_STEPS):
        curve = 1 / (1 + np.exp(-(design @ weights)))
        odds = (1 - curve) / np.maximum(1 - believed * curve, _LEAST_MISS)
        gradient = design.T @ (times * (relevant - believed * curve) * odds) - _RIDGE * weights
        information = times * believed * curve * (1 - curve) * odds
        curvature = design.T @ (design * information[:, None])
        step = np.linalg.solve(curvature + _RIDGE * np.eye(len(weights)), gradient)
        weights += step
        if float(np.abs(step).max()) < 1e-9:
            break
    return [float(each) for each in weights]


def _observations(memory: Memory, scope: AskedScope, preset: str) -> FloatArray:
    """Return a row for each hit: its fused score, the query's evidence, and whether it answers."""
    rows: list[tuple[float, float, bool]] = []
    pipeline = _uncalibrated(PRESETS[preset])
    for question, answers in scope.questions.items():
        for hit in memory.search(question, k=_CURVE_DEPTH, now=scope.now, preset=pipeline):
            scores = hit.scores
            rows.append((scores["fused"], scores["lexical_bound"], hit.id in answers))
    return np.array(rows, np.float64).reshape(-1, 3)


def _squad_scopes(path: Path) -> Iterator[AskedScope]:
    sentences: dict[str, str] = {}
    questions: dict[str, set[str]] = {}
    for row in each_row(path):
        sentence_id = sentences.setdefault(row["sentence"], str(len(sentences)))
        if int(sentence_id) % 3 == 0:
            questions.setdefault(row["query"], set()).add(sentence_id)
        if len(sentences) == _SCOPE_SENTENCES:
            yield AskedScope(
                "documents",
                [{"id": name, "text": text} for text, name in sentences.items()],
                {query: frozenset(answers) for query, answers in questions.items()},
            )
            sentences, questions = {}, {}


# Fits the probability that a hit answers, after everything that orders hits.

DEPTH = 10
"""So many of the best hits of a question are observed."""
_BEST_COUNTS = 10.0
"""The first of them counts as often as ten others."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """How much evidence is so little that one doubts whether there is an answer.

    Attributes:
        share: Of the questions with an answer that have less.
        sharpness: See `HitCurves`.
    """

    share: float
    sharpness: float


DOUBT = Doubt(0.02, 2.0)
"""Of six that were tried, the most for which what is said of answered questions stays true."""
DOUBT_WHERE_READ = {SMALL_RERANKER: Doubt(0.03, 3.0), TINY_RERANKER: Doubt(0.06, 3.0)}
"""Likewise; the quick reranker's is such that as many questions without an answer come back empty
as without it."""
_NO_SPREAD = 1e-9
_TURNS_WEIGHT_WHERE_READ = 0.2
"""The reranker learned from such turns, and knows them too well."""

_NOTHING = AnswerCurve(0.0, {})

Told = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """One question's best hits.

    Attributes:
        scope: Number of the scope.
        kind: Of the scope.
        features: Shape (hits, features).
        relevant: 0 or 1, parallel.
        is_answered: Whether the answer is in the scope at all.
    """

    scope: int
    kind: str
    features: FloatArray
    relevant: FloatArray
    is_answered: bool


@dataclass(frozen=True, slots=True)
class HitFit:
    """Fitted curves, and how well they hold on scopes that they were not fitted on.

    Attributes:
        curves: The curves.
        questions: On how many they were fitted.
        errors: Error of the best hit on held-out scopes, by kind; see `best_hit_error`.
        empty: Share of the questions without an answer whose best hit is below `EMPTY_BELOW`.
    """

    curves: HitCurves
    questions: int
    errors: Mapping[str, float]
    empty: Mapping[str, float]


@dataclass(slots=True)
class _Observer:
    """The last stage before the cut, which remembers what is known of the candidates."""

    reads: bool
    number: int = 12
    name: str = "observe"
    needs: frozenset[str] = frozenset({"probability"})
    gives: frozenset[str] = frozenset({"calibrated"})
    seen: FloatArray = field(default_factory=lambda: np.empty((0, 0)))

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to see without candidates, or where no reranker has read any."""
        self.seen = np.empty((0, 0))
        if self.reads and "reranker" not in state.candidates.scores:
            return "nothing was read"
        return None if len(state.candidates) and state.order != "time" else "nothing to see"

    def run(self, state: SearchState) -> SearchState:
        """See it."""
        self.seen = (
            calibration.read_features(state) if self.reads else calibration.answer_features(state)
        )
        return state


@dataclass(frozen=True, slots=True, kw_only=True)
class Searching:
    """What searches while hits are observed.

    Attributes:
        preset: A pipeline that ends with `Calibrate`, perhaps `PinRules`, and `Cut`.
        first_stage: Its curves, by which candidates are ordered before they are read.
        embedder: None for the bundled one.
        reranker: Reads the best candidates; None for none.
    """

    preset: Pipeline
    first_stage: ScopeCurves
    embedder: EmbeddingModel | None
    reranker: RerankingModel | None = None


def observed(
    scopes: Iterable[AskedScope], searching: Searching, *, on_progress: Told
) -> list[Asked]:
    """Ask every scope its questions, and note the best hits of each.

    Args:
        scopes: What to ask.
        searching: Preset and models.
        on_progress: Told in words what has been asked.
    """
    embedder, reranker = searching.embedder, searching.reranker
    observer = _Observer(reads=reranker is not None)
    pipeline = _watched(searching.preset, observer, searching.first_stage)
    found: list[Asked] = []
    for number, scope in enumerate(scopes):
        with scope.written(embedder=embedder, reranker=reranker) as memory:
            found += _asked(memory, number, scope, pipeline, observer)
        on_progress(f"{number + 1} scopes, {len(found):,} questions")
    return found


def _asked(
    memory: Memory, number: int, scope: AskedScope, pipeline: Pipeline, observer: _Observer
) -> Iterator[Asked]:
    for query, answers in scope.questions.items():
        hits = memory.search(query, k=DEPTH, now=scope.now, preset=pipeline).hits
        features = observer.seen[: len(hits)]
        if len(features):
            right = np.array([hit.id in answers for hit in hits[: len(features)]], np.float64)
            yield Asked(number, scope.kind, features, right, bool(answers))


def _watched(preset: Pipeline, observer: _Observer, first_stage: ScopeCurves) -> Pipeline:
    """Return the stages up to where probabilities are given, with an observer in that place."""
    stages = [
        replace(stage, calibration=first_stage) if isinstance(stage, Fuse) else stage
        for stage in preset.stages
        if stage.number <= observer.number and stage.name != "calibrate"
    ]
    return Pipeline("observed", [*stages, observer, Cut()])


def fit_hits(asked: Sequence[Asked], *, reads: bool, doubt: Doubt = DOUBT) -> HitFit:
    """Fit on three of four scopes, measure on the fourth; the curves returned are those of all."""
    kept_back = [each for each in asked if each.scope % _HELD_OUT == _HELD_OUT - 1]
    known = [each for each in asked if each.scope % _HELD_OUT != _HELD_OUT - 1]
    trial = _fitted(known, reads=reads, doubt=doubt)
    kinds = sorted({each.kind for each in kept_back})
    names = calibration.READ_FEATURES if reads else calibration.FEATURES
    errors, empty = {}, {}
    for kind in kinds:
        of_kind = [each for each in kept_back if each.kind == kind]
        best = [
            float(calibration.make_descending(trial.probabilities(each.features, names))[0])
            for each in of_kind
        ]
        said, is_answered = np.array(best), np.array([each.is_answered for each in of_kind])
        right = np.array([each.relevant[0] for each in of_kind])
        errors[kind] = best_hit_error(said[is_answered], right[is_answered])
        if not is_answered.all():
            empty[kind] = float((said[~is_answered] < EMPTY_BELOW).mean())
    return HitFit(_fitted(asked, reads=reads, doubt=doubt), len(asked), errors, empty)


def _fitted(asked: Sequence[Asked], *, reads: bool, doubt: Doubt) -> HitCurves:
    names = calibration.READ_FEATURES if reads else calibration.FEATURES
    answerable = _fit_belief(
        asked, names, calibration.BELIEVING_READ if reads else calibration.BELIEVING
    )
    answered = [each for each in asked if each.is_answered]
    least = _fit_least(answered, answerable, names, share=doubt.share)
    curves = HitCurves(_NOTHING, answerable, least, doubt.sharpness)
    believed = curves.belief(np.array([each.features[0] for each in answered]), names)
    chosen = calibration.COMPARING_READ if reads else calibration.COMPARING
    answers = _regression(
        np.concatenate([each.features for each in answered]),
        np.concatenate([each.relevant for each in answered]),
        np.concatenate([_counts(each, reads=reads) for each in answered]),
        names=names,
        chosen=chosen,
        factors=np.repeat(believed, [len(each.relevant) for each in answered]),
    )
    return replace(curves, answers=answers)


def _fit_least(
    answered: Sequence[Asked], answerable: AnswerCurve, names: Sequence[str], *, share: float
) -> AnswerCurve:
    """Fit the log odds that all but a share of the questions with an answer reach.

    Every kind of scope counts the same. Source: Koenker and Bassett, "Regression Quantiles",
    Econometrica 46, 1978, as a linear programme.
    """
    kinds = Counter(each.kind for each in answered)
    counts = np.array([1.0 / kinds[each.kind] for each in answered])
    firsts = np.array([each.features[0] for each in answered])
    columns = firsts[:, [names.index(name) for name in calibration.SURROUNDING]]
    design = np.concatenate([columns, np.ones((len(columns), 1))], axis=1)
    # The dual, which has as many unknowns as questions and as many conditions as coefficients.
    found = linprog(
        -answerable.log_odds(firsts, names),
        A_eq=design.T,
        b_eq=(1 - share) * (counts @ design),
        bounds=np.stack([np.zeros(len(counts)), counts], axis=1),
        method="highs",
    )
    *weights, constant = (-found.eqlin.marginals).tolist()
    return AnswerCurve(constant, dict(zip(calibration.SURROUNDING, weights, strict=True)))


def _fit_belief(asked: Sequence[Asked], names: Sequence[str], chosen: Sequence[str]) -> AnswerCurve:
    """Fit whether there is an answer, on kinds of scopes that have questions without one."""
    counts = Counter((each.kind, each.is_answered) for each in asked)
    usable = [each for each in asked if counts[each.kind, False]]
    # Of each kind, the questions with an answer count as much as those without.
    weights = [len(usable) / counts[each.kind, each.is_answered] for each in usable]
    return _regression(
        np.array([each.features[0] for each in usable]),
        np.array([float(each.is_answered) for each in usable]),
        np.array(weights),
        names=names,
        chosen=chosen,
    )


def _regression(
    features: FloatArray,
    labels: FloatArray,
    counts: FloatArray,
    *,
    names: Sequence[str],
    chosen: Sequence[str],
    factors: FloatArray | None = None,
) -> AnswerCurve:
    columns = features[:, [names.index(name) for name in chosen]]
    mean, spread = columns.mean(axis=0), columns.std(axis=0)
    spread[spread < _NO_SPREAD] = 1.0
    design = np.concatenate([(columns - mean) / spread, np.ones((len(columns), 1))], axis=1)
    *scaled, constant = most_likely(design, labels, counts, factors)
    slopes = np.array(scaled) / spread
    intercept = constant - float(slopes @ mean)
    return AnswerCurve(intercept, dict(zip(chosen, slopes.tolist(), strict=True)))


def _counts(asked: Asked, *, reads: bool) -> FloatArray:
    counts = np.ones(len(asked.relevant))
    counts[0] = _BEST_COUNTS
    return counts * (_TURNS_WEIGHT_WHERE_READ if reads and asked.kind == "turns" else 1.0)


# Fits all probabilities, and puts them together as the file that searches read.

COMMAND = "ekphory train calibration --data DIR"


def fit_probabilities(
    directory: Path, *, on_progress: Told, only: Sequence[str] = (), kept: Path = PROBABILITIES_FILE
) -> FittedFile:
    """Fit the first stage's curves, then those of the hits, for the bundled models.

    Args:
        directory: Holds what `probability_scopes` reads.
        on_progress: Told in words what is being done.
        only: The rerankers whose curve of hits is fitted; empty for all curves. The others, and
            those of the first stage, are those of `kept`.
        kept: A file of the same data, embedder and other rerankers.

    Raises:
        DatasetError: A file is missing or malformed, or a reranker is not installed.
        InvalidInput: There is no such reranker, or `kept` is of other data or models.
    """
    if unknown := [name for name in only if name not in BUNDLED_RERANKERS]:
        known = ", ".join(BUNDLED_RERANKERS)
        raise InvalidInput("only", unknown, "no such reranker", f"Known are {known}")
    embedder, rerankers = load_bundled(), {name: _installed(name) for name in BUNDLED_RERANKERS}
    hashes = data_hashes(directory)
    models = {"embedder": embedder.identity.model_id} | {
        name: model_id(reranker) or "" for name, reranker in rerankers.items()
    }
    if only:
        file = read_kept_fits(kept, only, data=hashes, models=models)
    else:
        on_progress("the first stage's curves")
        file = _first_curves(fit_fusion_calibration(directory), data=hashes, models=models)
    first = calibration.probabilities_of(file)
    meaning = first.meaning
    even = calibration.FusionCalibration(documents=meaning.documents, turns=meaning.documents)
    plan: dict[str, tuple[Pipeline, ScopeCurves]] = {
        calibration.WORDS: (FAST, first.words),
        calibration.MEANING: (FIRST_STAGE, meaning),
        TINY_RERANKER: (BALANCED, meaning),
        SMALL_RERANKER: (ACCURATE, even),
    }
    fits: dict[str, HitFit] = {}
    for name in only or plan:
        preset, curves = plan[name]
        searching = Searching(
            preset=preset, first_stage=curves, embedder=embedder, reranker=rerankers.get(name)
        )

        def tell(told: str, name: str = name) -> None:
            on_progress(f"{name}: {told}")

        asked = observed(probability_scopes(directory), searching, on_progress=tell)
        doubt = DOUBT_WHERE_READ.get(name, DOUBT)
        fits[name] = fit_hits(asked, reads=name in rerankers, doubt=doubt)
    hits = {name: asdict(fit.curves) for name, fit in fits.items()}
    return replace(
        file,
        command=" ".join([COMMAND, *(f"--only {name}" for name in only)]),
        measured={**file.measured, **_measured(fits)},
        values={**file.values, "hits": {**file.values["hits"], **hits}},
    )


def _installed(name: str) -> RerankingModel:
    reranker = bundled_reranker(name)
    if reranker is None:
        raise DatasetError(f"{name} is not installed. Install the package again.")
    return reranker


def read_kept_fits(
    path: Path, only: Sequence[str], *, data: Mapping[str, str], models: Mapping[str, str]
) -> FittedFile:
    """Return what is not fitted anew.

    Raises:
        InvalidInput: The file is of other data or models.
    """
    file = calibration.fitted_probabilities(path).file
    used = {name: model for name, model in models.items() if name not in only}
    if file.data != data or any(file.models.get(role) != used[role] for role in used):
        raise InvalidInput("only", list(only), f"{path} is of other data or models", "Fit all.")
    hits = {name: curves for name, curves in file.values["hits"].items() if name not in only}
    of_only = tuple(f"{name}{mark}" for name in only for mark in (",", ":"))
    measured = {key: value for key, value in file.measured.items() if not key.startswith(of_only)}
    return replace(file, models=models, measured=measured, values={**file.values, "hits": hits})


def _first_curves(
    first: Mapping[str, Mapping[str, CurveFit]],
    *,
    data: Mapping[str, str],
    models: Mapping[str, str],
) -> FittedFile:
    errors, values = {}, {}
    for name, preset in ((calibration.WORDS, "fast"), (calibration.MEANING, "balanced")):
        values[name] = {kind: asdict(found.curve) for kind, found in first[preset].items()}
        for kind, found in first[preset].items():
            error = round(found.expected_calibration_error, 4)
            errors[f"first stage, {preset}, {kind}: calibration error"] = error
    return FittedFile(
        kind=calibration.PROBABILITIES_KIND,
        command=COMMAND,
        models=models,
        data=data,
        seed=0,
        measured=errors,
        values={"first_stage": values, "hits": {}},
    )


def _measured(fits: dict[str, HitFit]) -> dict[str, float]:
    measured: dict[str, float] = {}
    for name, fit in fits.items():
        measured[f"{name}: questions"] = float(fit.questions)
        for kind, error in fit.errors.items():
            measured[f"{name}, {kind}: error of the best hit"] = round(error, 4)
        for kind, share in fit.empty.items():
            what = f"empty at {EMPTY_BELOW:g} of those without an answer"
            measured[f"{name}, {kind}: {what}"] = round(share, 4)
    return measured
