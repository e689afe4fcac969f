"""`ekphory train`: constants that are fitted, and samples that are generated."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.table import Table

from ekphory.cli.command import command, print_result, result_console, show_note, step_bar
from ekphory.cli.options import OutputOptions
from ekphory.config import read_settings
from ekphory.errors import InvalidInput

if TYPE_CHECKING:
    from ekphory.cli.command import Steps
    from ekphory.models.embedder import EmbeddingModel
    from ekphory.models.reranker import RerankingModel
    from ekphory_lab.evaluation.datasets import Dataset
    from ekphory_lab.evaluation.reranking.benchmark import GateCases, GateOutcome
    from ekphory_lab.training.gates import LearnedGate
    from ekphory_lab.training.memories import Split
    from ekphory_lab.training.reranker.own_calibration import OwnCalibration


# Where an `ekphory train` command writes the constants that it fitted.

_FITTED = Path(str(files("ekphory"))) / "fitted"

DataOption = Annotated[
    Path, typer.Option("--data", metavar="DIR", help="Folder of the training files.")
]
TargetOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Where the constants are written; in a checkout the package's own file, "
        "else to be given.",
    ),
]


def fitted_target(given: Path | None, name: str, *, folder: Path = _FITTED) -> Path:
    """Return the file to write: the one given, in a checkout else the package's own.

    Args:
        given: What the caller asks for.
        name: File name of the package's own.
        folder: Where the package keeps its own.

    Raises:
        InvalidInput: None is given, and the package is not a checkout: an installed package is not
            written to unasked.
    """
    if given is not None:
        return given
    if not (folder.parents[2] / "pyproject.toml").is_file():
        raise InvalidInput(
            "target",
            given,
            "must be given: this is an installed package, whose files are left alone",
            f"Give --target {name}",
        )
    return folder / name


# `ekphory train calibration`.


@command
def calibration(
    data: DataOption,
    output: OutputOptions,
    target: TargetOption = None,
) -> None:
    """Fit the probabilities that hits get, and write them; no evaluation data is read.

    Fitted on scopes of 2 to 5,000 memories: documents, long messages, chats and statements. A
    search by words alone, one by meaning, and what the bundled reranker reads have a curve each.
    """
    from ekphory.retrieval.calibration import PROBABILITIES_FILE, write_fitted
    from ekphory_lab.training.probabilities import fit_probabilities

    place = fitted_target(target, PROBABILITIES_FILE.name)
    with show_note("searching") as note:
        file = fit_probabilities(data, on_progress=note)
    write_fitted(place, file)
    told = [f"{name} {value:g}" for name, value in file.measured.items()]
    told.append(f"{place}: probabilities for {file.models['embedder']}")
    print_result(output, {"target": place, "file": file}, "\n".join(told))


# `ekphory train gate`: when a reranker may be skipped.


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
    data: DataOption,
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
    from ekphory.models.loading import load_configured_embedder, load_embedder, load_named_reranker
    from ekphory.retrieval.calibration import GATE_FILE, write_fitted
    from ekphory_lab.evaluation.ablation import load_benchmark
    from ekphory_lab.training import gates as learning

    target = fitted_target(wanted.target, GATE_FILE.name)
    if wanted.feature not in learning.GATE_FEATURES:
        known = ", ".join(learning.GATE_FEATURES)
        raise InvalidInput(
            "feature", wanted.feature, "must be a feature of a gate", f"Give {known}"
        )
    settings = read_settings()
    model = load_named_reranker(asked.reranker, settings)
    embedder = load_configured_embedder(settings) or load_embedder(None)
    learned_on = learning.gate_conversations(data, seed=wanted.seed)
    with step_bar() as progress:
        gates = learning.learn_gates(
            _cases(learned_on, model, embedder, asked, progress), keep=wanted.keep
        )
        chosen = next(gate for gate in gates if gate.feature == wanted.feature)
        benchmarks = [load_benchmark(path).dataset for path in check or ()]
        checked = {
            dataset.name: _outcomes(gates, _cases(dataset, model, embedder, asked, progress))
            for dataset in benchmarks
        }
    run = learning.GateRun(
        embedder=embedder.identity,
        reranker=model,
        learned_on=learned_on,
        seed=wanted.seed,
        command=_command(asked, wanted, chosen),
        checked={name: found[gates.index(chosen)] for name, found in checked.items()},
    )
    write_fitted(target, learning.gate_file(chosen, run))
    found = {"target": target, "embedder": run.embedder.model_id, "gates": gates}
    print_result(output, {**found, "checked": checked}, _table(gates, checked))
    if not output.json:
        result_console().print(f"{target}: the gate on {chosen.feature}", soft_wrap=True)


def _outcomes(gates: Sequence[LearnedGate], cases: GateCases) -> list[GateOutcome]:
    from ekphory_lab.evaluation.reranking.benchmark import gate_outcome, passes

    return [gate_outcome(cases, passes(cases, each.feature, each.thresholds)) for each in gates]


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
    from ekphory_lab.evaluation.reranking.benchmark import gate_cases
    from ekphory_lab.evaluation.reranking.candidates import find_candidates
    from ekphory_lab.evaluation.reranking.contenders import Judge, model_contender

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


# `ekphory train reranker-calibration`: what the scores of any reranker are worth.

PICTURE = ".svg"


@command
def reranker_calibration(
    data: DataOption,
    reranker: Annotated[
        str,
        typer.Option(
            metavar="MODEL",
            help="A directory, hub id or URL; a service is asked as EKPHORY_RERANKER_… say.",
        ),
    ],
    target: Annotated[
        Path, typer.Option(metavar="FILE", help="Where to write it, with a picture beside it.")
    ],
    output: OutputOptions,
    read: Annotated[
        int, typer.Option(min=1, help="How many candidates of a question it reads.")
    ] = 50,
) -> None:
    """Fit a reranker's scores to be probabilities, so that a hit's score and min_score hold.

    Name the file in EKPHORY_RERANKER_CALIBRATION, or give it to Reranker.from_pretrained.
    """
    from ekphory.models.loading import FittedCalibration, load_named_reranker, write_calibration
    from ekphory_lab.evaluation.reranking.report import reliability_svg

    _check_target(target)
    model = load_named_reranker(reranker, read_settings())
    found = _fitted(data, model, read)
    write_calibration(target, FittedCalibration(model.name, found.card))
    if found.reliability is not None:
        picture = reliability_svg(found.reliability, title=model.name)
        target.with_suffix(PICTURE).write_text(picture, encoding="utf-8")
    content = {"target": target, "reranker": model.name, "card": found.card}
    print_result(output, content, _reranker_calibration_table(model.name, found))


def _check_target(target: Path) -> None:
    # Before minutes of scoring, not after them.
    if target.suffix == PICTURE:
        raise InvalidInput("target", str(target), "is where the picture goes", "Name it card.json")
    place = target if target.exists() else target.parent
    if target.is_dir() or not target.parent.is_dir() or not os.access(place, os.W_OK):
        problem = "must be a file that can be written"
        raise InvalidInput("target", str(target), problem, "Name one in a directory that is there")


def _fitted(data: Path, model: RerankingModel, read: int) -> OwnCalibration:
    from ekphory.models.loading import load_configured_embedder, load_embedder
    from ekphory_lab.evaluation.reranking.candidates import find_candidates
    from ekphory_lab.evaluation.reranking.contenders import Judge, model_contender
    from ekphory_lab.training.gates import gate_conversations
    from ekphory_lab.training.reranker.own_calibration import fit_own_calibration

    dataset = gate_conversations(data)
    embedder = load_configured_embedder(read_settings()) or load_embedder(None)
    with step_bar() as progress:
        candidates = find_candidates(dataset, embedder=embedder, progress=progress)
        judge = Judge(model_contender(model), candidates, dataset.pools)
        return fit_own_calibration(dataset, judge, read=read, progress=progress)


def _reranker_calibration_table(name: str, found: OwnCalibration) -> Table:
    card = found.card
    table = Table(title=f"{name}: P = σ({card.slope:.3f} · logit(score) + {card.intercept:.3f})")
    for header in ("precision wanted", "least probability"):
        table.add_column(header)
    for precision, threshold in card.thresholds.items():
        table.add_row(precision, f"{threshold:.4f}")
    table.caption = f"{card.data}; error {card.measured['ece/held back']:.4f}"
    return table


# `ekphory train generate`: make memories with queries and hard negatives.


@command
def generate(
    out: Annotated[Path, typer.Option(metavar="FILE", help="JSON Lines file to write.")],
    output: OutputOptions,
    count: Annotated[int, typer.Option(help="How many samples.")] = 500_000,
    seed: Annotated[int, typer.Option(help="Other seeds give other samples.")] = 0,
    split: Annotated[str, typer.Option(help="train or test: they share no wording.")] = "train",
) -> None:
    """Generate queries, each with the memory that answers and seven hard negatives."""
    from ekphory_lab.training.memories import generate as generate_samples
    from ekphory_lab.training.memories import write_samples

    samples = generate_samples(cast("Split", split), seed=seed, count=count)
    with step_bar() as progress:
        report = write_samples(samples, out, progress=lambda done: progress("samples", done, count))
    told = [f"{out}: {report.samples:,} samples in {report.seconds:.1f} s"]
    for title, counts in (("answers", report.types), ("negatives", report.negatives)):
        named = ", ".join(f"{name} {number:,}" for name, number in counts.items())
        told.append(f"{title}: {named}")
    print_result(output, {"file": out, "report": report}, "\n".join(told))
