"""Fixed candidates: what the first stage found for every question, kept in a file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from itertools import groupby, pairwise
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from ekphory import __version__
from ekphory.errors import DatasetError, InvalidInput
from ekphory.models.embedder import EmbeddingModel
from ekphory.models.reranker import RelevanceScores, RerankingModel, RerankPassage, RerankQuery
from ekphory.retrieval.calibration import reranker_probabilities
from ekphory.retrieval.fusion import Blend, reranked, turns_blend
from ekphory.retrieval.lexical import passage_terms, query_terms
from ekphory.retrieval.pipeline import Pipeline, SearchState, describe, read_candidates
from ekphory.retrieval.presets import BALANCED
from ekphory.retrieval.stages.rerank import (
    GateReranker,
    Rerank,
    make_query,
    read_passages,
    score_relevance,
)
from ekphory_lab.evaluation.datasets import Dataset, EvaluationQuery, Passage, Row, read_json_lines
from ekphory_lab.evaluation.metrics import FloatArray
from ekphory_lab.evaluation.runner import Progress, silent
from ekphory_lab.evaluation.systems import EkphorySystem

# Fixed candidates: what the first stage found for every question, the same for every reranker.

FIRST_STAGE_SCORES = ("ranking", "probability", "cosine")
"""What is kept of the first stage: its order, its probability, and what a gate looks at."""


@dataclass(frozen=True, slots=True)
class CandidateList:
    """What one search found.

    Attributes:
        key: Pool and id of the question.
        searched: The pool that was searched: the question's own, or another conversation.
        asked: The question, as a reranker gets it.
        ids: The passages found, best first.
        scores: Each of `FIRST_STAGE_SCORES`, parallel to `ids`.
    """

    key: tuple[str, str]
    searched: str
    asked: RerankQuery
    ids: tuple[str, ...]
    scores: Mapping[str, tuple[float, ...]]

    def column(self, name: str) -> FloatArray:
        """Return one score of the first stage, shape (candidates,)."""
        return np.array(self.scores[name], np.float64)


@dataclass(frozen=True, slots=True)
class CandidateIdentity:
    """What decides which candidates are found.

    Attributes:
        dataset: Name of the set.
        data: SHA-256 of its files.
        queries: How many questions were put.
        embedder: Identity of the first stage's embedder.
        first_stage: SHA-256 of the first stage's settings.
        top: How many candidates were kept for each question.
    """

    dataset: str
    data: str
    queries: int
    embedder: str
    first_stage: str
    top: int


@dataclass(frozen=True, slots=True)
class CandidateSet:
    """The candidates of all questions of a set.

    Attributes:
        identity: What they were made from.
        passages: What a reranker reads, by pool and id.
        own: Every question in its own pool, in the set's order.
        elsewhere: Every question in another conversation, which does not answer it; empty for a
            set of one pool.
        is_fitted: Whether the probabilities of the first stage were fitted; given ones were not.
    """

    identity: CandidateIdentity
    passages: Mapping[str, Mapping[str, RerankPassage]]
    own: tuple[CandidateList, ...]
    elsewhere: tuple[CandidateList, ...]
    is_fitted: bool = True

    def read(self, found: CandidateList, *, most: int | None = None) -> list[RerankPassage]:
        """Return the first passages of a list, as a reranker gets them."""
        pool = self.passages[found.searched]
        return [pool[passage_id] for passage_id in found.ids[:most]]


# Finds the candidates: the product's default search up to where a reranker would read.

TOP = 100
ELSEWHERE_TOP = 50
"""In another conversation no more is looked at than the presets let a reranker read."""

FIRST_STAGE = Pipeline(
    "first stage",
    [stage for stage in BALANCED.stages if not isinstance(stage, GateReranker | Rerank)],
    summary="The default preset without a reranker.",
)

_SCORE_DIGITS = 6


def candidate_identity(
    dataset: Dataset, embedder: EmbeddingModel, *, top: int = TOP
) -> CandidateIdentity:
    """Say what candidates of this set would be made from."""
    settings = [asdict(stage) for stage in describe(FIRST_STAGE)]
    described = json.dumps(settings, sort_keys=True, default=str)
    return CandidateIdentity(
        dataset=dataset.name,
        data=dataset.sha256,
        queries=len(dataset.queries),
        embedder=str(embedder.identity),
        first_stage=hashlib.sha256(described.encode()).hexdigest(),
        top=top,
    )


def find_candidates(
    dataset: Dataset, *, embedder: EmbeddingModel, top: int = TOP, progress: Progress = silent
) -> CandidateSet:
    """Put every question to its own pool, and to another conversation where there is one.

    The passages are those that stage 12 of a search would give a reranker, with their neighbours.
    A date that the set does not say is left out, where a search would show the day of writing.

    Args:
        dataset: The questions and the pools.
        embedder: Embedder of the store.
        top: How many candidates to keep in the question's own pool.
        progress: Is told after each pool and each question.
    """
    own: list[CandidateList] = []
    elsewhere: list[CandidateList] = []
    with EkphorySystem(embedder=embedder) as system:
        searches: dict[str, _CandidateSearch] = {}
        for done, (pool, passages) in enumerate(dataset.pools.items(), start=1):
            searches[pool] = _CandidateSearch(pool, passages, system)
            progress("index", done, len(dataset.pools))
        for done, query in enumerate(dataset.queries, start=1):
            own.append(searches[query.pool].find(query, top))
            other = another_conversation(dataset, query.pool)
            if other is not None:
                elsewhere.append(searches[other].find(query, min(top, ELSEWHERE_TOP)))
            progress("find candidates", done, len(dataset.queries))
    identity = candidate_identity(dataset, embedder, top=top)
    found = {pool: search.found for pool, search in searches.items()}
    return CandidateSet(identity, found, tuple(own), tuple(elsewhere))


def another_conversation(dataset: Dataset, pool: str) -> str | None:
    """Return the next pool, of the first after the last, in which nobody of this pool speaks.

    Where all pools share a speaker (`user` and `assistant`) it is the next one.

    Returns:
        None where the set has one pool.
    """
    names = list(dataset.pools)
    place = names.index(pool)
    others = names[place + 1 :] + names[:place]
    speakers = _speakers(dataset.pools[pool])
    strangers = [name for name in others if not speakers & _speakers(dataset.pools[name])]
    return next(iter(strangers or others), None)


class _CandidateSearch:
    """Searches one pool; a stage where a reranker would read keeps what that would be given.

    Attributes:
        found: What a reranker reads of every passage found so far, by id.
    """

    number = Rerank.number
    name = "keep candidates"
    needs = frozenset({"probability", "cosine", "lexical"})
    gives: frozenset[str] = frozenset()

    def __init__(self, pool: str, passages: Sequence[Passage], system: EkphorySystem) -> None:
        self.found: dict[str, RerankPassage] = {}
        self._pool = pool
        self._dated = {each.id: each.at is not None for each in passages}
        self._top = TOP
        self._last: CandidateList | None = None
        stages = [stage for stage in FIRST_STAGE.stages if stage.number < Rerank.number]
        after = FIRST_STAGE.stages[len(stages) :]
        pipeline = Pipeline("candidates", [*stages, self, *after])
        self._search = system.search(pool, passages, pipeline)

    def find(self, query: EvaluationQuery, top: int) -> CandidateList:
        """Put a question to the pool."""
        nothing = dict.fromkeys(FIRST_STAGE_SCORES, ())
        empty = CandidateList(query.key, self._pool, RerankQuery(query.text), (), nothing)
        self._top, self._last = top, empty
        self._search(query, top)
        found = replace(self._last, key=query.key)
        is_timed = query.at is not None or any(self._dated.values())
        return found if is_timed else replace(found, asked=replace(found.asked, now=None))

    def skip_reason(self, state: SearchState) -> str | None:
        return None if len(state.candidates) else "no candidates"

    def run(self, state: SearchState) -> SearchState:
        candidates, passages = read_passages(state, most=self._top)
        _, records = read_candidates(state, most=self._top)
        named = {**candidates.scores, "ranking": candidates.ranking}
        scores = {
            name: tuple(round(float(value), _SCORE_DIGITS) for value in named[name][: len(records)])
            for name in FIRST_STAGE_SCORES
        }
        ids = tuple(record.id for record in records)
        for passage_id, passage in zip(ids, passages, strict=True):
            at = passage.at if self._dated[passage_id] else None
            self.found[passage_id] = replace(passage, at=at)
        request = make_query(state.request, state.text)
        self._last = CandidateList(("", ""), self._pool, request, ids, scores)
        return state


def _speakers(passages: tuple[Passage, ...]) -> set[str]:
    return {passage.speaker.casefold() for passage in passages} - {""}


# The file of candidates: written once, read again when it fits, refused when it does not.
#
# JSON Lines, a line for each set: what the candidates were made from, the passages, the lists.

FORMAT = "ekphory-candidates-2"
_SETS = TypeAdapter(CandidateSet)

_REMEDY = "Give another file, or delete this one to have it made anew."


def candidates_of(
    dataset: Dataset,
    *,
    embedder: EmbeddingModel,
    top: int = TOP,
    file: Path | None = None,
    progress: Progress = silent,
) -> CandidateSet:
    """Read the candidates of a set, or find them and add them to the file.

    Args:
        dataset: The questions and the pools.
        embedder: Embedder of the first stage.
        top: How many candidates each question has.
        file: Where they are kept, with those of other sets; None keeps them nowhere.
        progress: Is told how far the search is.

    Raises:
        DatasetError: The file has candidates of this set that were made from other data, by
            another first stage, or in another number; or it is malformed.
    """
    wanted = candidate_identity(dataset, embedder, top=top)
    known = read_candidate_sets(file) if file is not None and file.exists() else {}
    held = known.get(dataset.name)
    if held is not None:
        _check_fit(file, held.identity, wanted)
        return held
    found = find_candidates(dataset, embedder=embedder, top=top, progress=progress)
    if file is not None:
        write_candidate_sets([*known.values(), found], file)
    return found


def write_candidate_sets(sets: Iterable[CandidateSet], file: Path) -> None:
    """Write all sets; a file of that name is replaced at once or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f"{file.name}.part")
    with unfinished.open("w", encoding="utf-8", newline="\n") as stream:
        for each in sets:
            row = {"format": FORMAT, "version": __version__, **asdict(each)}
            # ASCII escapes keep lone surrogates of the data writable.
            stream.write(json.dumps(row, default=datetime.isoformat) + "\n")
    unfinished.replace(file)


def read_candidate_sets(file: Path) -> dict[str, CandidateSet]:
    """Read all sets of a file, by name.

    Raises:
        DatasetError: The file does not hold sets of candidates, or is cut short.
    """
    sets: dict[str, CandidateSet] = {}
    for row in read_json_lines(file):
        if row.fields.get("format") != FORMAT:
            raise DatasetError(f"{row.place}: no candidates of format {FORMAT!r}. {_REMEDY}")
        try:
            found = _SETS.validate_python(row.fields)
        except ValidationError as error:
            raise DatasetError(
                f"{row.place}: not a set of candidates ({error}). {_REMEDY}"
            ) from error
        sets[found.identity.dataset] = found
    return sets


def _check_fit(file: Path | None, held: CandidateIdentity, wanted: CandidateIdentity) -> None:
    for each in fields(CandidateIdentity):
        made, given = getattr(held, each.name), getattr(wanted, each.name)
        if made != given:
            raise DatasetError(
                f"{file}: the candidates of {held.dataset} were made with another "
                f"{each.name.replace('_', ' ')}: {made}, now it is {given}. {_REMEDY}"
            )


# BM25 as a reranker: the baseline that every reranking model has to beat.

SATURATION = 1.5
LENGTH_NORMALISATION = 0.75


class Bm25Reranker:
    """Scores by BM25, over the most that the query's terms could give in the collection.

    The score is Σ idf·tf·(k1+1) / (tf + k1·(1 - b + b·length/mean)) over Σ idf·(k1+1), with
    idf = ln(1 + (N - n + ½)/(n + ½)) as in Lucene. How rare a term is and how long a passage is on
    average come from the collection, so a score does not depend on what is scored beside it.
    """

    name = "bm25"
    batch_size = 64

    def __init__(self, collection: Sequence[str]) -> None:
        """Count the terms of a collection.

        Args:
            collection: All texts among which the passages were found.
        """
        documents = [passage_terms(text) for text in collection]
        self._documents = len(documents)
        self._mean_length = max(1.0, sum(map(len, documents)) / max(1, len(documents)))
        terms = [np.unique(document) for document in documents]
        distinct, counts = np.unique(
            np.concatenate([*terms, np.empty(0, np.uint32)]), return_counts=True
        )
        self._holding = dict(zip(distinct.tolist(), counts.tolist(), strict=True))

    def score(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> RelevanceScores:
        """Score each passage in [0, 1], by its own text and by the question alone."""
        asked = query_terms(query.text)
        held = np.array([self._holding.get(int(term), 0) for term in asked], np.float64)
        rarity = np.log1p((self._documents - held + 0.5) / (held + 0.5))
        most = max(1e-9, float(rarity.sum()) * (SATURATION + 1))
        scores = [
            float((rarity * self._frequencies(asked, passage.text)).sum()) / most
            for passage in passages
        ]
        return np.array(scores, np.float32)

    def _frequencies(self, asked: np.ndarray, text: str) -> np.ndarray:
        terms = passage_terms(text)
        counts = (terms[:, np.newaxis] == asked).sum(axis=0)
        relative = len(terms) / self._mean_length
        damping = SATURATION * (1 - LENGTH_NORMALISATION + LENGTH_NORMALISATION * relative)
        return np.asarray(counts * (SATURATION + 1) / (counts + damping))


# What takes part in the benchmark: no reranker, BM25, and any reranking model.

NO_RERANKER = "none"
BM25 = "bm25"
BUNDLED = "bundled"

RerankerOfPool: TypeAlias = Callable[[Sequence[str]], RerankingModel]
"""Makes the reranker of a pool from the pool's texts."""


@dataclass(frozen=True, slots=True)
class Contender:
    """One row of the benchmark.

    Attributes:
        name: What the row is called.
        reranker: Makes a pool's reranker; None leaves the first stage's order and probability.
    """

    name: str
    reranker: RerankerOfPool | None


FIRST_STAGE_ALONE = Contender(NO_RERANKER, None)


def model_contender(model: RerankingModel, *, name: str | None = None) -> Contender:
    """Let a model take part, under its own name or another."""
    return Contender(name or model.name, lambda _texts: model)


def load_contenders(
    specs: Sequence[str], *, load: Callable[[str], RerankingModel]
) -> tuple[Contender, ...]:
    """Load what is named; the first stage alone always takes part, and comes first.

    Args:
        specs: `none`, `bm25`, `bundled`, a directory, a hub id, or the URL of a service.
        load: Loads a reranking model.

    Raises:
        InvalidInput: One is named twice, or under a name that another has; or it cannot be loaded.
    """
    contenders = [FIRST_STAGE_ALONE]
    for spec in specs:
        if spec == NO_RERANKER:
            continue
        contender = _load_contender(spec, load)
        if any(contender.name == other.name for other in contenders):
            raise InvalidInput(
                "rerankers", spec, f"there are two called {contender.name!r}", "Name each once."
            )
        contenders.append(contender)
    return tuple(contenders)


def _load_contender(spec: str, load: Callable[[str], RerankingModel]) -> Contender:
    if spec == BM25:
        return Contender(BM25, Bm25Reranker)
    named = BUNDLED if spec == BUNDLED else Path(spec).name if Path(spec).is_dir() else None
    return model_contender(load(spec), name=named)


# A reranker's verdict on candidates: scores, probabilities, and the order they make.

_NO_SCORES = np.empty(0, np.float32)


@dataclass(frozen=True, slots=True)
class ScoredList:
    """One list of candidates with a contender's verdict.

    Attributes:
        found: The candidates.
        scores: The reranker's scores in [0, 1], shape (candidates,); NaN where it read nothing.
        probabilities: That a candidate answers, likewise; the first stage's where nothing was read.
    """

    found: CandidateList
    scores: FloatArray
    probabilities: FloatArray

    def order(self, *, first_stage_share: float = 0.0) -> NDArray[np.int64]:
        """Return the places of the candidates, best first.

        Args:
            first_stage_share: How much the first stage's order weighs, as in the stage that
                reranks; 0 orders by the reranker alone. Equal ones keep the first stage's order.
        """
        first_stage = self.found.column("ranking")
        if np.isnan(self.scores).all():
            return np.arange(len(first_stage))
        blend = turns_blend(first_stage_share) if first_stage_share else Blend(method="scores")
        return np.argsort(-reranked(first_stage, self.scores, blend), kind="stable")


@dataclass(slots=True)
class Judge:
    """Puts candidates before a contender. A pool's reranker is made once.

    Attributes:
        contender: Who judges.
        candidates: Where the passages are.
        pools: All passages by pool, for rerankers that need to know the collection.
    """

    contender: Contender
    candidates: CandidateSet
    pools: Mapping[str, Sequence[Passage]]
    _rerankers: dict[str, RerankingModel] = field(default_factory=dict)

    def score(self, found: CandidateList, *, most: int | None = None) -> ScoredList:
        """Score the first candidates of a list; None scores all.

        Raises:
            ServiceError, ModelError: The reranker failed.
        """
        scores = np.full(len(found.ids), np.nan)
        probabilities = found.column("probability")
        reranker = self.reranker(found.searched)
        if reranker is None:
            return ScoredList(found, scores, probabilities)
        passages = self.candidates.read(found, most=most)
        read = score_relevance(reranker, found.asked, passages, seconds=None)
        scores[: len(read)] = read
        # If they are no probabilities, a search keeps the first stage's and shows them to nobody.
        probabilities[: len(read)] = read
        return ScoredList(found, scores, probabilities)

    @property
    def is_calibrated(self) -> bool:
        """Whether the probabilities were fitted."""
        reranker = self.reranker(next(iter(self.pools)))
        if reranker is None:
            return self.candidates.is_fitted
        return reranker_probabilities(reranker, _NO_SCORES) is not None

    def reranker(self, pool: str) -> RerankingModel | None:
        """Return the reranker of a pool; None for the first stage alone."""
        if self.contender.reranker is None:
            return None
        if pool not in self._rerankers:
            texts = [passage.indexed_text for passage in self.pools[pool]]
            self._rerankers[pool] = self.contender.reranker(texts)
        return self._rerankers[pool]


# Candidates that somebody else found, such as BGE-M3's best hundred: a file of ranked ids.

_GIVE_ROWS = (
    "Give a row for every question: query_id, passage_ids best first, perhaps pool and scores"
)


@dataclass(frozen=True, slots=True)
class GivenList:
    """One row of the file.

    Attributes:
        place: Where it stands, for errors.
        ids: Passages, best first.
        scores: One for each, falling; 1 / rank where the row has none.
    """

    place: str
    ids: tuple[str, ...]
    scores: tuple[float, ...]


GivenLists = Mapping[tuple[str | None, str], GivenList]
"""By pool, None where the row names none, and question."""


def read_given(file: Path) -> GivenLists | None:
    """Read the file; None where its first row is of another form.

    Raises:
        DatasetError: There is no row, one after the first is malformed, or a question has two.
    """
    found: dict[tuple[str | None, str], GivenList] = {}
    for row in read_json_lines(file):
        if not found and "query_id" not in row.fields:
            return None
        pool = row.label("pool") if "pool" in row.fields else None
        key = (pool, row.label("query_id"))
        if key in found:
            raise row.error("query_id", "this question has two rows")
        found[key] = _read_list(row)
    if not found:
        raise DatasetError(f"{file}: holds no candidates. Name another file, or remove this one.")
    return found


def _read_list(row: Row) -> GivenList:
    ids = row.texts("passage_ids")
    scores = row.fields.get("scores")
    if len(set(ids)) != len(ids):
        raise row.error("passage_ids", "a passage is named twice")
    if scores is None:
        return GivenList(row.place, ids, tuple(1 / rank for rank in range(1, len(ids) + 1)))
    numbers = scores if isinstance(scores, list) else []
    fits = len(numbers) == len(ids) and all(isinstance(each, int | float) for each in numbers)
    if not fits or any(later > earlier for earlier, later in pairwise(numbers)):
        raise row.error("scores", "a falling number for each passage is needed here")
    return GivenList(row.place, ids, tuple(map(float, numbers)))


def given_candidates(
    dataset: Dataset, lists: GivenLists, *, file: Path, top: int
) -> CandidateSet | None:
    """Return the candidates of a set; None where the file has none of its questions.

    A reranker gets each passage with the turns around it. Scores in [0, 1] stand for probabilities,
    others are replaced by 1 / rank: what the row `none` says of calibration is then nothing.

    Args:
        dataset: The questions and the pools.
        lists: What `read_given` read.
        file: Where from; the report says which.
        top: How many candidates to keep for each question.

    Raises:
        DatasetError: A question of the set has no row, or a passage is not in its pool.
    """
    named = {
        query.key: lists.get(query.key) or lists.get((None, query.id)) for query in dataset.queries
    }
    if not any(named.values()):
        return None
    passages = {pool: _with_neighbours(each) for pool, each in dataset.pools.items()}
    own = []
    for query in dataset.queries:
        given = named[query.key]
        if given is None:
            raise DatasetError(
                f"{file.name}: no candidates for question {query.id!r} of pool {query.pool!r} of "
                f"{dataset.name}. {_GIVE_ROWS}."
            )
        unknown = [each for each in given.ids if each not in passages[query.pool]]
        if unknown:
            problem = f"passage {unknown[0]!r} is not in pool {query.pool!r}"
            raise DatasetError(f"{given.place}: {problem}. {_GIVE_ROWS}.")
        own.append(_candidate_list(query, given, top))
    identity = CandidateIdentity(
        dataset=dataset.name,
        data=dataset.sha256,
        queries=len(dataset.queries),
        embedder=f"{file.name} (given)",
        first_stage=hashlib.sha256(file.read_bytes()).hexdigest(),
        top=top,
    )
    return CandidateSet(identity, passages, tuple(own), (), is_fitted=False)


def _candidate_list(query: EvaluationQuery, given: GivenList, top: int) -> CandidateList:
    scores = given.scores[:top]
    places = range(1, len(scores) + 1)
    is_share = all(0 <= score <= 1 for score in scores)
    columns = dict.fromkeys(FIRST_STAGE_SCORES, scores)
    columns["probability"] = scores if is_share else tuple(1 / place for place in places)
    asked = RerankQuery(query.text, now=query.at)
    return CandidateList(query.key, query.pool, asked, given.ids[:top], columns)


def _with_neighbours(passages: Iterable[Passage]) -> dict[str, RerankPassage]:
    found: dict[str, RerankPassage] = {}
    for session, turns in groupby(passages, key=lambda passage: passage.session):
        told: Sequence[Passage] = list(turns)
        around: list[str | None] = [None, *(each.indexed_text for each in told), None]
        for place, each in enumerate(told):
            before, after = (around[place], around[place + 2]) if session else (None, None)
            found[each.id] = RerankPassage(each.indexed_text, before, after, each.at)
    return found
