"""A pipeline: a list of stages over one state, checked when it is built, traced when it runs."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from datetime import tzinfo
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ekphory.errors import InvalidInput
from ekphory.models.chat import Chat
from ekphory.models.embedder import EmbeddingModel
from ekphory.models.reranker import RerankingModel, RerankPassage, RerankQuery
from ekphory.retrieval.gate import GateDecision
from ekphory.retrieval.snapshot import ScopeSnapshot
from ekphory.spans import TraceSpan
from ekphory.store.ledger import RevisionLinks
from ekphory.store.protocol import IntArray, ScoreArray
from ekphory.types import MemoryRecord, ResultOrder, StageTrace, SupersededUse, TimeUse, Trace

if TYPE_CHECKING:
    from ekphory.retrieval.time_arm import TimedRows
    from ekphory.time_words.reference import TimeReading


# What kind of query it is.

Intent = Literal["lookup", "temporal", "preference", "procedural", "comparison", "chain"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryHints:
    """What the words of a query say about the memories that are wanted; each in [0, 1], 0: nothing.

    Attributes:
        importance: Important ones, as in "the most important".
        episodic: What happened, as in "last time".
        semantic: Preferences and standing facts, as in "my preference".
        procedural: How something is done, as in "how do I".
    """

    importance: float = 0.0
    episodic: float = 0.0
    semantic: float = 0.0
    procedural: float = 0.0

    @property
    def given(self) -> dict[str, float]:
        """Return the hints that say something, by name."""
        return {name: value for name in self.__slots__ if (value := getattr(self, name)) > 0}


NO_HINTS = QueryHints()


@dataclass(frozen=True, slots=True)
class QueryClass:
    """What kind of query it is.

    Attributes:
        intent: `lookup` one fact, also where nothing else is recognised; `temporal` when, how long,
            in what order, or within what time; `preference` tastes, habits and opinions;
            `procedural` how something is done; `comparison` several things against each other;
            `chain` something described through something else, which must be found first.
        complexity: In [0, 1]; grows with clauses, names and length.
        signals: Names of the cues that were found, in their order; no text.
        hints: What is said about the memories that are wanted.
    """

    intent: Intent
    complexity: float
    signals: tuple[str, ...] = ()
    hints: QueryHints = NO_HINTS


# What stages may use beside the snapshot: models, and readers of whole memories.

RecordReader = Callable[[Sequence[int]], Mapping[int, MemoryRecord]]
"""Gives whole memories by key; one that is gone is left out."""
ChildReader = Callable[[Sequence[str]], Sequence[MemoryRecord]]
"""Gives the memories, in this scope and in view, whose `parent_id` is one of these."""

OpeningReader = Callable[[Sequence[str]], IntArray]
"""Gives the keys of the first passages, in this scope, of notes that links may mean."""


@dataclass(frozen=True, slots=True)
class RememberedRecords:
    """Reads whole memories, and each of them once in a search, whichever stages ask for it."""

    read: RecordReader
    _known: dict[int, MemoryRecord] = field(default_factory=dict)

    def __call__(self, keys: Sequence[int]) -> dict[int, MemoryRecord]:
        """Return the records of these keys, which must be of the search's snapshot."""
        missing = [key for key in keys if key not in self._known]
        if missing:
            self._known.update(self.read(missing))
        return {key: self._known[key] for key in keys if key in self._known}


KnownScores = MutableMapping[tuple[str, RerankQuery, RerankPassage], float]
"""What a reranker, by its name, said of a passage for a query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionalModels:
    """Models that a search can do without.

    Attributes:
        reranker: Reads a query together with each passage; None where there is none.
        chat: A language model; None where there is none.
        known_scores: Where searches that ask the same keep what rerankers said; None for nowhere.
    """

    reranker: RerankingModel | None = None
    chat: Chat | None = None
    known_scores: KnownScores | None = None


NO_OPTIONAL_MODELS = OptionalModels()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResources:
    """What a search has at hand.

    Attributes:
        embedder: Embeds queries.
        records: Reads the memories of candidates; only keys of the snapshot may be asked for.
        children: Reads the parts of documents.
        openings: Finds the first passages of linked notes, by the end of their path in lower case.
        reranker, chat, known_scores: As in `OptionalModels`.
    """

    embedder: EmbeddingModel
    records: RecordReader
    children: ChildReader
    openings: OpeningReader
    reranker: RerankingModel | None = None
    chat: Chat | None = None
    known_scores: KnownScores | None = None


# What travels through a pipeline: the request, what is searched, and the candidates so far.

NO_ROWS: IntArray = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What the caller asked.

    Attributes:
        query: The text as given.
        k: How many hits are wanted.
        now: The moment it is asked, microseconds since 1970.
        min_score: Calibrated probability below which nothing is returned; None for no limit.
        visible: Which rows of the snapshot may be returned at all, shape (rows,).
        context: The dialogue before the question, oldest turn first, each `speaker: text` or text
            alone: the reader has it before it already, and a reranker understands through it.
        pinned: Rows that are found and come first whatever they score.
        time: What a time in the query's words does.
        timezone: Where the days of the query begin and end.
        superseded: What becomes of memories that later ones supersede.
        times_of: The text whose words name the time; None for the query.
    """

    query: str
    k: int
    now: int
    min_score: float | None
    visible: NDArray[np.bool_]
    context: tuple[str, ...] = ()
    pinned: IntArray = field(default_factory=lambda: NO_ROWS)
    time: TimeUse = "boost"
    timezone: str | tzinfo = "UTC"
    superseded: SupersededUse = "recede"
    times_of: str | None = None


@dataclass(frozen=True, slots=True)
class Candidates:
    """Rows that may become hits, best first by `ranking`.

    Attributes:
        rows: Rows of the snapshot, shape (candidates,).
        ranking: What they are ordered by at this point.
        scores: Raw scores by name, each of shape (candidates,).
    """

    rows: IntArray
    ranking: ScoreArray
    scores: Mapping[str, ScoreArray]

    def __len__(self) -> int:
        return len(self.rows)

    def scored_by_name(self, name: str, values: ScoreArray) -> Candidates:
        """Return the same candidates in the same order, with one more named score."""
        return replace(self, scores={**self.scores, name: values})

    def ranked(self, ranking: ScoreArray) -> Candidates:
        """Return the same candidates, ordered by other values."""
        return replace(self, ranking=ranking).sorted()

    def boosted(self, **factors: ScoreArray) -> Candidates:
        """Return the same candidates with their ranking multiplied, and the product remembered.

        Args:
            factors: By what they are for; each that changes something is remembered by itself,
                as the score `boost_` and its name.
        """
        told = {f"boost_{name}": each for name, each in factors.items() if (each != 1).any()}
        lifted = np.ones(len(self), np.float32)
        for each in factors.values():
            lifted = lifted * each
        boost = self.scores.get("boost")
        product = lifted if boost is None else boost * lifted
        scores = {**self.scores, "boost": product, **told}
        return Candidates(self.rows, self.ranking * lifted, scores).sorted()

    def lift_of(self, *boosts: str) -> NDArray[np.float64]:
        """Return the product of these boosts for each candidate; 1 where there was none."""
        lift = np.ones(len(self))
        for name in self.scores.keys() & set(boosts):
            lift *= self.scores[name]
        return lift

    def in_order(self, places: NDArray[np.integer]) -> Candidates:
        """Return the candidates at these places, in this order, ranked by it."""
        chosen = self.take(places)
        return replace(chosen, ranking=np.sort(chosen.ranking)[::-1])

    def joined_by(self, rows: Iterable[int]) -> Candidates:
        """Return the candidates and, at their end, those of the rows that are not among them.

        Their probability is 0, and they have no other score.
        """
        known = set(self.rows.tolist())
        new = np.array([row for row in dict.fromkeys(rows) if row not in known], np.int64)
        if not len(new):
            return self
        lowest = self.ranking.min(initial=0.0)
        scores = {
            name: np.concatenate([values, np.full(len(new), np.nan, np.float32)])
            for name, values in self.scores.items()
        }
        scores["probability"][-len(new) :] = 0.0
        ranking = np.concatenate([self.ranking, np.full(len(new), lowest, np.float32)])
        return Candidates(np.concatenate([self.rows, new]), ranking, scores)

    def sorted(self) -> Candidates:
        """Best first; equal ones in the order in which they were written."""
        return self.take(np.lexsort((self.rows, -self.ranking)))

    def take(self, places: NDArray[np.integer] | NDArray[np.bool_] | slice) -> Candidates:
        """Return the candidates at these places, or those that are marked."""
        scores = {name: values[places] for name, values in self.scores.items()}
        return Candidates(self.rows[places], self.ranking[places], scores)


EMPTY = Candidates(NO_ROWS, np.empty(0, np.float32), {})


@dataclass(frozen=True, slots=True)
class SearchState:
    """The state between two stages.

    Attributes:
        request: What was asked.
        snapshot: What is searched.
        resources: Models and readers that stages may use.
        text: The query as cleaned so far.
        query_class: What kind of query it is; None where no stage has said so.
        reading: What the query says about time; None where no stage has read it.
        timed: The rows in the times that it names; None where no stage has looked for them.
        wordings: Other wordings of the query; both arms search them too.
        vector: What the dense arm searches in place of the query's own embedding, shape
            (dimension,), of length 1; None for that embedding.
        candidates: What was found so far.
        gate: Whether the reranker is worth its time; None where no stage has said so.
        reader: The reranker that has read some of the candidates; None where none has.
        texts: By row, the text that is shown in place of the memory's own.
        notes: What the last stage has to say about itself, for the trace.
        degraded: Why the last stage used something lesser than it should have; None if it did not.
        order: What the candidates are ordered by, once stages are through.
        links: The revisions that act within the snapshot.
    """

    request: SearchRequest
    snapshot: ScopeSnapshot
    resources: SearchResources
    text: str
    query_class: QueryClass | None = None
    reading: TimeReading | None = None
    timed: TimedRows | None = None
    wordings: tuple[str, ...] = ()
    vector: ScoreArray | None = None
    candidates: Candidates = EMPTY
    gate: GateDecision | None = None
    reader: RerankingModel | None = None
    texts: Mapping[int, str] = field(default_factory=dict)
    notes: Mapping[str, object] | None = None
    degraded: str | None = None
    order: ResultOrder = "score"
    links: RevisionLinks = field(default_factory=RevisionLinks)


# The whole memories behind candidates.


def read_candidates(
    state: SearchState, *, most: int | None = None
) -> tuple[Candidates, list[MemoryRecord]]:
    """Read the memories of the first candidates.

    Args:
        state: Where the candidates are.
        most: How many to read; None reads all.

    Returns:
        All candidates but those that were asked for and are gone, and the records of the first.
    """
    candidates = state.candidates
    head = candidates.rows[:most]
    keys = state.snapshot.columns.key[head].tolist()
    found = state.resources.records(keys)
    there = np.array([key in found for key in keys], bool)
    kept = np.concatenate([there, np.ones(len(candidates) - len(head), bool)])
    remaining = candidates if kept.all() else candidates.take(kept)
    return remaining, [found[key] for key in keys if key in found]


def places_of(kept: Iterable[int], *, read: int, total: int) -> IntArray:
    """Return the places of what is kept of those that were read, and of all after them."""
    return np.array([*kept, *range(read, total)], np.int64)


# What a stage is.

SEARCH = 4
"""Number of the stages that find the candidates."""


class Stage(Protocol):
    """One step of a pipeline: settings in its constructor, one `run`.

    Attributes:
        number: Place in the canonical order of fifteen stages.
        name: What the trace and error messages call it.
        needs: What must have been given by earlier stages.
        gives: What later stages may rely on.
    """

    number: int
    name: str
    needs: frozenset[str] = frozenset()
    gives: frozenset[str] = frozenset()

    def skip_reason(self, state: SearchState) -> str | None:
        """Say why there is nothing to do for this state; None when there is.

        Stages after the search have nothing to do without candidates.
        """
        is_idle = self.number > SEARCH and not len(state.candidates)
        return "no candidates" if is_idle else None

    def run(self, state: SearchState) -> SearchState:
        """Do the work and give the next state."""
        ...


_SHOWN = 3


class Pipeline:
    """Runs its stages in order.

    Args:
        name: What traces and error messages call it.
        stages: In the canonical order.
        summary: What it is good for, in a sentence.

    Raises:
        InvalidInput: Two stages stand in the wrong order, or a stage lacks what it needs.
    """

    def __init__(self, name: str, stages: Sequence[Stage], *, summary: str = "") -> None:
        _check(name, stages)
        self.name = name
        self.summary = summary
        self.stages = tuple(stages)

    def run(self, state: SearchState) -> tuple[SearchState, Trace]:
        """Run all stages; returns the last state and what each stage did."""
        traces: list[StageTrace] = []
        for stage in self.stages:
            with TraceSpan(f"stage {stage.name}") as span:
                state, trace = _trace(stage, state)
                span.note(
                    status=trace.status,
                    candidates_in=trace.candidates_in,
                    candidates_out=trace.candidates_out,
                )
            traces.append(trace)
        return state, Trace(self.name, tuple(traces))


def _trace(stage: Stage, before: SearchState) -> tuple[SearchState, StageTrace]:
    started = time.perf_counter()
    skipped = stage.skip_reason(before)
    after = before if skipped else stage.run(replace(before, notes=None, degraded=None))
    ended = time.perf_counter()
    return after, StageTrace(
        number=stage.number,
        name=stage.name,
        status="skipped" if skipped else "degraded" if after.degraded else "ran",
        reason=skipped or after.degraded,
        candidates_in=len(before.candidates),
        candidates_out=len(after.candidates),
        milliseconds=(ended - started) * 1000,
        detail={} if skipped else {**(after.notes or {}), **_best(before, after)},
    )


def _best(before: SearchState, after: SearchState) -> dict[str, list[float]]:
    """Return the best ranking values, before as well where the stage changed them."""
    if after.candidates is before.candidates:
        return {}
    earlier, later = _first_values(before.candidates), _first_values(after.candidates)
    changed = {"best_before": earlier} if earlier and earlier != later else {}
    return {**changed, "best": later}


def _first_values(candidates: Candidates) -> list[float]:
    return [round(value, 4) for value in candidates.ranking[:_SHOWN].tolist()]


def _check(name: str, stages: Sequence[Stage]) -> None:
    given: set[str] = set()
    for earlier, later in zip([None, *stages], stages, strict=False):
        if earlier is not None and earlier.number > later.number:
            problem = f"in pipeline {name!r} stage {earlier.number} stands before {later.number}"
            remedy = "Put them into the canonical order"
            raise InvalidInput("stages", f"{earlier.name}, {later.name}", problem, remedy)
        missing = sorted(later.needs - given)
        if missing:
            problem = f"in pipeline {name!r} it needs {missing}, which nothing before it gives"
            raise InvalidInput("stages", later.name, problem, "Add a stage that gives it")
        given |= later.gives


# A pipeline in words: which of the fifteen stages it has, what each does, with which settings.

CANONICAL_STAGES: Mapping[int, str] = MappingProxyType(
    {
        1: "clean query",
        2: "hyde",
        3: "multi-query",
        4: "search pools",
        5: "fuse",
        6: "merge pools",
        7: "source dedup",
        8: "weigh",
        9: "decay",
        10: "normalise",
        11: "reranker gate",
        12: "rerank",
        13: "diversify",
        14: "expand parents",
        15: "context, safety, budget, cut",
    }
)
"""The fifteen stages in the order of Memory-Spark's paper and code."""


@dataclass(frozen=True, slots=True)
class StageDescription:
    """One stage of a pipeline, or one that it does without.

    Attributes:
        number: Place in the canonical order.
        name: The stage's name.
        used: Whether the pipeline has it.
        purpose: What it does, in a sentence; empty where it is not used.
        settings: Its settings by name, as plain data.
    """

    number: int
    name: str
    used: bool
    purpose: str
    settings: Mapping[str, object]


def describe(pipeline: Pipeline) -> list[StageDescription]:
    """Describe all fifteen stages; one that the pipeline lacks stands as unused."""
    described: list[StageDescription] = []
    for number, name in CANONICAL_STAGES.items():
        stages = [stage for stage in pipeline.stages if stage.number == number]
        described += [_describe_stage(stage) for stage in stages]
        if not stages:
            described.append(StageDescription(number, name, False, "", {}))
    return described


def _describe_stage(stage: Stage) -> StageDescription:
    purpose = (inspect.getdoc(type(stage)) or "").partition("\n\n")[0]
    settings = {
        name: _plain(value) for name, value in vars(stage).items() if name not in ("needs", "gives")
    }
    return StageDescription(stage.number, stage.name, True, " ".join(purpose.split()), settings)


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return {name: _plain(each) for name, each in asdict(value).items()}
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    return list(value) if isinstance(value, tuple) else value
