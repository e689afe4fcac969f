"""The thirty-six configurations of Memory-Spark's benchmark, as data, and their runs."""

from __future__ import annotations

import threading
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.resources import files
from time import perf_counter
from typing import Literal, TypeAlias

import numpy as np
from pydantic import TypeAdapter

from ekphory.errors import InvalidInput
from ekphory.models.agent_reranker import Reranker
from ekphory.models.reranker import (
    Judgement,
    RelevanceScores,
    RerankingModel,
    RerankPassage,
    RerankQuery,
)
from ekphory.retrieval.fusion import Blend
from ekphory.retrieval.gate import PUBLISHED_THRESHOLDS, GateThresholds
from ekphory.retrieval.pipeline import Pipeline, Stage
from ekphory.retrieval.query import CleanQuery
from ekphory.retrieval.stages.find import Arms, Fuse, FusionMethod, SearchPools
from ekphory.retrieval.stages.rerank import GateReranker, Rerank
from ekphory.retrieval.stages.shape import Cut, Diversify
from ekphory.retrieval.stages.widen import ExpandQuery, Hyde
from ekphory_lab.evaluation import metrics, runner, tables
from ekphory_lab.evaluation.datasets import Dataset
from ekphory_lab.evaluation.systems import EkphorySystem, OtherSearch

HITS = 10
"""How many hits each search asks for; each arm finds four times as many."""
POOL = 4 * HITS

Model = Literal["language model", "reranker"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A gate before the reranker."""

    mode: Literal["hard", "soft"]
    thresholds: GateThresholds = PUBLISHED_THRESHOLDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One configuration: its switches, and the pipeline they make.

    Attributes:
        id, label: As upstream names it.
        fusion: How the arms become one; a single arm runs alone.
        hyde: Whether a hypothetical document replaces the query's vector.
        wordings: How many other wordings are searched.
        blend: How a reranker's scores are blended in; None reranks nothing.
        reads: How many candidates the reranker reads.
        gate: When it reads; None for always.
        diversity: λ of the diversity; None orders by relevance alone.
        same_as: A configuration with other words for the same switches.
        at_head: The configuration that upstream's newest commit really runs for this one.
        published: NDCG@10 on SciFact that upstream reports, with its own models.
    """

    id: str
    label: str
    fusion: FusionMethod = "dense"
    hyde: bool = False
    wordings: int = 0
    blend: Blend | None = None
    reads: int = POOL
    gate: Gate | None = None
    diversity: float | Literal["adaptive"] | None = None
    same_as: str | None = None
    at_head: str | None = None
    published: float | None = None

    @property
    def needs(self) -> tuple[Model, ...]:
        """Which models it cannot do without."""
        models: list[Model] = ["language model"] if self.hyde or self.wordings else []
        return (*models, "reranker") if self.blend else tuple(models)

    def pipeline(self) -> Pipeline:
        """Build the pipeline that does what the label says."""
        single: dict[str, Arms] = {"dense": "dense", "lexical": "lexical"}
        arms = single.get(self.fusion, "both")
        stages: list[Stage] = [CleanQuery()]
        if self.hyde:
            stages.append(Hyde(use="replace"))
        if self.wordings:
            stages.append(ExpandQuery(wordings=self.wordings))
        stages.append(SearchPools(depth=POOL, depth_per_hit=0, arms=arms))
        stages.append(Fuse(method=self.fusion, list_per_hit=POOL // HITS))
        if self.gate is not None:
            stages.append(GateReranker(mode=self.gate.mode, thresholds=self.gate.thresholds))
        if self.blend is not None:
            stages.append(Rerank(candidates=self.reads, blend=self.blend, query_form="question"))
        if self.diversity is not None:
            per_hit = self.reads // HITS
            stages.append(Diversify(trade_off=self.diversity, among_per_hit=per_hit))
        return Pipeline(self.id, [*stages, Cut()], summary=self.label)


_ROWS = files("ekphory_lab.evaluation").joinpath("configurations.toml").read_text(encoding="utf-8")
CONFIGURATIONS: Mapping[str, Configuration] = {
    each.id: each
    for each in TypeAdapter(list[Configuration]).validate_python(
        tomllib.loads(_ROWS)["configurations"]
    )
}
"""By id, in upstream's order."""
BASELINE = CONFIGURATIONS["A"]


def choose_configurations(names: Sequence[str]) -> tuple[Configuration, ...]:
    """Return the configurations of these ids in upstream's order; `all` stands for every one.

    Raises:
        InvalidInput: No configuration has one of these ids, or none was named.
    """
    wanted = {name.strip().upper() for name in names if name.strip()}
    if wanted == {"ALL"}:
        return tuple(CONFIGURATIONS.values())
    unknown = sorted(wanted - CONFIGURATIONS.keys())
    if unknown or not wanted:
        raise InvalidInput(
            "configs",
            ",".join(unknown or names),
            "no such configuration",
            f"Name some of {', '.join(CONFIGURATIONS)}, or all",
        )
    return tuple(each for each in CONFIGURATIONS.values() if each.id in wanted)


# A reranker that reads each pair of query and passage once.

_Pair: TypeAlias = tuple[RerankQuery, RerankPassage]
"""Everything that a model reads for one score."""


class RememberingReranker:
    """Scores as another reranker does, and asks it for nothing twice.

    A score depends on the pair alone: neither on who asks nor on the passages beside it. Safe to
    call from several threads; what a failed call asked for is asked for again.

    Attributes:
        spared: How many milliseconds it would have read for what it remembered: as long as it did
            for each.
    """

    def __init__(self, model: RerankingModel) -> None:
        """Wrap a loaded model, of which nothing is known yet."""
        self._model = Reranker(model)
        self.name = model.name
        self.batch_size = model.batch_size
        self.is_calibrated = self._model.is_calibrated
        self.is_remote = self._model.is_remote
        self.spared = 0.0
        self._known: dict[_Pair, tuple[float, float, float]] = {}
        self._lock = threading.Lock()

    def score(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> RelevanceScores:
        """Return the model's scores, shape (len(passages),)."""
        return self.judge(query, passages).scores

    def judge(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> Judgement:
        """Return the model's scores, and beside them what they were made from."""
        # Held while the model reads, or two threads would have it read the same pair.
        with self._lock:
            unknown = [passage for passage in passages if (query, passage) not in self._known]
            self.spared += sum(
                self._known[query, passage][2]
                for passage in passages
                if (query, passage) in self._known
            )
            if unknown:
                started = perf_counter()
                judged = self._model.judge(query, unknown)
                each = (perf_counter() - started) * 1_000 / len(unknown)
                pairs = zip(unknown, judged.scores.tolist(), judged.raw.tolist(), strict=True)
                self._known |= {
                    (query, passage): (score, raw, each) for passage, score, raw in pairs
                }
            known = [self._known[query, passage][:2] for passage in passages]
        values = np.array(known, np.float32).reshape(len(passages), 2)
        return Judgement(values[:, 0], values[:, 1])


# Running configurations over one store, each beside plain vector search.

MEASURES = metrics.measures(["NDCG@10", "MRR", "R@10", "MAP", "P@10"])
"""As upstream's, all over the ten hits that are asked for."""
_UNDATED = datetime(2020, 1, 1, tzinfo=UTC)
"""When passages without a time were written. The store would give them the day of the run, and
rerankers read days: figures would change with the calendar."""


@dataclass(frozen=True, slots=True)
class ConfigurationRun:
    """What became of one configuration.

    Attributes:
        configuration: Which one.
        report: Its scores, and how long it takes alone; None where it could not be run.
        against_baseline: How it differs from vector-only search; None for that itself.
        missing: The models that it needs and that were not given.
    """

    configuration: Configuration
    report: runner.Report | None = None
    against_baseline: runner.Comparison | None = None
    missing: tuple[Model, ...] = ()


def run_configurations(
    dataset: Dataset, chosen: Sequence[Configuration], means: runner.Means
) -> tuple[ConfigurationRun, ...]:
    """Run configurations on a set, vector-only search first in any case.

    The reranker reads each pair of query and passage once, whichever configurations ask for it.

    Args:
        dataset: What to measure on.
        chosen: The configurations.
        means: With what.
    """
    dated = {
        pool: tuple(replace(passage, at=passage.at or _UNDATED) for passage in passages)
        for pool, passages in dataset.pools.items()
    }
    dataset = replace(dataset, pools=dated)
    models = means.models
    reranker = None if models.reranker is None else RememberingReranker(models.reranker)
    models = replace(models, reranker=reranker)
    given = {"language model": models.chat, "reranker": reranker}
    runs: list[ConfigurationRun] = []
    with EkphorySystem(embedder=means.embedder, models=models) as system:
        for configuration in (BASELINE, *(each for each in chosen if each.id != BASELINE.id)):
            missing = tuple(model for model in configuration.needs if given[model] is None)
            if missing:
                runs.append(ConfigurationRun(configuration, missing=missing))
                continue
            report = _run_alone(
                dataset, OtherSearch(system, configuration.pipeline()), reranker, means.progress
            )
            first = runs[0].report if runs else None
            against = None if first is None else runner.compare(first, report)
            runs.append(ConfigurationRun(configuration, report, against))
    return tuple(runs)


def _run_alone(
    dataset: Dataset,
    system: OtherSearch,
    reranker: RememberingReranker | None,
    progress: runner.Progress,
) -> runner.Report:
    """Measure a system; its times are those of a run in which the reranker remembers nothing."""
    spared = [0.0 if reranker is None else reranker.spared]

    def told(activity: str, done: int, total: int) -> None:
        if activity == "search" and reranker is not None:
            spared.append(reranker.spared)
        progress(activity, done, total)

    report = runner.evaluate(dataset, system, measures=MEASURES, depth=HITS, progress=told)
    if reranker is None:
        return report
    outcomes = tuple(
        replace(outcome, milliseconds=outcome.milliseconds + more)
        for outcome, more in zip(report.outcomes, np.diff(spared).tolist(), strict=True)
    )
    times = metrics.Latency.of([outcome.milliseconds for outcome in outcomes])
    return replace(report, outcomes=outcomes, latency=times)


def runs_json(runs: Sequence[ConfigurationRun]) -> dict[str, object]:
    """Return the reports of what was run, each with its difference to vector-only search."""
    return {
        "reports": [
            runner.to_json(run.report) | {"against_baseline": run.against_baseline}
            for run in runs
            if run.report is not None
        ]
    }


# The table: a line for each configuration beside plain vector search.

_MAIN = MEASURES[0].name
_REMEMBERED = (
    "Where the reranker had read a passage for a configuration above, the time that it took there "
    "is counted again."
)


def configuration_table(runs: Sequence[ConfigurationRun]) -> tables.ReportTable:
    """Show each configuration with its figures, those of vector-only search, and its latency.

    The p-value is that of the paired randomisation test on one pair; among many configurations
    some are below .05 by chance.

    Args:
        runs: At least one; the first is vector-only search, and was run.
    """
    baseline = runs[0].report
    if baseline is None:
        raise ValueError("the baseline was not run")
    return tables.records_table(
        f"Memory-Spark's configurations on {baseline.dataset.name}: "
        f"{len(baseline.dataset.queries)} queries, {baseline.dataset.size} passages; "
        f"published: {_MAIN} on SciFact with upstream's own models",
        (
            {
                "": run.configuration.id,
                "configuration": _label(run),
                "published": run.configuration.published or "",
                **_figures(run),
            }
            for run in runs
        ),
        note=_REMEMBERED,
        names=2,
    )


def _label(run: ConfigurationRun) -> str:
    configuration = run.configuration
    notes = [configuration.label]
    if configuration.same_as is not None:
        notes.append(f"the same as {configuration.same_as}")
    if configuration.at_head is not None:
        notes.append(f"upstream now runs {configuration.at_head} for it")
    skipped = None if run.report is None else run.report.configuration.get("gate_skipped")
    if skipped is not None:
        notes.append(f"skips {skipped:.0%}")
    if run.missing:
        notes.append(f"needs a {' and a '.join(run.missing)}; unmeasured")
    return "; ".join(notes)


def _figures(run: ConfigurationRun) -> dict[str, object]:
    report = run.report
    if report is None:
        return {}
    against = run.against_baseline
    return {
        **{name: report.mean(name) for name in (_MAIN, "MRR", "R@10")},
        "p50 / p95 ms": report.latency,
        "difference to A": "" if against is None else against.tests[_MAIN],
    }
