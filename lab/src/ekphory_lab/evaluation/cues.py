"""What the hints of a query's words are worth: the search with them and without."""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ekphory import __version__
from ekphory.memory import Memory
from ekphory.models.embedder import EmbeddingModel
from ekphory.retrieval.pipeline import Pipeline
from ekphory.retrieval.presets import BALANCED
from ekphory.retrieval.stages.query import ClassifyQuery
from ekphory.types import MemoryType
from ekphory_lab.evaluation.ablation import varied, without
from ekphory_lab.evaluation.metrics import Estimate, PairedTest, bootstrap_intervals, paired_test
from ekphory_lab.evaluation.runner import Progress
from ekphory_lab.evaluation.tables import ReportTable, format_figure, format_test

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


def read_scenes() -> tuple[Scene, ...]:
    """Read the scenes that come with ekphory-lab."""
    text = files("ekphory_lab.evaluation").joinpath("scenes.toml").read_text(encoding="utf-8")
    rows = tomllib.loads(text)["scenes"]
    return tuple(_read_scene(f"s{number}", row) for number, row in enumerate(rows, start=1))


def _read_scene(prefix: str, row: dict[str, Any]) -> Scene:
    memories = (
        SceneMemory(f"{prefix}-m{place}", text, _TYPES[letter], importance)
        for place, (letter, importance, text) in enumerate(row["memories"])
    )
    queries = (
        SceneQuery(f"{prefix}-q{place}", cue, text, frozenset(f"{prefix}-m{n}" for n in relevant))
        for place, (cue, text, relevant) in enumerate(row["queries"])
    )
    return Scene(row["name"], tuple(memories), tuple(queries))


# Measuring.

DEPTH = 50
ALL = "all"
_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_WITHOUT_HINTS = varied("without hints", without(ClassifyQuery))


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
    scenes: Sequence[Scene], *, embedder: EmbeddingModel, progress: Progress
) -> CueReport:
    """Search one store with all memories, once with the hints and once without.

    All memories are as old as each other, and carry their labelled type and importance.

    Args:
        scenes: Memories and queries.
        embedder: Embedder of the store.
        progress: Is told what is done, how much of it, and of how much.
    """
    memories = [each for scene in scenes for each in scene.memories]
    queries = [query for scene in scenes for query in scene.queries]
    ranks: dict[str, tuple[int | None, int | None]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="ekphory-cues-") as directory,
        Memory(Path(directory) / "store", embedder=embedder) as memory,
    ):
        memory.add_many(asdict(each) | {"at": _NOW} for each in memories)
        for done, query in enumerate(queries, start=1):
            ranks[query.id] = (
                _find_rank(memory, query, BALANCED),
                _find_rank(memory, query, _WITHOUT_HINTS),
            )
            progress("search", done, len(queries))
    cues = dict.fromkeys(query.cue for query in queries)
    groups = {ALL: queries} | {cue: [each for each in queries if each.cue == cue] for cue in cues}
    return CueReport(
        embedder=str(embedder.identity),
        memories=len(memories),
        scores=tuple(_score(name, group, ranks) for name, group in groups.items()),
        ranks=ranks,
    )


def cue_table(report: CueReport) -> ReportTable:
    """Show MRR by what is asked for, with hints and without."""
    rows = [
        (
            each.cue,
            str(each.queries),
            format_figure(each.with_hints.mean),
            format_figure(each.without_hints.mean),
            *format_test(each.difference),
        )
        for each in report.scores
    ]
    header = ("asks for", "queries", "with hints", "without", "difference", "95 %", "p")
    title = f"MRR over {report.memories} memories, {report.embedder}"
    return ReportTable(title, header, tuple(rows))


def _find_rank(memory: Memory, query: SceneQuery, pipeline: Pipeline) -> int | None:
    hits = memory.search(query.text, k=DEPTH, now=_NOW, preset=pipeline).hits
    found = (rank for rank, hit in enumerate(hits, start=1) if hit.id in query.relevant)
    return next(found, None)


def _score(
    name: str,
    queries: Sequence[SceneQuery],
    ranks: Mapping[str, tuple[int | None, int | None]],
) -> CueScores:
    found = np.array([[1 / rank if rank else 0.0 for rank in ranks[each.id]] for each in queries])
    hinted, plain = bootstrap_intervals(found)
    return CueScores(name, len(queries), hinted, plain, paired_test(found[:, 1], found[:, 0]))
