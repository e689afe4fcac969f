"""ekphory itself behind the evaluation's door: one store, one project scope per pool."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType

from ekphory.errors import DatasetError
from ekphory.evaluation.calibration import PROBABILITIES
from ekphory.evaluation.datasets import EvaluationQuery, Passage
from ekphory.evaluation.retriever import Retriever, Scored, Setting
from ekphory.memory import Memory
from ekphory.models.configured import NO_RERANKER
from ekphory.models.embedder import EmbeddingModel
from ekphory.results import SearchResult
from ekphory.retrieval.pipeline import Pipeline
from ekphory.retrieval.resources import NO_OPTIONAL_MODELS, OptionalModels
from ekphory.types import TimeUse

Observer = Callable[[EvaluationQuery, SearchResult], None]
"""Sees every search's whole result, with its trace."""

_UNNAMED_POOL = "corpus"


class EkphorySystem:
    """A retriever factory over one new store in a temporary directory.

    Use it in a `with` block: leaving it closes and deletes the store.
    """

    def __init__(
        self,
        *,
        preset: str | None = None,
        time: TimeUse = "boost",
        embedder: EmbeddingModel | None = None,
        models: OptionalModels = NO_OPTIONAL_MODELS,
        observer: Observer | None = None,
    ) -> None:
        """Say what is measured.

        Args:
            preset: Preset of every search; None takes the product's default.
            time: What a time in a query's words does.
            embedder: Embedder of the store; None takes the bundled one.
            models: Reranker and language model, where there are any; not even the bundled
                reranker is used unless it is given.
            observer: Is given every search's result.
        """
        self.preset = preset
        self.time = time
        self._embedder = embedder
        self._models = models
        self._observer = observer
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
        """Preset and models."""
        embedder = None if self._embedder is None else str(self._embedder.identity)
        reranker, chat = self._models.reranker, self._models.chat
        return {
            "preset": self.preset or "default",
            "time": self.time,
            "embedder": embedder or "bundled",
            "reranker": None if reranker is None else reranker.name,
            "chat": None if chat is None else chat.name,
            "scores": PROBABILITIES,
        }

    def __enter__(self) -> EkphorySystem:
        directory = tempfile.TemporaryDirectory(prefix="ekphory-evaluation-")
        self._directory = Path(self._resources.enter_context(directory))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._resources.close()

    def retriever(self, pool: str, passages: Sequence[Passage], /) -> Retriever:
        """Write a pool into a project scope of its own and give its retriever.

        A query that does not say when it is asked is asked at the pool's newest moment, so that
        figures do not change with the calendar.

        Raises:
            DatasetError: The store refused a passage.
        """
        return self.searched(pool, passages, self.preset)

    def searched(
        self, pool: str, passages: Sequence[Passage], preset: str | Pipeline | None
    ) -> Retriever:
        """Do as `retriever` with another preset; a pool is written once, whatever searches it."""
        memory = self.memory(pool, passages)
        newest = newest_moment(passages)

        def search(query: EvaluationQuery, k: int, /) -> list[Scored]:
            result = memory.search(
                query.text, k=k, now=query.at or newest, preset=preset, time=self.time
            )
            if self._observer is not None:
                self._observer(query, result)
            return [(hit.id, hit.score) for hit in result.hits]

        return search

    def memory(self, pool: str, passages: Sequence[Passage]) -> Memory:
        """Give the scope that a pool is written into, which happens once."""
        memory = self._indexed.get(pool)
        if memory is None:
            memory = self._indexed[pool] = self._written(pool, passages)
        return memory

    def _written(self, pool: str, passages: Sequence[Passage]) -> Memory:
        if self._directory is None:
            raise RuntimeError("EkphorySystem is used outside of its `with` block")
        memory = self._resources.enter_context(
            Memory(
                self._directory / "store",
                project=pool or _UNNAMED_POOL,
                embedder=self._embedder,
                reranker=self._models.reranker or NO_RERANKER,
                chat=self._models.chat,
            )
        )
        report = memory.add_many(_records(passages))
        if report.failed:
            first = report.failed[0]
            raise DatasetError(
                f"pool {pool!r}: {len(report.failed)} passages were refused; the first is "
                f"{first.id!r}: {first.field}: {first.message}"
            )
        return memory


def newest_moment(passages: Sequence[Passage]) -> datetime | None:
    """Give the newest moment of a pool; None where nothing has one."""
    return max((passage.at for passage in passages if passage.at), default=None)


@dataclass(frozen=True, slots=True)
class OtherPipeline:
    """The store of a system searched with a pipeline; what was indexed is not indexed again."""

    system: EkphorySystem
    pipeline: Pipeline

    @property
    def name(self) -> str:
        """The pipeline's name."""
        return self.pipeline.name

    @property
    def configuration(self) -> Mapping[str, Setting]:
        """Pipeline and models; the scores of a pipeline need be no probabilities."""
        given = {**self.system.configuration, "preset": self.pipeline.name}
        return {name: value for name, value in given.items() if name != "scores"}

    def retriever(self, pool: str, passages: Sequence[Passage], /) -> Retriever:
        """Write the pool, if that was not done yet, and give its retriever."""
        return self.system.searched(pool, passages, self.pipeline)


def _records(passages: Sequence[Passage]) -> Iterator[dict[str, object]]:
    for passage in passages:
        # A text without a character cannot be a memory; such a passage is never found.
        if passage.text.strip():
            yield passage_fields(passage)


def passage_fields(passage: Passage) -> dict[str, object]:
    """Give what `Memory.add_many` gets of a passage."""
    fields: dict[str, object | None] = {
        "id": passage.id,
        "text": passage.text,
        "at": passage.at,
        "producer": passage.speaker or None,
        "session": passage.session,
        "sequence": passage.sequence,
    }
    return {name: value for name, value in fields.items() if value is not None}
