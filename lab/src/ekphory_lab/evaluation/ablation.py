"""What each stage is worth: the default pipeline with one thing changed at a time.

One stage, which reads hints out of a query's words, is measured on scenes written for it.
"""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ekphory import __version__
from ekphory.errors import InvalidInput
from ekphory.memory import Memory
from ekphory.models.embedder import EmbeddingModel
from ekphory.retrieval.calibration import WORD_CURVES
from ekphory.retrieval.fusion import EVEN_LEXICAL_WEIGHT, LEXICAL_WEIGHT
from ekphory.retrieval.pipeline import Pipeline, Stage
from ekphory.retrieval.presets import BALANCED, PRESETS
from ekphory.retrieval.query import ClassifyQuery, ReadTime
from ekphory.retrieval.stages import weigh
from ekphory.retrieval.stages.find import Fuse, SearchPools, SearchTime
from ekphory.retrieval.stages.relate import FollowLinks
from ekphory.retrieval.stages.rerank import Rerank, RerankAgain
from ekphory.retrieval.stages.shape import Diversify
from ekphory.types import MEMORY_TYPES, MemoryType
from ekphory_lab.evaluation import loaders, metrics, runner
from ekphory_lab.evaluation.datasets import Dataset
from ekphory_lab.evaluation.systems import EkphorySystem, OtherSearch
from ekphory_lab.evaluation.tables import ReportTable, records_table

# The default pipeline with one thing changed, as data.

Change = Callable[[Sequence[Stage]], Sequence[Stage]]


def without(kind: type[Stage]) -> Change:
    """Leave a stage out."""
    return lambda stages: [stage for stage in stages if not isinstance(stage, kind)]


def instead(stage: Stage) -> Change:
    """Put a stage in the place of that of the same kind, or where its number belongs."""

    def changed(stages: Sequence[Stage]) -> list[Stage]:
        others = [each for each in stages if type(each) is not type(stage)]
        place = sum(each.number <= stage.number for each in others)
        return [*others[:place], stage, *others[place:]]

    return changed


def varied(name: str, *changes: Change, base: Pipeline = BALANCED) -> Pipeline:
    """Change a pipeline, one change after another."""
    stages: Sequence[Stage] = base.stages
    for change in changes:
        stages = change(stages)
    return Pipeline(name, stages)


_CHANGED = (
    varied("without weights", without(weigh.Weigh)),
    varied("without decay", without(weigh.Decay)),
    varied(
        "without time",
        without(ReadTime),
        without(SearchTime),
        without(weigh.FavourTime),
        without(weigh.ListTime),
    ),
    varied("dense arm alone", instead(SearchPools(arms="dense")), instead(Fuse(method="dense"))),
    varied(
        "lexical arm alone",
        instead(SearchPools(arms="lexical")),
        instead(
            Fuse(method="lexical", lexical_weight=EVEN_LEXICAL_WEIGHT, calibration=WORD_CURVES)
        ),
    ),
    varied("half the lexical weight", instead(Fuse(lexical_weight=LEXICAL_WEIGHT.times(0.5)))),
    varied("twice the lexical weight", instead(Fuse(lexical_weight=LEXICAL_WEIGHT.times(2)))),
    varied("reciprocal ranks", instead(Fuse(method="reciprocal_rank"))),
    varied("adaptive reciprocal ranks", instead(Fuse(method="adaptive_reciprocal_rank"))),
    varied("without query classes", without(ClassifyQuery)),
    varied("with source dedup", instead(weigh.SourceDedup())),
    varied("with normalisation", instead(weigh.Normalise())),
    varied("with MMR, .9", instead(Diversify(trade_off=0.9))),
    varied("with MMR, adaptive", instead(Diversify(trade_off="adaptive"))),
    varied("decay by a hundredth", instead(weigh.Decay(floor=0.99))),
    varied("decay by a tenth", instead(weigh.Decay(floor=0.9))),
    varied("decay as published", instead(weigh.Decay(floor=0.8, rate=0.03, fading=MEMORY_TYPES))),
    varied("search depth 100", instead(SearchPools(depth=100))),
    varied("search depth 1,000", instead(SearchPools(depth=1000))),
)

_PRESETS = {
    f"preset {name}": pipeline for name, pipeline in PRESETS.items() if pipeline is not BALANCED
}
VARIATIONS: Mapping[str, Pipeline] = {pipeline.name: pipeline for pipeline in _CHANGED} | _PRESETS


_FIRST_STAGE, _READING = "first-stage", "reading"


def find_variations(base: Pipeline, stages: str) -> dict[str, Pipeline]:
    """Return the variations of a preset, by name.

    Args:
        base: The preset.
        stages: Which are changed: `first-stage`, or `reading`, with what comes after it.

    Raises:
        InvalidInput: No such stages, or the first stage of another preset than the default.
    """
    if stages not in (_FIRST_STAGE, _READING):
        problem = "must be stages that are changed"
        raise InvalidInput("stages", stages, problem, f"Give {_FIRST_STAGE} or {_READING}")
    if stages == _FIRST_STAGE:
        if base is not BALANCED:
            remedy = "Name balanced, or change --stages to reading"
            problem = "its first stage has no variations"
            raise InvalidInput("preset", base.name, problem, remedy)
        return dict(VARIATIONS)
    changes = {
        "not read": (without(Rerank),),
        "not read again": (without(RerankAgain),),
        "half as many read": (_read_share(0.5),),
        "twice as many read": (_read_share(2.0),),
        "without following links": (without(FollowLinks),),
    }
    found = {name: varied(name, *each, base=base) for name, each in changes.items()}
    return {name: each for name, each in found.items() if each.stages != base.stages}


def _read_share(share: float) -> Change:
    """Let each reading take this share of what it takes, without a limit of time."""

    def changed(stages: Sequence[Stage]) -> list[Stage]:
        return [
            replace(
                stage,
                candidates=round(stage.candidates * share),
                quick_candidates=round(stage.quick_candidates * share),
                seconds=None,
            )
            if isinstance(stage, Rerank)
            else stage
            for stage in stages
        ]

    return changed


# Measuring them.


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A dataset and what is looked at first.

    Attributes:
        dataset: What is measured on.
        main, second: The measure that differences are given in, and another one.
    """

    dataset: Dataset
    main: str
    second: str


def load_benchmark(path: Path) -> Benchmark:
    """Load a dataset by its form: LoCoMo's own file, a retrieval or a conversation folder.

    Raises:
        DatasetError: It has none of these forms, or is damaged.
    """
    if (path / "qrels").is_dir() or (path.is_dir() and not loaders.has_pools(path)):
        # One or two documents are judged for a query, so what counts is how early they come.
        return Benchmark(loaders.load_retrieval(path), "NDCG@10", "MAP")
    load = loaders.load_locomo if path.is_file() else loaders.load_conversation
    return Benchmark(load(path), "MAP", "R@20")


def ablate(
    dataset: Dataset,
    variations: Mapping[str, Pipeline],
    means: runner.Means,
    *,
    base: Pipeline = BALANCED,
) -> dict[str, runner.Report]:
    """Measure a pipeline, which comes first, and every variation over one store.

    Args:
        dataset: What to measure on.
        variations: What to run beside the pipeline, by name.
        means: With what.
        base: The pipeline.
    """
    with EkphorySystem(embedder=means.embedder, models=means.models) as system:
        return {
            name: runner.evaluate(dataset, OtherSearch(system, pipeline), progress=means.progress)
            for name, pipeline in ({base.name: base} | dict(variations)).items()
        }


def ablation_json(reports: Mapping[str, runner.Report]) -> list[object]:
    """Return the reports for JSON, each but the first with its difference to the first."""
    default, *_ = reports.values()
    return [
        {
            "variation": name,
            **runner.to_json(report),
            "against_default": None if report is default else runner.compare(default, report),
        }
        for name, report in reports.items()
    ]


def ablation_table(benchmark: Benchmark, reports: Mapping[str, runner.Report]) -> ReportTable:
    """Show one dataset's variations, a line each, with the difference to the first."""
    main, second, dataset = benchmark.main, benchmark.second, benchmark.dataset
    default, *_ = reports.values()
    return records_table(
        f"{dataset.name}: {len(dataset.queries)} queries, {dataset.size:,} passages",
        (
            {
                "variation": name,
                main: report.mean(main),
                second: report.mean(second),
                "p50 / p95 ms": report.latency,
                "difference": ""
                if report is default
                else runner.compare(default, report).tests[main],
            }
            for name, report in reports.items()
        ),
    )


# What the hints of a query's words are worth: a hundred queries with cue words, over one store of
# a hundred and twenty memories.

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


# Measuring the hints.

_HINT_DEPTH = 50
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
    with_hints: metrics.Estimate
    without_hints: metrics.Estimate
    difference: metrics.PairedTest


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
    scenes: Sequence[Scene], *, embedder: EmbeddingModel, progress: runner.Progress
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
            hinted = _find_rank(memory, query, BALANCED)
            ranks[query.id] = hinted, _find_rank(memory, query, _WITHOUT_HINTS)
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
    title = f"MRR over {report.memories} memories, {report.embedder}"
    return records_table(title, report.scores)


def _find_rank(memory: Memory, query: SceneQuery, pipeline: Pipeline) -> int | None:
    hits = memory.search(query.text, k=_HINT_DEPTH, now=_NOW, preset=pipeline).hits
    found = (rank for rank, hit in enumerate(hits, start=1) if hit.id in query.relevant)
    return next(found, None)


def _score(
    name: str, queries: Sequence[SceneQuery], ranks: Mapping[str, tuple[int | None, int | None]]
) -> CueScores:
    found = np.array([[1 / rank if rank else 0.0 for rank in ranks[each.id]] for each in queries])
    hinted, plain = metrics.bootstrap_intervals(found)
    return CueScores(
        name, len(queries), hinted, plain, metrics.paired_test(found[:, 1], found[:, 0])
    )
