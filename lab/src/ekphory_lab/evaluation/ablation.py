"""What each stage is worth: the default pipeline with one thing changed at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from rich.table import Table

from ekphory.models.embedder import EmbeddingModel
from ekphory.retrieval.calibration import WORD_CURVES
from ekphory.retrieval.fusion import EVEN_LEXICAL_WEIGHT, LEXICAL_WEIGHT
from ekphory.retrieval.pipeline import NO_OPTIONAL_MODELS, OptionalModels, Pipeline, Stage
from ekphory.retrieval.presets import BALANCED, PRESETS
from ekphory.retrieval.stages.find import Fuse, SearchPools, SearchTime
from ekphory.retrieval.stages.query import ClassifyQuery, ReadTime
from ekphory.retrieval.stages.shape import Diversify
from ekphory.retrieval.stages.weigh import (
    Decay,
    FavourTime,
    ListTime,
    Normalise,
    SourceDedup,
    Weigh,
)
from ekphory.types import MEMORY_TYPES
from ekphory_lab.evaluation.datasets import Dataset
from ekphory_lab.evaluation.loaders import load_beir, load_conversation, load_locomo
from ekphory_lab.evaluation.metrics import CONVERSATION_MEASURES
from ekphory_lab.evaluation.runner import (
    Comparison,
    Progress,
    Report,
    compare,
    evaluate,
    score_table,
    silent,
)
from ekphory_lab.evaluation.systems import EkphorySystem, OtherPipeline

# The default pipeline with one thing changed, as data.

Change = Callable[[Sequence[Stage]], Sequence[Stage]]


@dataclass(frozen=True, slots=True)
class Variation:
    """A pipeline that is compared with the default one.

    Attributes:
        name: What is different.
        pipeline: What is run.
        needs: Names of the optional models that it makes no sense without.
    """

    name: str
    pipeline: Pipeline
    needs: frozenset[str] = field(default_factory=frozenset)

    def lacks(self, models: OptionalModels) -> bool:
        """Whether a model that it needs is not there."""
        given = {"reranker": models.reranker, "chat": models.chat}
        return any(given[name] is None for name in self.needs)


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


def varied(name: str, *changes: Change) -> Variation:
    """Change the default pipeline, one change after another."""
    stages: Sequence[Stage] = BALANCED.stages
    for change in changes:
        stages = change(stages)
    return Variation(name, Pipeline(name, stages))


REFERENCE = Variation(BALANCED.name, BALANCED)

STAGE_VARIATIONS: tuple[Variation, ...] = (
    varied("without weights", without(Weigh)),
    varied("without decay", without(Decay)),
    varied(
        "without time",
        without(ReadTime),
        without(SearchTime),
        without(FavourTime),
        without(ListTime),
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
    varied("with source dedup", instead(SourceDedup())),
    varied("with normalisation", instead(Normalise())),
    varied("with MMR, .9", instead(Diversify(trade_off=0.9))),
    varied("with MMR, adaptive", instead(Diversify(trade_off="adaptive"))),
    varied("decay by a hundredth", instead(Decay(floor=0.99))),
    varied("decay by a tenth", instead(Decay(floor=0.9))),
    varied("decay as published", instead(Decay(floor=0.8, rate=0.03, fading=MEMORY_TYPES))),
    varied("search depth 100", instead(SearchPools(depth=100))),
    varied("search depth 1,000", instead(SearchPools(depth=1000))),
)

PRESET_VARIATIONS: tuple[Variation, ...] = tuple(
    Variation(f"preset {name}", pipeline)
    for name, pipeline in PRESETS.items()
    if pipeline is not BALANCED
)


# What each stage is worth: the default pipeline with one thing changed at a time.


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


@dataclass(frozen=True, slots=True)
class AblationRow:
    """One variation on one dataset.

    Attributes:
        variation: What was changed.
        report: What it gave.
        difference: How it differs from the default pipeline; None for that itself.
    """

    variation: Variation
    report: Report
    difference: Comparison | None


@dataclass(frozen=True, slots=True)
class Ablation:
    """All variations on one dataset; the first row is the default pipeline."""

    benchmark: Benchmark
    rows: tuple[AblationRow, ...]


def load_benchmark(path: Path) -> Benchmark:
    """Load a dataset by its form: LoCoMo's own file, a BEIR folder, or a conversation folder.

    Raises:
        DatasetError: It is none of these, or is damaged.
    """
    if (path / "qrels").is_dir():
        # One or two documents are judged for a query, so what counts is how early they come.
        return Benchmark(load_beir(path), "NDCG@10", "MAP")
    dataset = load_locomo(path) if path.is_file() else load_conversation(path)
    return Benchmark(dataset, "MAP", "R@20")


def ablate(
    benchmark: Benchmark,
    variations: Sequence[Variation],
    *,
    embedder: EmbeddingModel | None = None,
    models: OptionalModels = NO_OPTIONAL_MODELS,
    progress: Progress = silent,
) -> Ablation:
    """Measure the default pipeline and every variation over one store.

    Args:
        benchmark: What to measure on.
        variations: What to change.
        embedder: Embedder of the store; None takes the bundled one.
        models: Reranker and language model; a variation that lacks its own is left out.
        progress: Is told how far things are.
    """
    rows: list[AblationRow] = []
    with EkphorySystem(embedder=embedder, models=models) as system:
        for variation in chain((REFERENCE,), variations):
            if variation.lacks(models):
                continue
            report = evaluate(
                benchmark.dataset,
                OtherPipeline(system, variation.pipeline),
                measures=CONVERSATION_MEASURES,
                progress=progress,
            )
            against = compare(score_table(rows[0].report), score_table(report)) if rows else None
            rows.append(AblationRow(variation, report, against))
    return Ablation(benchmark, tuple(rows))


# An ablation for people: a line for each variation, as a rich table or as Markdown.

_HEADERS = ("variation", "{main}", "difference", "95 %", "p", "{second}", "p50 ms", "p95 ms")


def ablation_table(ablation: Ablation) -> Table:
    """Show one dataset's rows; the first is the default pipeline."""
    table = Table(title=_title(ablation), title_justify="left")
    headers, *lines = _cells(ablation)
    for place, header in enumerate(headers):
        table.add_column(header, justify="left" if place == 0 else "right")
    for line in lines:
        table.add_row(*line)
    return table


def ablation_markdown(ablation: Ablation) -> str:
    """Return one dataset's rows as a Markdown section."""
    headers, *lines = _cells(ablation)
    rule = ["---", *["---:"] * (len(headers) - 1)]
    rows = "\n".join(f"| {' | '.join(row)} |" for row in (headers, rule, *lines))
    return f"## {_title(ablation)}\n\n{rows}\n"


def _title(ablation: Ablation) -> str:
    dataset = ablation.benchmark.dataset
    passages = sum(map(len, dataset.pools.values()))
    return f"{dataset.name}: {len(dataset.queries)} queries, {passages:,} passages"


def _cells(ablation: Ablation) -> Iterator[list[str]]:
    main, second = ablation.benchmark.main, ablation.benchmark.second
    yield [header.format(main=main, second=second) for header in _HEADERS]
    for row in ablation.rows:
        scores, latency = row.report.overall.estimates, row.report.latency
        yield [
            row.variation.name,
            _number(scores[main].mean),
            *_difference(row, main),
            _number(scores[second].mean),
            f"{latency.p50:.1f}",
            f"{latency.p95:.1f}",
        ]


def _difference(row: AblationRow, measure: str) -> tuple[str, str, str]:
    if row.difference is None:
        return "", "", ""
    test = row.difference.tests[measure]
    p_value = "<.001" if test.p_value < 0.001 else _number(test.p_value)
    return _signed(test.difference), f"{_signed(test.low)} to {_signed(test.high)}", p_value


def _signed(value: float) -> str:
    return f"{'-' if value < 0 else '+'}{_number(abs(value))}"


def _number(value: float) -> str:
    text = f"{value:.3f}"
    return text.removeprefix("0") if text != "0.000" else ".000"
