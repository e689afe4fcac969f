"""What takes part in the benchmark: no reranker, BM25, and any reranking model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ekphory.errors import InvalidInput
from ekphory.evaluation.reranking.bm25_reranker import Bm25Reranker
from ekphory.models.reranker import RerankingModel

NO_RERANKER = "none"
BM25 = "bm25"
BUNDLED = "bundled"

RerankerOfPool: TypeAlias = Callable[[Sequence[str]], RerankingModel]
"""Gives the reranker of a pool from the pool's texts; a model gives itself."""


@dataclass(frozen=True, slots=True)
class Contender:
    """One row of the benchmark.

    Attributes:
        name: What the row is called.
        reranker: Gives the reranker of a pool; None leaves the first stage's order and probability.
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
        contender = _contender(spec, load)
        if any(contender.name == other.name for other in contenders):
            raise InvalidInput(
                "rerankers", spec, f"there are two called {contender.name!r}", "Name each once."
            )
        contenders.append(contender)
    return tuple(contenders)


def _contender(spec: str, load: Callable[[str], RerankingModel]) -> Contender:
    if spec == BM25:
        return Contender(BM25, Bm25Reranker)
    if spec == BUNDLED:
        return model_contender(load(spec), name=BUNDLED)
    model = load(spec)
    return model_contender(model, name=Path(spec).name if Path(spec).is_dir() else None)
