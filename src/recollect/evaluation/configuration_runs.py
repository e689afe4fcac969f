"""Running Memory-Spark's configurations over one store, each beside plain vector search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from recollect.evaluation.beir import load_beir
from recollect.evaluation.comparison import Comparison, compare, score_table, write_reports
from recollect.evaluation.configuration import HITS, Configuration, Model
from recollect.evaluation.configurations import BASELINE
from recollect.evaluation.metrics import measures
from recollect.evaluation.product import OtherPipeline, RecollectSystem
from recollect.evaluation.report import Report
from recollect.evaluation.runner import Progress, evaluate, silent
from recollect.models.embedder import EmbeddingModel
from recollect.retrieval.resources import NO_OPTIONAL_MODELS, OptionalModels

MEASURES = measures(["NDCG@10", "MRR", "R@10", "MAP", "P@10"])
"""As upstream's, all over the ten hits that are asked for."""


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
    """

    configuration: Configuration
    report: Report | None
    against_baseline: Comparison | None
    missing: tuple[Model, ...] = ()


def run_configurations(
    folder: Path,
    chosen: Sequence[Configuration],
    *,
    split: str = "test",
    options: ConfigurationOptions = _DEFAULTS,
) -> tuple[ConfigurationRun, ...]:
    """Run configurations on a folder of BEIR's form, vector-only search first in any case."""
    dataset = load_beir(folder, split=split)
    others = [each for each in chosen if each.id != BASELINE.id]
    runs: list[ConfigurationRun] = []
    with RecollectSystem(embedder=options.embedder, models=options.models) as system:
        for configuration in (BASELINE, *others):
            missing = _missing(configuration, options.models)
            if missing:
                runs.append(ConfigurationRun(configuration, None, None, missing))
                continue
            report = evaluate(
                dataset,
                OtherPipeline(system, configuration.pipeline()),
                measures=MEASURES,
                depth=HITS,
                progress=options.progress,
            )
            runs.append(ConfigurationRun(configuration, report, _against(runs, report)))
    if options.json_file is not None:
        options.json_file.parent.mkdir(parents=True, exist_ok=True)
        reports = tuple(run.report for run in runs if run.report is not None)
        write_reports(reports, options.json_file)
    return tuple(runs)


def _missing(configuration: Configuration, models: OptionalModels) -> tuple[Model, ...]:
    given = {"language model": models.chat, "reranker": models.reranker}
    return tuple(model for model in configuration.needs if given[model] is None)


def _against(runs: Sequence[ConfigurationRun], report: Report) -> Comparison | None:
    baseline = runs[0].report if runs else None
    return None if baseline is None else compare(score_table(baseline), score_table(report))
