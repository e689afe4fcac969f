"""`ekphory train gate`: when a reranker may be skipped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from ekphory.cli.command import command
from ekphory.cli.consoles import result_console
from ekphory.cli.fitted_target import TargetOption, fitted_target
from ekphory.cli.json_output import print_json
from ekphory.cli.options import OutputOptions
from ekphory.cli.progress import step_bar
from ekphory.config import read_settings

if TYPE_CHECKING:
    from ekphory.cli.progress import Steps
    from ekphory.evaluation.datasets import Dataset
    from ekphory.evaluation.reranking.gate import GateCases, GateOutcome
    from ekphory.models.embedder import EmbeddingModel
    from ekphory.models.reranker import RerankingModel
    from ekphory.training.gate_file import GateRun
    from ekphory.training.gate_thresholds import LearnedGate


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingOptions:
    """How the reranker is used that the gate stands before."""

    reranker: Annotated[
        str, typer.Option(metavar="MODEL", help="bundled, a model's directory, or a hub id.")
    ] = "ekphory-rerank-tiny"
    read: Annotated[int, typer.Option(help="How many candidates it reads.")] = 30
    share: Annotated[
        float, typer.Option(help="How much the first stage's order weighs beside it, 0 to 1.")
    ] = 0.4


@dataclass(frozen=True, slots=True, kw_only=True)
class GateOptions:
    """How the gate is learned, and where it is written."""

    keep: Annotated[
        float, typer.Option(help="Share of the MAP gain that the gate has to keep.")
    ] = 0.98
    feature: Annotated[
        str,
        typer.Option(help="What of the first stage's scores the gate compares; all are shown."),
    ] = "best_probability"
    seed: Annotated[int, typer.Option(help="Draws the conversations and questions.")] = 0
    target: TargetOption = None


@command
def gate(
    data: Annotated[Path, typer.Option(metavar="DIR", help="Folder with the training data.")],
    asked: ReadingOptions,
    wanted: GateOptions,
    output: OutputOptions,
    check: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH",
            help="A benchmark on which the learned gate is measured, and not learned; repeatable.",
        ),
    ] = None,
) -> None:
    """Learn when the first stage's scores leave a reranker nothing to gain, and write the gate."""
    from ekphory.evaluation.ablation import load_benchmark
    from ekphory.models.configured import configured_embedder, named_reranker
    from ekphory.models.fitted_file import write_fitted
    from ekphory.models.loading import load_embedder
    from ekphory.retrieval.learned_gates import GATE_FILE
    from ekphory.training.gate_conversations import gate_conversations
    from ekphory.training.gate_file import GateRun, chosen_gate, gate_file, require_feature
    from ekphory.training.gate_thresholds import learn_gates

    target = fitted_target(wanted.target, GATE_FILE.name)
    require_feature(wanted.feature)
    settings = read_settings()
    model = named_reranker(asked.reranker, settings)
    embedder = configured_embedder(settings) or load_embedder(None)
    learned_on = gate_conversations(data, seed=wanted.seed)
    with step_bar() as progress:
        gates = learn_gates(_cases(learned_on, model, embedder, asked, progress), keep=wanted.keep)
        chosen = chosen_gate(gates, wanted.feature)
        benchmarks = [load_benchmark(path).dataset for path in check or ()]
        checked = {
            dataset.name: _outcomes(gates, _cases(dataset, model, embedder, asked, progress))
            for dataset in benchmarks
        }
    run = GateRun(
        embedder=embedder.identity,
        reranker=model,
        learned_on=learned_on,
        seed=wanted.seed,
        command=_command(asked, wanted, chosen),
        checked={name: found[gates.index(chosen)] for name, found in checked.items()},
    )
    write_fitted(target, gate_file(chosen, run))
    if output.json:
        print_json(_report(target, run, gates, checked))
        return
    result_console().print(_table(gates, checked))
    result_console().print(f"{target}: the gate on {chosen.feature}", soft_wrap=True)


def _outcomes(gates: Sequence[LearnedGate], cases: GateCases) -> list[GateOutcome]:
    from ekphory.evaluation.reranking.gate import gate_outcome, passes

    return [gate_outcome(cases, passes(cases, each.feature, each.thresholds)) for each in gates]


def _report(
    target: Path,
    run: GateRun,
    gates: Sequence[LearnedGate],
    checked: Mapping[str, list[GateOutcome]],
) -> dict[str, object]:
    embedder = run.embedder.model_id
    return {"target": target, "embedder": embedder, "gates": gates, "checked": checked}


def _command(asked: ReadingOptions, wanted: GateOptions, chosen: LearnedGate) -> str:
    """Return the command that finds this gate again."""
    return (
        f"ekphory train gate --data DIR --reranker {asked.reranker} --read {asked.read} "
        f"--share {asked.share} --keep {wanted.keep} --seed {wanted.seed} "
        f"--feature {chosen.feature}"
    )


def _cases(
    dataset: Dataset,
    model: RerankingModel,
    embedder: EmbeddingModel,
    asked: ReadingOptions,
    progress: Steps,
) -> GateCases:
    from ekphory.evaluation.reranking.contenders import model_contender
    from ekphory.evaluation.reranking.first_stage import find_candidates
    from ekphory.evaluation.reranking.gate import gate_cases
    from ekphory.evaluation.reranking.scored_lists import Judge

    candidates = find_candidates(dataset, embedder=embedder, progress=progress)
    return gate_cases(
        dataset,
        Judge(model_contender(model), candidates, dataset.pools),
        read=asked.read,
        first_stage_share=asked.share,
        progress=progress,
    )


def _table(gates: Sequence[LearnedGate], checked: dict[str, list[GateOutcome]]) -> Table:
    table = Table(title="rerank where low ≤ feature ≤ high; skipped / share of the MAP gain kept")
    for header in ("feature", "low", "high", "other training conversations", *checked):
        table.add_column(header)
    for place, each in enumerate(gates):
        outcomes = (each.checked, *(found[place] for found in checked.values()))
        low, high = each.thresholds.low, each.thresholds.high
        table.add_row(each.feature, f"{low:.4f}", f"{high:.4f}", *map(_outcome, outcomes))
    return table


def _outcome(found: GateOutcome) -> str:
    maps = f"MAP {found.first_stage:.3f}, {found.always:.3f}, gated {found.gated:.3f}"
    return f"{found.skipped:.3f} / {found.gain_kept:.3f} ({maps})"
