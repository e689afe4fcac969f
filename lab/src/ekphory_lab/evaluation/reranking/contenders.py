"""What takes part in the benchmark, and its verdict on candidates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ekphory.errors import InvalidInput
from ekphory.models.reranker import RelevanceScores, RerankingModel, RerankPassage, RerankQuery
from ekphory.retrieval.calibration import reranker_probabilities
from ekphory.retrieval.lexical import passage_terms, query_terms
from ekphory.retrieval.rerank import Blend, reranked, score_relevance, turns_blend
from ekphory_lab.evaluation.datasets import Passage
from ekphory_lab.evaluation.metrics import FloatArray
from ekphory_lab.evaluation.reranking.candidates import CandidateList, CandidateSet

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
        probabilities[: len(read)] = as_probabilities(reranker, read)
        return ScoredList(found, scores, probabilities)

    @property
    def is_calibrated(self) -> bool:
        """Whether the probabilities were fitted; those of the first stage were."""
        reranker = self.reranker(next(iter(self.pools)))
        return reranker is None or reranker_probabilities(reranker, _NO_SCORES) is not None

    def reranker(self, pool: str) -> RerankingModel | None:
        """Return the reranker of a pool; None for the first stage alone."""
        if self.contender.reranker is None:
            return None
        if pool not in self._rerankers:
            texts = [passage.indexed_text for passage in self.pools[pool]]
            self._rerankers[pool] = self.contender.reranker(texts)
        return self._rerankers[pool]


def as_probabilities(reranker: RerankingModel, scores: FloatArray) -> FloatArray:
    """Return the probabilities that were fitted for a reranker, else its scores as they are.

    A search shows the latter to nobody: without a calibration it keeps the first stage's.
    """
    fitted = reranker_probabilities(reranker, scores.astype(np.float32))
    return scores if fitted is None else fitted.astype(np.float64)
