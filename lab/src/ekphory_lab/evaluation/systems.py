"""What is measured: the product, its agent, and the baselines."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any, TypeAlias

import bm25s
import numpy as np
import Stemmer

from ekphory.agent.provider import AgentOptions, AgentSettings
from ekphory.agent_trace import RetrievalTrace
from ekphory.errors import DatasetError
from ekphory.memory import Memory
from ekphory.models.embedder import EmbeddingModel
from ekphory.models.loading import NO_RERANKER
from ekphory.retrieval.pipeline import NO_OPTIONAL_MODELS, OptionalModels, Pipeline
from ekphory.retrieval.stages.rerank import GateReranker
from ekphory.search import SearchResult
from ekphory.types import TimeUse
from ekphory_lab.evaluation.datasets import EvaluationQuery, Passage
from ekphory_lab.evaluation.metrics import PROBABILITIES, FloatArray
from ekphory_lab.evaluation.runner import Retriever, Scored, Setting

# What a system has to beat: BM25, dense vectors, and two ways to put them together.
#
# A baseline scores every passage of its pool. In an array of scores NaN marks a passage that the
# baseline did not find.

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
        """Index a pool and return its retriever."""
        ids = [passage.id for passage in passages]
        scorer = self.index([passage.indexed_text for passage in passages])

        def search(query: EvaluationQuery, k: int, /) -> list[Scored]:
            scores = scorer(query.text)
            # NaN sorts last; equal scores keep the order of the pool.
            order = np.argsort(-scores, kind="stable")[:k]
            return [(ids[row], float(scores[row])) for row in order if not np.isnan(scores[row])]

        return search


def bm25_system() -> ScoringSystem:
    """BM25 by bm25s with its defaults, its English stop words, and English stemming."""
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

    def index(texts: Sequence[str]) -> Scorer:
        vectors = embedder.encode(texts)
        return lambda query: np.asarray(vectors @ embedder.encode_query([query])[0], np.float64)

    return ScoringSystem("dense", {"embedder": str(embedder.identity)}, index)


def bm25_scorer(texts: Sequence[str]) -> Scorer:
    """Index texts for BM25; a text that shares no term with the query is not found."""
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


FUSIONS: Mapping[str, Callable[..., FloatArray]] = {
    "mean": z_scored_mean,
    "rrf": reciprocal_rank_fusion,
}
"""How BM25 and dense become one, by the name of the system."""


def fused_system(name: str, embedder: EmbeddingModel) -> ScoringSystem:
    """BM25 and dense, put together by one of `FUSIONS`."""
    lexical, dense, fuse = bm25_system(), dense_system(embedder), FUSIONS[name]

    def index(texts: Sequence[str]) -> Scorer:
        first, second = lexical.index(texts), dense.index(texts)
        return lambda query: fuse(first(query), second(query))

    configuration = {**lexical.configuration, **dense.configuration, "fusion": name}
    return ScoringSystem(name, configuration, index)


def _printable(text: str) -> str:
    # The stemmer cannot take lone surrogates.
    return text.encode("utf-8", "replace").decode() if not text.isascii() else text


# ekphory itself behind the evaluation's door: one store, one project scope per pool.

_UNNAMED_POOL = "corpus"


ResultSearch: TypeAlias = Callable[[EvaluationQuery, int], SearchResult]
"""Searches one pool, and gives the whole result."""

_SKIPPED = ("hard-gate-high", "hard-gate-low", "auto-gate-skip")


class SearchCounts:
    """Counts what the gate and the agent did in the searches of one system."""

    def __init__(self) -> None:
        self._skipped: list[bool] = []
        self._traces: list[RetrievalTrace] = []

    def watch(self, search: ResultSearch) -> Retriever:
        """Return the retriever that searches, and count what it does."""

        def retrieve(query: EvaluationQuery, k: int, /) -> list[Scored]:
            result = search(query, k)
            self._note(result)
            return [(hit.id, hit.score) for hit in result.hits]

        return retrieve

    def _note(self, result: SearchResult) -> None:
        for stage in result.trace.stages:
            if stage.name == GateReranker.name and stage.status == "ran":
                self._skipped.append(str(stage.detail.get("decision", "")).startswith(_SKIPPED))
        if result.retrieval_trace is not None:
            self._traces.append(result.retrieval_trace)

    @property
    def settings(self) -> dict[str, Setting]:
        """For a report: how often the reranker rested, and what an agent's sessions did."""
        found: dict[str, Setting] = {}
        if self._skipped:
            found["gate_skipped"] = fmean(self._skipped)
        if self._traces:
            calls = [trace.memory_search_called for trace in self._traces]
            fallbacks = [trace.fallback_trigger_reason is not None for trace in self._traces]
            found["searches_a_question"] = round(fmean(calls), 3)
            found["questions_of_one_search"] = sum(count == 1 for count in calls)
            found["fallbacks"] = sum(fallbacks)
        return found


@dataclass(kw_only=True)
class EkphorySystem:
    """A retriever factory over one new store in a temporary directory.

    Use it in a `with` block: leaving it closes and deletes the store.

    Attributes:
        preset: Preset of every search; None takes the product's default.
        time: What a time in a query's words does.
        embedder: Embedder of the store; None takes the bundled one.
        models: Reranker and language model, where there are any; not even the bundled reranker is
            used unless it is given.
    """

    preset: str | None = None
    time: TimeUse = "boost"
    embedder: EmbeddingModel | None = None
    models: OptionalModels = NO_OPTIONAL_MODELS

    def __post_init__(self) -> None:
        self._counts = SearchCounts()
        self._indexed: dict[str, Memory] = {}
        self._resources = ExitStack()
        self._directory: Path | None = None

    @property
    def name(self) -> str:
        """`ekphory`, with the preset and the use of time where they are named."""
        named = "ekphory" if self.preset is None else f"ekphory:{self.preset}"
        return named if self.time == "boost" else f"{named}:{self.time}"

    @property
    def configuration(self) -> Mapping[str, Setting]:
        """Preset and models, and what the gate did."""
        return {**self.settings, **self._counts.settings}

    @property
    def settings(self) -> dict[str, Setting]:
        """Preset and models."""
        reranker, chat = self.models.reranker, self.models.chat
        return {
            "preset": self.preset or "default",
            "time": self.time,
            "embedder": "bundled" if self.embedder is None else str(self.embedder.identity),
            "reranker": None if reranker is None else reranker.name,
            "chat": None if chat is None else chat.name,
            "scores": PROBABILITIES,
        }

    def __enter__(self) -> EkphorySystem:
        directory = tempfile.TemporaryDirectory(prefix="ekphory-evaluation-")
        self._directory = Path(self._resources.enter_context(directory))
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    def retriever(self, pool: str, passages: Sequence[Passage], /) -> Retriever:
        """Write a pool into a project scope of its own and return its retriever.

        A query that does not say when it is asked is asked at the pool's newest moment, so that
        figures do not change with the calendar.

        Raises:
            DatasetError: The store refused a passage.
        """
        return self._counts.watch(self.searcher(pool, passages))

    def searcher(self, pool: str, passages: Sequence[Passage]) -> ResultSearch:
        """Do as `retriever`, and give whole results."""
        return self.search(pool, passages, self.preset)

    def search(
        self,
        pool: str,
        passages: Sequence[Passage],
        preset: str | Pipeline | None,
        *,
        agent: AgentOptions | None = None,
    ) -> ResultSearch:
        """Do as `searcher` with any preset; a pool is written once, whatever searches it."""
        memory = self._memory(pool, passages)
        newest = newest_moment(passages)
        return lambda query, k: memory.search(
            query.text,
            k=k,
            now=query.at or newest,
            preset=preset,
            time=self.time,
            agent_mode=agent is not None,
            agent_options=agent,
        )

    def _memory(self, pool: str, passages: Sequence[Passage]) -> Memory:
        if self._directory is None:
            raise RuntimeError("EkphorySystem is used outside of its `with` block")
        if pool in self._indexed:
            return self._indexed[pool]
        memory = self._indexed[pool] = self._resources.enter_context(
            Memory(
                self._directory / "store",
                project=pool or _UNNAMED_POOL,
                embedder=self.embedder,
                reranker=self.models.reranker or NO_RERANKER,
                chat=self.models.chat,
            )
        )
        # A text without a character cannot be a memory; such a passage is never found.
        report = memory.add_many(passage_fields(each) for each in passages if each.text.strip())
        if report.failed:
            first = report.failed[0]
            raise DatasetError(
                f"pool {pool!r}: {len(report.failed)} passages were refused; the first is "
                f"{first.id!r}: {first.field}: {first.message}"
            )
        # What was written is compared with what was there, as it is some time after every write.
        memory.settle()
        return memory


def newest_moment(passages: Sequence[Passage]) -> datetime | None:
    """Return the newest moment of a pool; None where nothing has one."""
    return max((passage.at for passage in passages if passage.at), default=None)


@dataclass(frozen=True, slots=True)
class OtherSearch:
    """The store of a system searched in another way; what was indexed is not indexed again.

    Attributes:
        system: Whose store is searched.
        pipeline: What searches; None for the system's preset.
        agent: How the retrieval agent asks every question; None searches plainly.
    """

    system: EkphorySystem
    pipeline: Pipeline | None = None
    agent: AgentSettings | None = None
    _counts: SearchCounts = field(default_factory=SearchCounts)

    @property
    def name(self) -> str:
        """`agent:` and the provider, or the pipeline's name."""
        if self.agent is not None:
            return f"agent:{self.agent.provider}"
        return self.system.name if self.pipeline is None else self.pipeline.name

    @property
    def configuration(self) -> Mapping[str, Setting]:
        """That of the store, with what differs; the scores of a pipeline need be no probabilities.

        Then what the gate and the agent's sessions did so far.
        """
        settings = self.system.settings
        if self.pipeline is not None:
            del settings["scores"]
            settings["preset"] = self.pipeline.name
        if self.agent is not None:
            settings["agent"] = self.agent.provider
        return {**settings, **self._counts.settings}

    def retriever(self, pool: str, passages: Sequence[Passage], /) -> Retriever:
        """Write the pool, if that was not done yet, and return its retriever."""
        return self._counts.watch(self.searcher(pool, passages))

    def searcher(self, pool: str, passages: Sequence[Passage]) -> ResultSearch:
        """Do as `retriever`, and give whole results."""
        agent = None if self.agent is None else AgentOptions(settings=self.agent)
        preset = self.pipeline or self.system.preset
        return self.system.search(pool, passages, preset, agent=agent)


def passage_fields(passage: Passage) -> dict[str, object]:
    """Return what `Memory.add_many` gets of a passage."""
    fields: dict[str, object | None] = {
        "id": passage.id,
        "text": passage.text,
        "at": passage.at,
        "producer": passage.speaker or None,
        "session": passage.session,
        "sequence": passage.sequence,
    }
    return {name: value for name, value in fields.items() if value is not None}
