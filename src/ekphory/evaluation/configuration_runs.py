"""Running Memory-Spark's configurations over one store, each beside plain vector search."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from ekphory.evaluation.beir import load_beir
from ekphory.evaluation.comparison import Comparison, compare, score_table
from ekphory.evaluation.configuration import HITS, Configuration, Model
from ekphory.evaluation.configurations import BASELINE
from ekphory.evaluation.datasets import Dataset
from ekphory.evaluation.metrics import measures
from ekphory.evaluation.product import EkphorySystem, OtherPipeline
from ekphory.evaluation.remembering_reranker import RememberingReranker
from ekphory.evaluation.report import Report, to_json
from ekphory.evaluation.runner import Progress, evaluate, silent
from ekphory.models.embedder import EmbeddingModel
from ekphory.retrieval.resources import NO_OPTIONAL_MODELS, OptionalModels

MEASURES = measures(["NDCG@10", "MRR", "R@10", "MAP", "P@10"])
"""As upstream's, all over the ten hits that are asked for."""
_UNDATED = datetime(2020, 1, 1, tzinfo=UTC)
"""When passages without a time were written. The store would give them the day of the run, and
rerankers read days: figures would change with the calendar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationOptions:
    """With what configurations are run.

    Attributes:
        embedder: Embedder of the store; None takes the bundled one.
        models: Reranker and language model, where there are any.
        json_file: Where the whole reports go; None writes none.
        progress: Is told how far things are.
    """

    embedder: EmbeddingModel | None = None
    models: OptionalModels = NO_OPTIONAL_MODELS
    json_file: Path | None = None
    progress: Progress = silent


_DEFAULTS = ConfigurationOptions()


@dataclass(frozen=True, slots=True)
class ConfigurationRun:
    """What became of one configuration.

    Attributes:
        configuration: Which one.
        report: What it gave; None where it could not be run.
        against_baseline: How it differs from vector-only search; None for that itself.
        missing: The models that it needs and that were not given.
        remembered: How many of the reranker's scores were known from an earlier configuration;
            with any, how long the searches took tells nothing.
    """

    configuration: Configuration
    report: Report | None
    against_baseline: Comparison | None
    missing: tuple[Model, ...] = ()
    remembered: int = 0


def run_configurations(
    folder: Path,
    chosen: Sequence[Configuration],
    *,
    split: str = "test",
    options: ConfigurationOptions = _DEFAULTS,
) -> tuple[ConfigurationRun, ...]:
    """Run configurations on a folder of BEIR's form, vector-only search first in any case.

    The reranker reads each pair of query and passage once, whichever configurations ask for it.
    """
    dataset = _dated(load_beir(folder, split=split))
    given = options.models.reranker
    reranker = None if given is None else RememberingReranker(given)
    models = replace(options.models, reranker=reranker)
    others = [each for each in chosen if each.id != BASELINE.id]
    runs: list[ConfigurationRun] = []
    with EkphorySystem(embedder=options.embedder, models=models) as system:
        for configuration in (BASELINE, *others):
            missing = _missing(configuration, models)
            if missing:
                runs.append(ConfigurationRun(configuration, None, None, missing))
                continue
            before = 0 if reranker is None else reranker.remembered
            report = evaluate(
                dataset,
                OtherPipeline(system, configuration.pipeline()),
                measures=MEASURES,
                depth=HITS,
                progress=options.progress,
            )
            remembered = 0 if reranker is None else reranker.remembered - before
            against = _against(runs, report)
            runs.append(ConfigurationRun(configuration, report, against, remembered=remembered))
    if options.json_file is not None:
        options.json_file.parent.mkdir(parents=True, exist_ok=True)
        options.json_file.write_text(json.dumps(runs_json(runs), indent=1), encoding="utf-8")
    return tuple(runs)


def runs_json(runs: Sequence[ConfigurationRun]) -> dict[str, object]:
    """Give the reports of what was run; times that tell nothing are null."""
    return {
        "reports": [
            _report_json(run.report, remembered=run.remembered)
            for run in runs
            if run.report is not None
        ]
    }


def _report_json(report: Report, *, remembered: int) -> dict[str, object]:
    document = {**to_json(report), "remembered_scores": remembered}
    if not remembered:
        return document
    rows = cast("list[dict[str, object]]", document["queries"])
    timeless = [{**row, "milliseconds": None} for row in rows]
    return {**document, "latency_ms": None, "queries": timeless}


def _dated(dataset: Dataset) -> Dataset:
    pools = {
        pool: tuple(replace(passage, at=passage.at or _UNDATED) for passage in passages)
        for pool, passages in dataset.pools.items()
    }
    return replace(dataset, pools=pools)


def _missing(configuration: Configuration, models: OptionalModels) -> tuple[Model, ...]:
    given = {"language model": models.chat, "reranker": models.reranker}
    return tuple(model for model in configuration.needs if given[model] is None)


def _against(runs: Sequence[ConfigurationRun], report: Report) -> Comparison | None:
    baseline = runs[0].report if runs else None
    return None if baseline is None else compare(score_table(baseline), score_table(report))
