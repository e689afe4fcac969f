"""What a system has to beat: BM25, dense vectors, and two ways to put them together.

A baseline scores every passage of its pool. In an array of scores NaN marks a passage that the
baseline did not find.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import Stemmer
from numpy.typing import NDArray

from ekphory.errors import MissingExtra
from ekphory.evaluation.datasets import EvaluationQuery, Passage
from ekphory.evaluation.retriever import Retriever, Scored, Setting
from ekphory.models.embedder import EmbeddingModel

FloatArray = NDArray[np.float64]
Scorer: TypeAlias = Callable[[str], FloatArray]
"""Scores every passage of a pool for the text of a query."""

RRF_CONSTANT = 60


@dataclass(frozen=True, slots=True)
class ScoringSystem:
    """A retriever factory for anything that scores every passage of a pool.

    Attributes:
        name: What the system is called in a report.
        configuration: Everything that decides its results.
        index: Makes a pool's scorer from the texts to index.
    """

    name: str
    configuration: Mapping[str, Setting]
    index: Callable[[Sequence[str]], Scorer]

    def retriever(self, _pool: str, passages: Sequence[Passage], /) -> Retriever:
        """Index a pool and give its retriever."""
        ids = [passage.id for passage in passages]
        scorer = self.index([passage.indexed_text for passage in passages])

        def search(query: EvaluationQuery, k: int, /) -> list[Scored]:
            scores = scorer(query.text)
            # NaN sorts last; equal scores keep the order of the pool.
            order = np.argsort(-scores, kind="stable")[:k]
            return [(ids[row], float(scores[row])) for row in order if not np.isnan(scores[row])]

        return search


def bm25_system() -> ScoringSystem:
    """BM25 by bm25s with its defaults, its English stop words, and English stemming.

    Raises:
        MissingExtra: bm25s is not installed.
    """
    bm25s = _import_bm25s()
    configuration: dict[str, Setting] = {
        "library": f"bm25s {bm25s.__version__}",
        "method": "lucene",
        "k1": 1.5,
        "b": 0.75,
        "stopwords": "english",
        "stemmer": "english",
    }
    return ScoringSystem("bm25", configuration, bm25_scorer)


def dense_system(embedder: EmbeddingModel) -> ScoringSystem:
    """Cosine between the query's vector and one vector per passage."""
    configuration: dict[str, Setting] = {"embedder": str(embedder.identity)}
    return ScoringSystem("dense", configuration, lambda texts: dense_scorer(texts, embedder))


def mean_system(embedder: EmbeddingModel) -> ScoringSystem:
    """Mean of BM25 and dense, each z-scored over the pool.

    Raises:
        MissingExtra: bm25s is not installed.
    """
    return _hybrid("mean", embedder, z_scored_mean)


def rrf_system(embedder: EmbeddingModel) -> ScoringSystem:
    """Reciprocal rank fusion of BM25 and dense, constant 60.

    Raises:
        MissingExtra: bm25s is not installed.
    """
    return _hybrid("rrf", embedder, reciprocal_rank_fusion)


def bm25_scorer(texts: Sequence[str]) -> Scorer:
    """Index texts for BM25; a text that shares no term with the query is not found."""
    bm25s = _import_bm25s()
    stem = Stemmer.Stemmer("english")

    def tokens(batch: list[str]) -> list[list[str]]:
        split: list[list[str]] = bm25s.tokenize(
            batch, stopwords="english", stemmer=stem, return_ids=False, show_progress=False
        )
        return split

    corpus = tokens([_printable(text) for text in texts])
    index: Any = bm25s.BM25()
    if any(corpus):
        index.index(corpus, show_progress=False)

    def score(query: str) -> FloatArray:
        words = tokens([_printable(query)])[0]
        if not words or not any(corpus):
            return np.full(len(texts), np.nan)
        scores = np.asarray(index.get_scores(words), np.float64)
        return np.where(scores > 0, scores, np.nan)

    return score


def dense_scorer(texts: Sequence[str], embedder: EmbeddingModel) -> Scorer:
    """Embed texts, one vector each, and score by cosine."""
    vectors = embedder.encode(texts)

    def score(query: str) -> FloatArray:
        return np.asarray(vectors @ embedder.encode_query([query])[0], np.float64)

    return score


def z_scored_mean(*arms: FloatArray) -> FloatArray:
    """Standardise each arm over its passages, (s - mean) / deviation, and average the arms.

    A passage that an arm did not find has score 0 there before standardising; an arm in which all
    passages score the same adds nothing.
    """
    standardised = []
    for arm in arms:
        scores = np.nan_to_num(arm, nan=0.0)
        deviation = scores.std()
        standardised.append((scores - scores.mean()) / (deviation if deviation > 0 else 1.0))
    return np.asarray(np.mean(standardised, axis=0), np.float64)


def reciprocal_rank_fusion(*arms: FloatArray) -> FloatArray:
    """Sum over the arms of 1 / (60 + rank), ranks from 1; what an arm did not find gets nothing.

    Source: Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and
    individual Rank Learning Methods", SIGIR 2009.
    """
    fused = np.zeros(len(arms[0]))
    for arm in arms:
        found = np.flatnonzero(~np.isnan(arm))
        order = found[np.argsort(-arm[found], kind="stable")]
        fused[order] += 1.0 / (RRF_CONSTANT + np.arange(1, len(order) + 1))
    return np.where(fused > 0, fused, np.nan)


def _hybrid(
    name: str, embedder: EmbeddingModel, fuse: Callable[[FloatArray, FloatArray], FloatArray]
) -> ScoringSystem:
    lexical, dense = bm25_system(), dense_system(embedder)

    def index(texts: Sequence[str]) -> Scorer:
        first, second = lexical.index(texts), dense.index(texts)
        return lambda query: fuse(first(query), second(query))

    configuration = {**lexical.configuration, **dense.configuration, "fusion": name}
    return ScoringSystem(name, configuration, index)


def _printable(text: str) -> str:
    # The stemmer cannot take lone surrogates.
    return text.encode("utf-8", "replace").decode() if not text.isascii() else text


def _import_bm25s() -> Any:  # noqa: ANN401 (the library has no types)
    try:
        import bm25s
    except ImportError as error:
        raise MissingExtra("eval", "the BM25 baseline") from error
    return bm25s
