"""Finds the candidates: the product's default search up to where a reranker would read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

from ekphory.evaluation.datasets import Dataset, EvaluationQuery, Passage
from ekphory.evaluation.product import EkphorySystem
from ekphory.evaluation.reranking.candidates import (
    FIRST_STAGE_SCORES,
    CandidateIdentity,
    CandidateList,
    CandidateSet,
)
from ekphory.evaluation.retriever import Retriever
from ekphory.evaluation.runner import Progress, silent
from ekphory.models.embedder import EmbeddingModel
from ekphory.models.rerank_input import RerankPassage, RerankQuery
from ekphory.retrieval.candidate_records import read_candidates
from ekphory.retrieval.description import describe
from ekphory.retrieval.pipeline import Pipeline
from ekphory.retrieval.presets import BALANCED
from ekphory.retrieval.rerank_passages import asked, read_passages
from ekphory.retrieval.stages.gate_reranker import GateReranker
from ekphory.retrieval.stages.rerank import Rerank
from ekphory.retrieval.state import SearchState

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
    dataset: Dataset,
    *,
    embedder: EmbeddingModel,
    top: int = TOP,
    progress: Progress = silent,
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
    with EkphorySystem(embedder=embedder) as system:
        search = _CandidateSearch(dataset, system)
        for done, pool in enumerate(dataset.pools, start=1):
            search.index(pool)
            progress("index", done, len(dataset.pools))
        own: list[CandidateList] = []
        elsewhere: list[CandidateList] = []
        for done, query in enumerate(dataset.queries, start=1):
            own.append(search.put(query, query.pool, top))
            other = another_conversation(dataset, query.pool)
            if other is not None:
                elsewhere.append(search.put(query, other, min(top, ELSEWHERE_TOP)))
            progress("find candidates", done, len(dataset.queries))
    identity = candidate_identity(dataset, embedder, top=top)
    return CandidateSet(identity, search.passages, tuple(own), tuple(elsewhere))


def another_conversation(dataset: Dataset, pool: str) -> str | None:
    """Give the next pool, of the first after the last, in which nobody of this pool speaks.

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


@dataclass(slots=True)
class _Find:
    """What the last search found."""

    asked: RerankQuery
    ids: list[str]
    passages: list[RerankPassage]
    scores: dict[str, tuple[float, ...]]


class _KeepCandidates:
    """Stands where a reranker would read, and keeps what that would be given."""

    number = Rerank.number
    name = "keep candidates"
    needs = frozenset({"probability", "cosine", "lexical"})
    gives: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.top = TOP
        self.last: _Find | None = None

    def skip_reason(self, state: SearchState) -> str | None:
        return None if len(state.candidates) else "no candidates"

    def run(self, state: SearchState) -> SearchState:
        candidates, passages = read_passages(state, most=self.top)
        _, records = read_candidates(state, most=self.top)
        named = {**candidates.scores, "ranking": candidates.ranking}
        self.last = _Find(
            asked=asked(state.request, state.text),
            ids=[record.id for record in records],
            passages=passages,
            scores={
                name: tuple(
                    round(float(value), _SCORE_DIGITS) for value in named[name][: len(records)]
                )
                for name in FIRST_STAGE_SCORES
            },
        )
        return state


@dataclass(slots=True)
class _CandidateSearch:
    dataset: Dataset
    system: EkphorySystem
    passages: dict[str, dict[str, RerankPassage]] = field(default_factory=dict)
    _keep: _KeepCandidates = field(default_factory=_KeepCandidates)
    _retrievers: dict[str, Retriever] = field(default_factory=dict)
    _dated: dict[str, Mapping[str, bool]] = field(default_factory=dict)

    def index(self, pool: str) -> None:
        stages = [stage for stage in FIRST_STAGE.stages if stage.number < Rerank.number]
        after = FIRST_STAGE.stages[len(stages) :]
        pipeline = Pipeline("candidates", [*stages, self._keep, *after])
        passages = self.dataset.pools[pool]
        self._retrievers[pool] = self.system.searched(pool, passages, pipeline)
        self._dated[pool] = {each.id: each.at is not None for each in passages}
        self.passages[pool] = {}

    def put(self, query: EvaluationQuery, pool: str, top: int) -> CandidateList:
        self._keep.top, self._keep.last = top, None
        self._retrievers[pool](query, top)
        found = self._keep.last
        if found is None:
            nothing = dict.fromkeys(FIRST_STAGE_SCORES, ())
            return CandidateList(query.key, pool, RerankQuery(query.text), (), nothing)
        dated = self._dated[pool]
        self.passages[pool] |= {
            passage_id: passage if dated[passage_id] else replace(passage, at=None)
            for passage_id, passage in zip(found.ids, found.passages, strict=True)
        }
        is_timed = query.at is not None or any(dated.values())
        put = found.asked if is_timed else replace(found.asked, now=None)
        return CandidateList(query.key, pool, put, tuple(found.ids), found.scores)


def _speakers(passages: tuple[Passage, ...]) -> set[str]:
    return {passage.speaker.casefold() for passage in passages} - {""}
