"""The thirty-six configurations of Memory-Spark's benchmark, as data, and their runs."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias, cast

import numpy as np
from rich.table import Table
from rich.text import Text

from ekphory.errors import InvalidInput
from ekphory.models.agent_reranker import Reranker
from ekphory.models.embedder import EmbeddingModel
from ekphory.models.reranker import (
    Judgement,
    RelevanceScores,
    RerankingModel,
    RerankPassage,
    RerankQuery,
)
from ekphory.retrieval.gate import PUBLISHED_THRESHOLDS, GateThresholds
from ekphory.retrieval.pipeline import NO_OPTIONAL_MODELS, OptionalModels, Pipeline, Stage
from ekphory.retrieval.rerank import Blend
from ekphory.retrieval.stages.find import Arms, Fuse, FusionMethod, SearchPools
from ekphory.retrieval.stages.query import CleanQuery, ExpandQuery, Hyde
from ekphory.retrieval.stages.rerank import GateReranker, Rerank
from ekphory.retrieval.stages.shape import Cut, Diversify
from ekphory_lab.evaluation.datasets import Dataset
from ekphory_lab.evaluation.loaders import load_beir
from ekphory_lab.evaluation.metrics import PairedTest, measures
from ekphory_lab.evaluation.runner import (
    Comparison,
    Progress,
    Report,
    compare,
    evaluate,
    score_table,
    silent,
    to_json,
)
from ekphory_lab.evaluation.systems import EkphorySystem, OtherPipeline

# One configuration of Memory-Spark's benchmark: its switches, and the pipeline they make.

HITS = 10
"""How many hits each search asks for; each arm finds four times as many."""
POOL = 4 * HITS
FUSED = 2 * HITS
"""How many fused candidates are left for reranker and diversity."""

Model = Literal["language model", "reranker"]


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate before the reranker."""

    mode: Literal["hard", "soft"]
    thresholds: GateThresholds = PUBLISHED_THRESHOLDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One configuration.

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


# The thirty-six configurations of Memory-Spark's benchmark, as data.
#
# Source: kleinpanic/memory-spark, `scripts/run-beir-bench.ts`, with the labels that it gives them.
# Here each does what its label says. At upstream's newest commit many do not: what sets neither
# blend nor gate falls back to blended ranks behind a hard gate there, whatever its α; `at_head`
# says so.


def _scores(share: float) -> Blend:
    return Blend(method="scores", first_stage_share=share)


_CONDITIONAL = Gate("hard", GateThresholds(low=0.0, high=0.15))
_RANKS = Blend()

CONFIGURATIONS: tuple[Configuration, ...] = (
    Configuration(id="A", label="Vector-Only", published=0.7709),
    Configuration(id="B", label="FTS-Only", fusion="lexical", published=0.6587),
    Configuration(id="C", label="Hybrid", fusion="reciprocal_rank"),
    Configuration(
        id="D",
        label="Hybrid + Reranker",
        fusion="reciprocal_rank",
        blend=_scores(0),
        reads=FUSED,
        published=0.7525,
    ),
    Configuration(
        id="E", label="Hybrid + MMR", fusion="reciprocal_rank", reads=FUSED, diversity=0.9
    ),
    Configuration(
        id="F", label="Hybrid + HyDE", fusion="reciprocal_rank", hyde=True, published=0.7278
    ),
    Configuration(
        id="G",
        label="Full Pipeline",
        fusion="reciprocal_rank",
        blend=_scores(0),
        reads=FUSED,
        diversity=0.9,
    ),
    Configuration(id="H", label="Vector → Reranker (no RRF)", blend=_scores(0), at_head="GATE-A"),
    Configuration(
        id="I", label="Adaptive Hybrid (overlap-aware RRF)", fusion="adaptive_reciprocal_rank"
    ),
    Configuration(
        id="J",
        label="Reranker-as-Fusioner (union → rerank)",
        fusion="reciprocal_rank",
        blend=_scores(0),
        published=0.7262,
    ),
    Configuration(id="K", label="Vector → Adaptive MMR", diversity="adaptive"),
    Configuration(
        id="L",
        label="Full Adaptive (overlap RRF → Reranker → Adaptive MMR)",
        fusion="adaptive_reciprocal_rank",
        blend=_scores(0),
        reads=FUSED,
        diversity="adaptive",
    ),
    Configuration(
        id="M", label="Vector → Blended Reranker (α=0.3)", blend=_scores(0.3), at_head="GATE-A"
    ),
    Configuration(
        id="N",
        label="Vector → Blended Reranker (α=0.5)",
        blend=_scores(0.5),
        at_head="GATE-A",
        published=0.7863,
    ),
    Configuration(
        id="O",
        label="Conditional Rerank (skip when confident, α=0.3)",
        blend=_scores(0.3),
        gate=_CONDITIONAL,
        at_head="GATE-A",
    ),
    Configuration(
        id="P",
        label="Adaptive RRF → Conditional Blended Reranker → Adaptive MMR",
        fusion="adaptive_reciprocal_rank",
        blend=_scores(0.3),
        reads=FUSED,
        gate=_CONDITIONAL,
        diversity="adaptive",
        at_head="L",
        published=0.7797,
    ),
    Configuration(
        id="Q",
        label="Vector → Logit-Recovered Blend (α=0.5)",
        blend=_scores(0.5),
        same_as="N",
        at_head="GATE-A",
        published=0.7863,
    ),
    Configuration(
        id="R",
        label="Vector → Pure Logit Reranker (α=0)",
        blend=_scores(0),
        same_as="H",
        at_head="GATE-A",
    ),
    Configuration(
        id="S",
        label="Vector → Logit Blend + Conditional (α=0.3)",
        blend=_scores(0.3),
        gate=_CONDITIONAL,
        same_as="O",
        at_head="GATE-A",
    ),
    Configuration(
        id="T",
        label="Vector → Logit Blend (α=0.3)",
        blend=_scores(0.3),
        same_as="M",
        at_head="GATE-A",
    ),
    Configuration(
        id="U",
        label="Vector → Logit Blend (α=0.4)",
        blend=_scores(0.4),
        at_head="GATE-A",
        published=0.7889,
    ),
    Configuration(
        id="V",
        label="Vector → Logit Blend (α=0.6)",
        blend=_scores(0.6),
        at_head="GATE-A",
        published=0.7885,
    ),
    Configuration(
        id="W", label="Vector → Logit Blend (α=0.7)", blend=_scores(0.7), at_head="GATE-A"
    ),
    Configuration(
        id="X", label="Vector → Logit Blend (α=0.8)", blend=_scores(0.8), at_head="GATE-A"
    ),
    Configuration(id="MQ-A", label="Multi-Query (3) → Vector-Only", wordings=3),
    Configuration(
        id="MQ-B", label="Multi-Query (3) → Logit Blend (α=0.4)", wordings=3, blend=_scores(0.4)
    ),
    Configuration(
        id="MQ-C",
        label="Multi-Query (3) → Logit Blend (α=0.5)",
        wordings=3,
        blend=_scores(0.5),
        at_head="MQ-B",
        published=0.7853,
    ),
    Configuration(
        id="MQ-D",
        label="Multi-Query (3) → Conditional Logit Blend (α=0.4)",
        wordings=3,
        blend=_scores(0.4),
        gate=_CONDITIONAL,
        at_head="MQ-B",
    ),
    Configuration(
        id="RRF-A",
        label="Vector ⊕ Reranker via RRF (k=60, equal weight)",
        blend=_RANKS,
        at_head="GATE-A",
        published=0.7797,
    ),
    Configuration(
        id="RRF-B",
        label="Vector ⊕ Reranker via RRF (k=60, vector=1.5)",
        blend=Blend(first_stage_weight=1.5),
    ),
    Configuration(
        id="RRF-C",
        label="Vector ⊕ Reranker via RRF (k=60, reranker=1.5)",
        blend=Blend(reranker_weight=1.5),
    ),
    Configuration(
        id="RRF-D",
        label="Vector ⊕ Reranker via RRF (k=20, equal weight)",
        blend=Blend(constant=20),
        published=0.7798,
    ),
    Configuration(
        id="GATE-A",
        label="RRF + Hard Gate (skip if spread > 0.08 or < 0.02)",
        blend=_RANKS,
        gate=Gate("hard"),
        published=0.7802,
    ),
    Configuration(
        id="GATE-B",
        label="RRF + Soft Gate (dynamic vector weight from spread)",
        blend=_RANKS,
        gate=Gate("soft"),
    ),
    Configuration(
        id="GATE-C",
        label="RRF + Soft Gate (threshold=0.12, wider confidence window)",
        blend=_RANKS,
        gate=Gate("soft", GateThresholds(low=0.02, high=0.12)),
    ),
    Configuration(
        id="GATE-D",
        label="RRF (vector=1.5) + Soft Gate",
        blend=Blend(first_stage_weight=1.5),
        gate=Gate("soft"),
        published=0.7803,
    ),
)
BASELINE = CONFIGURATIONS[0]
_BY_ID = {configuration.id: configuration for configuration in CONFIGURATIONS}


def configurations(names: Sequence[str]) -> tuple[Configuration, ...]:
    """Return the configurations of these ids in upstream's order; `all` gives every one.

    Raises:
        InvalidInput: There is none of that id, or none was named.
    """
    wanted = {name.strip().upper() for name in names if name.strip()}
    if wanted == {"ALL"}:
        return CONFIGURATIONS
    unknown = sorted(wanted - _BY_ID.keys())
    if unknown or not wanted:
        raise InvalidInput(
            "configs",
            ",".join(unknown or names),
            "no such configuration",
            f"Name some of {', '.join(_BY_ID)}, or all",
        )
    return tuple(each for each in CONFIGURATIONS if each.id in wanted)


# A reranker that reads each pair of query and passage once, however often it is asked for it.

_Pair: TypeAlias = tuple[RerankQuery, RerankPassage]
"""Everything that a model reads for one score."""


class RememberingReranker:
    """Gives what another reranker gives, and asks it for nothing twice.

    A score depends on the pair alone: neither on who asks nor on the passages beside it. Safe to
    call from several threads; what a failed call asked for is asked for again.
    """

    def __init__(self, model: RerankingModel) -> None:
        """Wrap a loaded model, of which nothing is known yet."""
        self._model = Reranker(model)
        self._known: dict[_Pair, tuple[float, float]] = {}
        self._remembered = 0
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model.name

    @property
    def batch_size(self) -> int:
        """How many passages are best given at a time."""
        return self._model.batch_size

    @property
    def is_calibrated(self) -> bool:
        """Whether the model's scores were fitted to be probabilities."""
        return self._model.is_calibrated

    @property
    def is_remote(self) -> bool:
        """Whether the model is a service."""
        return self._model.is_remote

    @property
    def remembered(self) -> int:
        """How many scores were given so far without asking the model."""
        return self._remembered

    def score(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> RelevanceScores:
        """Return the model's scores, shape (len(passages),)."""
        return self.judge(query, passages).scores

    def judge(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> Judgement:
        """Return the model's scores, and beside them what they were made from."""
        # Held while the model reads, or two threads would have it read the same pair.
        with self._lock:
            unknown = [passage for passage in passages if (query, passage) not in self._known]
            if unknown:
                self._read(query, unknown)
            self._remembered += len(passages) - len(unknown)
            known = [self._known[query, passage] for passage in passages]
        values = np.array(known, np.float32).reshape(len(passages), 2)
        return Judgement(values[:, 0], values[:, 1])

    def _read(self, query: RerankQuery, passages: Sequence[RerankPassage]) -> None:
        judged = self._model.judge(query, passages)
        given = zip(judged.scores.tolist(), judged.raw.tolist(), strict=True)
        self._known.update(
            ((query, passage), pair) for passage, pair in zip(passages, given, strict=True)
        )


# Running Memory-Spark's configurations over one store, each beside plain vector search.

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
    """Return the reports of what was run; times that tell nothing are null."""
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


# Configurations for people: each a line beside plain vector search, as rich table or Markdown.

_MAIN = MEASURES[0].name
_OTHERS = ("MRR", "R@10")
_HEADERS = ("", "configuration", _MAIN, "A", "difference", "p", *_OTHERS, "published")
_TIMES = ("p50 ms", "p95 ms")
_NOTHING = "–"
_NO_TIMES = (
    f"{_NOTHING} under {_TIMES[0]}: the reranker had read some of these passages for a "
    "configuration above, so the times would be too short; run that one alone to measure them."
)


def configuration_table(runs: Sequence[ConfigurationRun]) -> Table:
    """Show each configuration with its figures, those of vector-only search, and its latency.

    The p-value is that of the paired randomisation test on one pair; among many configurations
    some are below .05 by chance. Latency is left out where scores of the reranker were remembered.

    Args:
        runs: At least one; the first is vector-only search, and was run.
    """
    baseline = runs[0].report
    table = Table(title=_title(baseline), title_justify="left", caption_justify="left")
    if any(run.remembered for run in runs):
        table.caption = _NO_TIMES
    table.add_column("", no_wrap=True)
    table.add_column("configuration", min_width=30)
    for name in (*_HEADERS[2:], *_TIMES):
        table.add_column(name, justify="right", no_wrap=True)
    for run in runs:
        style = "dim" if run.missing else ""
        table.add_row(run.configuration.id, Text(_label(run), style), *_figures(run, baseline))
    return table


def configuration_markdown(runs: Sequence[ConfigurationRun]) -> str:
    """Return the table as a Markdown section."""
    baseline = runs[0].report
    rule = ("---", "---", *["---:"] * (len(_HEADERS) + len(_TIMES) - 2))
    rows = [(run.configuration.id, _label(run), *_figures(run, baseline)) for run in runs]
    lines = (f"| {' | '.join(row)} |" for row in ((*_HEADERS, *_TIMES), rule, *rows))
    note = f"\n{_NO_TIMES}\n" if any(run.remembered for run in runs) else ""
    return f"## {_title(baseline)}\n\n" + "\n".join(lines) + f"\n{note}"


def _title(baseline: Report | None) -> str:
    if baseline is None:
        return "Memory-Spark's configurations"
    dataset = baseline.dataset
    passages = sum(map(len, dataset.pools.values()))
    return (
        f"Memory-Spark's configurations on {dataset.name}: {len(dataset.queries)} queries, "
        f"{passages} passages; published: {_MAIN} on SciFact with upstream's own models"
    )


def _label(run: ConfigurationRun) -> str:
    configuration = run.configuration
    notes = [configuration.label]
    if configuration.same_as is not None:
        notes.append(f"the same as {configuration.same_as}")
    if configuration.at_head is not None:
        notes.append(f"upstream now runs {configuration.at_head} for it")
    if run.missing:
        notes.append(f"needs a {' and a '.join(run.missing)}")
    return "; ".join(notes)


def _figures(run: ConfigurationRun, baseline: Report | None) -> list[str]:
    reference = "" if baseline is None else _mean(baseline, _MAIN)
    published = run.configuration.published
    shown = "" if published is None else _number(published)
    report = run.report
    if report is None:
        return [_NOTHING, reference, "", "", *[""] * len(_OTHERS), shown, "", ""]
    test = None if run.against_baseline is None else run.against_baseline.tests[_MAIN]
    return [
        _mean(report, _MAIN),
        reference,
        *_difference(test),
        *(_mean(report, name) for name in _OTHERS),
        shown,
        *_times(run, report),
    ]


def _times(run: ConfigurationRun, report: Report) -> tuple[str, str]:
    if run.remembered:
        return _NOTHING, _NOTHING
    return f"{report.latency.p50:.1f}", f"{report.latency.p95:.1f}"


def _difference(test: PairedTest | None) -> tuple[str, str]:
    if test is None:
        return "", ""
    sign = "-" if test.difference < 0 else "+"
    p_value = "<.001" if test.p_value < 0.001 else f"{test.p_value:.3f}".removeprefix("0")
    return sign + _number(abs(test.difference)), p_value


def _mean(report: Report, name: str) -> str:
    return _number(report.overall.estimates[name].mean)


def _number(value: float) -> str:
    return f"{value:.4f}".removeprefix("0")
