"""The door that every system goes through to be measured: baseline, product or competitor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

from ekphory.evaluation.datasets import EvaluationQuery, Passage

Scored: TypeAlias = tuple[str, float]
"""A passage's id and its score."""

Setting: TypeAlias = str | int | float | bool | None


class Retriever(Protocol):
    """Searches one pool."""

    def __call__(self, query: EvaluationQuery, k: int, /) -> list[Scored]:
        """Give at most `k` passages, best first, each once."""
        ...


class RetrieverFactory(Protocol):
    """A system: makes the retriever of each pool, all of them before the first query."""

    @property
    def name(self) -> str:
        """What the system is called in a report."""
        ...

    @property
    def configuration(self) -> Mapping[str, Setting]:
        """Everything that decides its results, for the report."""
        ...

    def retriever(self, pool: str, passages: Sequence[Passage], /) -> Retriever:
        """Index a pool and give its retriever."""
        ...
