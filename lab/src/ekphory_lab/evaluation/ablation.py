"""What each stage is worth: the default pipeline with one thing changed at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ekphory.models.embedder import EmbeddingModel
from ekphory.retrieval.calibration import WORD_CURVES
from ekphory.retrieval.fusion import EVEN_LEXICAL_WEIGHT, LEXICAL_WEIGHT
from ekphory.retrieval.pipeline import NO_OPTIONAL_MODELS, OptionalModels, Pipeline, Stage
from ekphory.retrieval.presets import BALANCED, PRESETS
from ekphory.retrieval.stages import weigh
from ekphory.retrieval.stages.find import Fuse, SearchPools, SearchTime
from ekphory.retrieval.stages.query import ClassifyQuery, ReadTime
from ekphory.retrieval.stages.shape import Diversify
from ekphory.types import MEMORY_TYPES
from ekphory_lab.evaluation import runner
from ekphory_lab.evaluation.datasets import Dataset
from ekphory_lab.evaluation.loaders import (
    has_pools,
    load_conversation,
    load_locomo,
    load_retrieval,
)
from ekphory_lab.evaluation.systems import EkphorySystem, OtherPipeline
from ekphory_lab.evaluation.tables import ReportTable, format_figure, format_test

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


def varied(name: str, *changes: Change) -> Pipeline:
    """Change the default pipeline, one change after another."""
    stages: Sequence[Stage] = BALANCED.stages
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
            Fuse(
                method="lexical",
                lexical_weight=EVEN_LEXICAL_WEIGHT,
                calibration=WORD_CURVES,
            )
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

STAGE_VARIATIONS: Mapping[str, Pipeline] = {pipeline.name: pipeline for pipeline in _CHANGED}
PRESET_VARIATIONS: Mapping[str, Pipeline] = {
    f"preset {name}": pipeline for name, pipeline in PRESETS.items() if pipeline is not BALANCED
}


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
    if (path / "qrels").is_dir() or (path.is_dir() and not has_pools(path)):
        # One or two documents are judged for a query, so what counts is how early they come.
        return Benchmark(load_retrieval(path), "NDCG@10", "MAP")
    dataset = load_locomo(path) if path.is_file() else load_conversation(path)
    return Benchmark(dataset, "MAP", "R@20")


def ablate(
    dataset: Dataset,
    variations: Mapping[str, Pipeline],
    *,
    embedder: EmbeddingModel | None = None,
    models: OptionalModels = NO_OPTIONAL_MODELS,
    progress: runner.Progress = runner.silent,
) -> dict[str, runner.Report]:
    """Measure the default pipeline, which comes first, and every variation over one store.

    Args:
        dataset: What to measure on.
        variations: What to run beside the default pipeline, by name.
        embedder: Embedder of the store; None takes the bundled one.
        models: Reranker and language model, where there are any.
        progress: Is told how far things are.
    """
    with EkphorySystem(embedder=embedder, models=models) as system:
        return {
            name: runner.evaluate(dataset, OtherPipeline(system, pipeline), progress=progress)
            for name, pipeline in ({BALANCED.name: BALANCED} | dict(variations)).items()
        }


def ablation_json(reports: Mapping[str, runner.Report]) -> list[object]:
    """Return the reports for JSON, each but the first with its difference to the first."""
    default, *_ = reports.values()
    return [
        {"variation": name}
        | runner.to_json(report)
        | {
            "against_default": None
            if report is default
            else asdict(runner.compare(default, report))
        }
        for name, report in reports.items()
    ]


def ablation_table(benchmark: Benchmark, reports: Mapping[str, runner.Report]) -> ReportTable:
    """Show one dataset's variations, a line each, with the difference to the first."""
    main, second, dataset = benchmark.main, benchmark.second, benchmark.dataset
    default, *_ = reports.values()
    rows = []
    for name, report in reports.items():
        test = None if report is default else runner.compare(default, report).tests[main]
        rows.append(
            (
                name,
                format_figure(report.mean(main)),
                *format_test(test),
                format_figure(report.mean(second)),
                f"{report.latency.p50:.1f}",
                f"{report.latency.p95:.1f}",
            )
        )
    return ReportTable(
        f"{dataset.name}: {len(dataset.queries)} queries, {dataset.size:,} passages",
        ("variation", main, "difference", "95 %", "p", second, "p50 ms", "p95 ms"),
        tuple(rows),
    )
