"""What each stage is worth: the default pipeline with one thing changed at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from ekphory.evaluation.beir import load_beir
from ekphory.evaluation.comparison import Comparison, compare, score_table
from ekphory.evaluation.conversation import load_conversation
from ekphory.evaluation.datasets import Dataset
from ekphory.evaluation.locomo import load_locomo
from ekphory.evaluation.metrics import CONVERSATION_MEASURES
from ekphory.evaluation.product import EkphorySystem, OtherPipeline
from ekphory.evaluation.report import Report
from ekphory.evaluation.runner import Progress, evaluate, silent
from ekphory.evaluation.variations import REFERENCE, Variation
from ekphory.models.embedder import EmbeddingModel
from ekphory.retrieval.resources import NO_OPTIONAL_MODELS, OptionalModels


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
