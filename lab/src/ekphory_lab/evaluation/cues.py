"""What the hints of a query's words are worth."""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ekphory import __version__
from ekphory.memory import Memory
from ekphory.models.embedder import EmbeddingModel
from ekphory.retrieval.pipeline import Pipeline
from ekphory.retrieval.stages.query import ClassifyQuery
from ekphory.types import MemoryType
from ekphory_lab.evaluation.ablation import REFERENCE, varied, without
from ekphory_lab.evaluation.metrics import Estimate, PairedTest, bootstrap_intervals, paired_test

# The scenes: a hundred queries with cue words, over one store of a hundred and twenty memories.

Cue = Literal["importance", "semantic", "procedural", "episodic"]
_TYPES: dict[str, MemoryType] = {"e": "episodic", "s": "semantic", "p": "procedural"}


@dataclass(frozen=True, slots=True)
class SceneMemory:
    """One memory.

    Attributes:
        id: Unique in all scenes.
        text: What was noted.
        type: What kind of memory it is.
        importance: In [0, 1].
    """

    id: str
    text: str
    type: MemoryType
    importance: float


@dataclass(frozen=True, slots=True)
class SceneQuery:
    """One query.

    Attributes:
        id: Unique in all scenes.
        cue: What its words ask for.
        text: The query.
        relevant: Ids of the memories that answer.
    """

    id: str
    cue: Cue
    text: str
    relevant: frozenset[str]


@dataclass(frozen=True, slots=True)
class Scene:
    """Memories about one subject, and queries for them.

    Attributes:
        name: The subject.
        memories: What is known of it.
        queries: What is asked of it.
    """

    name: str
    memories: tuple[SceneMemory, ...]
    queries: tuple[SceneQuery, ...]


@cache
def scenes() -> tuple[Scene, ...]:
    """Read the scenes that come with ekphory."""
    text = files("ekphory_lab.evaluation").joinpath("scenes.toml").read_text(encoding="utf-8")
    given = tomllib.loads(text)["scenes"]
    return tuple(_scene(f"s{number}", each) for number, each in enumerate(given, start=1))


def _scene(prefix: str, given: dict[str, Any]) -> Scene:
    return Scene(
        given["name"],
        tuple(
            SceneMemory(f"{prefix}-m{place}", text, _TYPES[letter], importance)
            for place, (letter, importance, text) in enumerate(given["memories"])
        ),
        tuple(
            SceneQuery(
                f"{prefix}-q{place}", cue, text, frozenset(f"{prefix}-m{row}" for row in relevant)
            )
            for place, (cue, text, relevant) in enumerate(given["queries"])
        ),
    )


# What the hints of a query's words are worth: the product's search with them and without.

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
    """Return the whole report as values that JSON can hold."""
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
