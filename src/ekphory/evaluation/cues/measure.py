"""What the hints of a query's words are worth: the product's search with them and without."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ekphory import __version__
from ekphory.evaluation.cues.scenes import Scene, SceneQuery
from ekphory.evaluation.stats import Estimate, PairedTest, bootstrap_intervals, paired_test
from ekphory.evaluation.variations import REFERENCE, varied, without
from ekphory.memory import Memory
from ekphory.models.embedder import EmbeddingModel
from ekphory.retrieval.pipeline import Pipeline
from ekphory.retrieval.stages.classify_query import ClassifyQuery

DEPTH = 50
ALL = "all"
_NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class CueScores:
    """MRR over the queries that ask for one thing.

    Attributes:
        cue: What they ask for; `all` for every query.
        queries: How many there are.
        with_hints, without_hints: MRR and its 95 % interval.
        difference: With minus without.
    """

    cue: str
    queries: int
    with_hints: Estimate
    without_hints: Estimate
    difference: PairedTest


@dataclass(frozen=True, slots=True, kw_only=True)
class CueReport:
    """Everything that was found.

    Attributes:
        embedder: The embedder's identity.
        memories: How many memories the store holds.
        scores: By cue, and over all queries.
        ranks: By query id, the best rank of an answer with and without hints; None where it is
            not among the first fifty.
        version: Version of ekphory that measured.
    """

    embedder: str
    memories: int
    scores: tuple[CueScores, ...]
    ranks: Mapping[str, tuple[int | None, int | None]]
    version: str = __version__


def measure_cues(
    scenes: Sequence[Scene],
    *,
    embedder: EmbeddingModel,
    progress: Callable[[str, int, int], None],
) -> CueReport:
    """Search one store with all memories, once with the hints and once without.

    All memories are as old as each other, and carry their labelled type and importance.

    Args:
        scenes: Memories and queries.
        embedder: Embedder of the store.
        progress: Is told what is done, how much of it, and of how much.
    """
    queries = [query for scene in scenes for query in scene.queries]
    unhinted = varied("without hints", without(ClassifyQuery)).pipeline
    ranks: dict[str, tuple[int | None, int | None]] = {}
    with _store(scenes, embedder) as memory:
        for done, query in enumerate(queries, start=1):
            ranks[query.id] = (
                _rank(memory, query, REFERENCE.pipeline),
                _rank(memory, query, unhinted),
            )
            progress("search", done, len(queries))
    cues = dict.fromkeys(query.cue for query in queries)
    groups = {ALL: queries} | {cue: [each for each in queries if each.cue == cue] for cue in cues}
    return CueReport(
        embedder=str(embedder.identity),
        memories=sum(len(scene.memories) for scene in scenes),
        scores=tuple(_scores(name, group, ranks) for name, group in groups.items()),
        ranks=ranks,
    )


def report_json(report: CueReport) -> dict[str, object]:
    """Give the whole report as values that JSON can hold."""
    return asdict(report)


@contextmanager
def _store(scenes: Sequence[Scene], embedder: EmbeddingModel) -> Iterator[Memory]:
    rows = [
        {
            "id": each.id,
            "text": each.text,
            "type": each.type,
            "importance": each.importance,
            "at": _NOW,
        }
        for scene in scenes
        for each in scene.memories
    ]
    with (
        tempfile.TemporaryDirectory(prefix="ekphory-cues-") as directory,
        Memory(Path(directory) / "store", embedder=embedder) as memory,
    ):
        memory.add_many(rows)
        yield memory


def _rank(memory: Memory, query: SceneQuery, pipeline: Pipeline) -> int | None:
    hits = memory.search(query.text, k=DEPTH, now=_NOW, preset=pipeline).hits
    found = (rank for rank, hit in enumerate(hits, start=1) if hit.id in query.relevant)
    return next(found, None)


def _scores(
    name: str,
    queries: Sequence[SceneQuery],
    ranks: Mapping[str, tuple[int | None, int | None]],
) -> CueScores:
    hinted, plain = (
        np.array([_reciprocal(ranks[query.id][side]) for query in queries]) for side in (0, 1)
    )
    return CueScores(
        name, len(queries), _estimate(hinted), _estimate(plain), paired_test(plain, hinted)
    )


def _estimate(values: NDArray[np.float64]) -> Estimate:
    return bootstrap_intervals(values[:, np.newaxis])[0]


def _reciprocal(rank: int | None) -> float:
    return 0.0 if rank is None else 1 / rank
