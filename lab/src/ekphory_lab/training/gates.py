"""Learns when a reranker may be skipped, and writes the gate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, islice
from pathlib import Path
from random import Random

import numpy as np

from ekphory.errors import DatasetError, InvalidInput
from ekphory.models.embedder import EmbeddingModel
from ekphory.models.model_record import CalibrationCard
from ekphory.models.reranker import RerankingModel, log_odds
from ekphory.retrieval.calibration import GATE_KIND, FittedFile
from ekphory.retrieval.gate import GateFeature, GateThresholds
from ekphory_lab.evaluation import datasets
from ekphory_lab.evaluation.metrics import FloatArray
from ekphory_lab.evaluation.reranking.benchmark import (
    GATE_FEATURES,
    GateCases,
    GateOutcome,
    Reliability,
    gate_outcome,
    passes,
    reliability,
)
from ekphory_lab.evaluation.reranking.candidates import Judge, find_candidates, model_contender
from ekphory_lab.evaluation.runner import Progress, silent
from ekphory_lab.training.question_groups import QuestionGroup
from ekphory_lab.training.reranker.examples import rows_of
from ekphory_lab.training.reranker.export import calibration_card, fit_platt
from ekphory_lab.training.sources import SOURCES

# Training conversations as a set of questions over collections as large as real ones.

GROUPS_PER_POOL = {"synthetic_persona_chat": 2, "sgd": 2, "qmsum": 1, "crd3": 1}
"""Some hundred passages each, as one of LoCoMo's conversations has."""
QUESTIONS_PER_POOL = 60
MOST_POOLS = 12
NAME = "training_conversations"

_SOURCE = datasets.Source(
    "training conversations, rows held back", "as of each file", "see docs/training.md"
)


def gate_conversations(folder: Path, *, pools: int = MOST_POOLS, seed: int = 0) -> datasets.Dataset:
    """Put conversations that no reranker was trained on into pools, with their questions.

    Args:
        folder: Holds the files of `GROUPS_PER_POOL`.
        pools: Most pools; fewer where the rows do not suffice.
        seed: Decides order, names and wording.

    Raises:
        DatasetError: A file is missing or malformed, or there is no question.
    """
    streams = {
        name: SOURCES[name].groups(
            rows_of("held_back", SOURCES[name].rows(folder)),
            Random(f"{seed}:{name}"),  # noqa: S311  no secret
        )
        for name in GROUPS_PER_POOL
    }
    collection = datasets.Collection()
    for number in range(pools):
        drawn = [list(islice(streams[name], most)) for name, most in GROUPS_PER_POOL.items()]
        if number and not all(drawn):
            break
        _add_pool(collection, str(number), list(chain.from_iterable(drawn)), seed)
    files = tuple(
        datasets.BenchmarkFile(SOURCES[name].name, SOURCES[name].sha256(folder), None)
        for name in GROUPS_PER_POOL
    )
    return collection.dataset(NAME, source=_SOURCE, files=files)


def _add_pool(
    collection: datasets.Collection, pool: str, groups: Sequence[QuestionGroup], seed: int
) -> None:
    place = f"training conversations, pool {pool}"
    for passage in chain.from_iterable(_passages(n, group) for n, group in enumerate(groups)):
        collection.add_passage(place, pool=pool, passage=passage)
    asked = [(n, question) for n, group in enumerate(groups) for question in group.questions]
    random = Random(f"{seed}:questions:{pool}")  # noqa: S311  no secret
    chosen = random.sample(asked, min(QUESTIONS_PER_POOL, len(asked)))
    for number, (group, question) in enumerate(chosen):
        query = datasets.EvaluationQuery(
            pool=pool, id=str(number), text=question.text, category=groups[group].source
        )
        answers = (f"{group}:{row}" for row in question.positives)
        collection.add_answered(place, query=query, answers=answers)


def _passages(number: int, group: QuestionGroup) -> Iterator[datasets.Passage]:
    for row, text in enumerate(group.passages):
        placement = group.placements[row] if group.placements else None
        speaker, mark, said = text.partition(": ")
        yield datasets.Passage(
            id=f"{number}:{row}",
            text=said if mark else text,
            speaker=speaker if mark else "",
            session=None if placement is None else f"{number}:{placement.session}",
            sequence=row,
        )


def find_judge(
    dataset: datasets.Dataset, model: RerankingModel, embedder: EmbeddingModel, progress: Progress
) -> Judge:
    """Find what the first stage gives to read for each question, and put it before a reranker."""
    candidates = find_candidates(dataset, embedder=embedder, progress=progress)
    return Judge(model_contender(model), candidates, dataset.pools)


# Learns when a reranker may be skipped: thresholds for the gate's `auto` mode.

KEPT = 0.98
"""Share of the gain that a gate has to keep."""
_STEPS = 50
_LOWEST, _HIGHEST = 0.0, 2.0
"""No feature lies outside."""


@dataclass(frozen=True, slots=True)
class LearnedGate:
    """Thresholds on one feature.

    Attributes:
        feature: What is compared.
        thresholds: Between which values a reranker is worth its time; learned on all questions.
        checked: What thresholds learned on one half of the conversations do on the other half,
            both ways taken together: what is to be expected of new conversations.
    """

    feature: GateFeature
    thresholds: GateThresholds
    checked: GateOutcome


def learn_gates(cases: GateCases, *, keep: float = KEPT) -> tuple[LearnedGate, ...]:
    """Learn a gate on each feature, the one that skips most first.

    Gates that keep enough on conversations that they were not learned on come before the others.

    Raises:
        DatasetError: Reranking gains nothing on these questions, or there is one conversation.
    """
    if len(set(cases.pools.tolist())) < 2:
        raise DatasetError("Learning a gate needs two conversations or more. Give more rows.")
    gates = [
        LearnedGate(
            feature, learn_thresholds(cases, feature, keep=keep), _checked(cases, feature, keep)
        )
        for feature in GATE_FEATURES
    ]
    return tuple(
        sorted(gates, key=lambda gate: (gate.checked.gain_kept < keep, -gate.checked.skipped))
    )


def measure_gates(gates: Sequence[LearnedGate], cases: GateCases) -> list[GateOutcome]:
    """Say what each gate does on questions that it was not learned on."""
    return [gate_outcome(cases, passes(cases, each.feature, each.thresholds)) for each in gates]


def learn_thresholds(
    cases: GateCases, feature: GateFeature, *, keep: float = KEPT
) -> GateThresholds:
    """Find the narrowest band of a feature within which reranking gains enough.

    Its ends are among fifty quantiles: finer ones would follow single questions.

    Raises:
        DatasetError: Reranking gains nothing on these questions.
    """
    total = float(cases.gains.sum())
    if total <= 0:
        raise DatasetError(
            f"reranking changes MAP from {cases.first_stage.mean():.3f} to "
            f"{cases.reranked.mean():.3f}: there is no gain to keep. Take another reranker."
        )
    values = cases.features[feature]
    ends = np.unique(np.quantile(values, np.linspace(0, 1, _STEPS + 1)))
    bands = [(low, high) for place, low in enumerate(ends) for high in ends[place:]]
    inside = [(values >= low) & (values <= high) for low, high in bands]
    enough = [place for place, band in enumerate(inside) if cases.gains[band].sum() >= keep * total]
    low, high = bands[min(enough, key=lambda place: int(inside[place].sum()))]
    # The ends of what was seen are no ends of what may come.
    return GateThresholds(
        _LOWEST if low == ends[0] else float(low), _HIGHEST if high == ends[-1] else float(high)
    )


def _checked(cases: GateCases, feature: GateFeature, keep: float) -> GateOutcome:
    is_even = np.isin(cases.pools, np.unique(cases.pools)[::2])
    reranked = np.zeros(len(is_even), bool)
    for learned in (is_even, ~is_even):
        others = cases.only(~learned)
        thresholds = learn_thresholds(cases.only(learned), feature, keep=keep)
        reranked[~learned] = passes(others, feature, thresholds)
    return gate_outcome(cases, reranked)


# What `ekphory train gate` writes: the gate, the models that it holds for, what was measured.

_DIGITS = 4
_MEASURED = {
    "questions": "questions",
    "skipped": "skipped",
    "MAP without reranking": "first_stage",
    "MAP always reranked": "always",
    "MAP through the gate": "gated",
}


def gate_file(
    gate: LearnedGate,
    learned_on: datasets.Dataset,
    *,
    models: Mapping[str, str],
    seed: int,
    command: str,
    checked: Mapping[str, GateOutcome],
) -> FittedFile:
    """Return the file's content.

    Args:
        gate: What was learned.
        learned_on: The questions.
        models: Embedder and reranker that it was learned with.
        seed: Drew the questions.
        command: Finds the gate again.
        checked: What it does on benchmarks, by their names.
    """
    outcomes = {"other training conversations": gate.checked, **checked}
    measured = {
        f"{name}, {what}": round(float(getattr(outcome, figure)), _DIGITS)
        for name, outcome in outcomes.items()
        for what, figure in _MEASURED.items()
    }
    return FittedFile(
        kind=GATE_KIND,
        command=command,
        models=dict(models),
        data={each.name: each.sha256 for each in learned_on.files},
        seed=seed,
        measured=measured,
        values={"feature": gate.feature, **asdict(gate.thresholds)},
    )


@dataclass(frozen=True, slots=True)
class OwnCalibration:
    """A calibration and how well it holds.

    Attributes:
        card: The curve over the log-odds of the scores, its thresholds and its error.
        reliability: Of its probabilities on the candidates that it was fitted on, for the picture.
    """

    card: CalibrationCard
    reliability: Reliability | None


_NO_CURVE = (
    "its scores do not rise with what answers on these conversations",
    "Check that it reads the language of the data, and the right protocol and scale of scores",
)


def fit_own_calibration(
    dataset: datasets.Dataset, judge: Judge, *, read: int, progress: Progress = silent
) -> OwnCalibration:
    """Score the first candidates of every question, and fit a curve to what answers.

    Args:
        dataset: Judgements.
        judge: The reranker and the candidates.
        read: How many candidates of a question it reads, as many as in a search.
        progress: Is told after each question.

    Raises:
        InvalidInput: Fewer than four questions, or scores that do not rise with what answers.
        ServiceError, ModelError: The reranker failed.
    """
    odds: list[FloatArray] = []
    relevant: list[FloatArray] = []
    for done, found in enumerate(judge.candidates.own, start=1):
        scores = judge.score(found, most=read).scores
        was_read = ~np.isnan(scores)
        gains = dataset.qrels[found.key]
        answers = np.array([float(gains.get(passage, 0) > 0) for passage in found.ids])
        odds.append(log_odds(scores[was_read]))
        relevant.append(answers[was_read])
        progress("score", done, len(judge.candidates.own))
    all_equal = bool(odds) and float(np.ptp(np.concatenate(odds))) == 0
    fit = None if all_equal else fit_platt(odds, relevant)
    if fit is None or fit.scaling.slope <= 0:
        raise InvalidInput("reranker", judge.contender.name, *_NO_CURVE)
    said = [fit.scaling.probabilities(each).astype(np.float64) for each in odds]
    data = f"{len(odds)} questions to {dataset.name}"
    card = calibration_card(fit, np.concatenate(said), np.concatenate(relevant), data=data)
    return OwnCalibration(card, reliability(list(zip(said, relevant, strict=True))))
