"""`ekphory train`: the commands that train and export models, and the recipes of them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.table import Table

from ekphory.cli.command import (
    command,
    message_console,
    print_result,
    result_console,
    show_note,
    step_bar,
)
from ekphory.cli.options import OutputOptions
from ekphory.cli.output import print_json
from ekphory.config import PREFIX, read_settings
from ekphory.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from ekphory.models.model_record import ModelRecord, RerankerRecord
    from ekphory.models.onnx_export import ModelDescription
    from ekphory_lab.evaluation.datasets import Dataset
    from ekphory_lab.evaluation.reranking.benchmark import GateCases, GateOutcome
    from ekphory_lab.training.gates import LearnedGate, OwnCalibration
    from ekphory_lab.training.memory_words import Split


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
    only: list[str] | None = None,
) -> None:
    """Fit the probabilities that hits get, and write them; no evaluation data is read.

    Fitted on scopes of 2 to 5,000 memories: documents, long messages, chats and statements. A
    search by words alone, one by meaning, and what each bundled reranker reads have a curve each.

    Args:
        only (RERANKER): Fit the curve of what this bundled reranker has read, and keep all others;
            repeatable.
    """
    from ekphory.retrieval.calibration import PROBABILITIES_FILE, write_fitted
    from ekphory_lab.training.probabilities import fit_probabilities

    place = fitted_target(target, PROBABILITIES_FILE.name)
    leave_changes_undetected()
    with show_note("searching") as note:
        file = fit_probabilities(data, on_progress=note, only=only or ())
    write_fitted(place, file)
    end = f"{place}: probabilities for {file.models['embedder']}"
    print_measured(output, {"target": place, "file": file}, file.measured, end)


def leave_changes_undetected() -> None:
    """Let no memory supersede another: hits would move when the machine has come to that."""
    os.environ[f"{PREFIX}DETECT_CHANGES"] = "0"


def print_measured(
    output: OutputOptions, content: object, measured: Mapping[str, float], end: str
) -> None:
    """Print a result, of which people are shown what was measured and a last line."""
    told = [f"{name} {value:g}" for name, value in measured.items()]
    print_result(output, content, "\n".join([*told, end]))


# `ekphory train gate`: when a reranker may be skipped.


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingOptions:
    """How the reranker is used that the gate stands before.

    Attributes:
        reranker (MODEL): bundled, a model's directory, or a hub id.
        read: How many candidates it reads.
        share: How much the first stage's order weighs beside it, 0 to 1.
    """

    reranker: str = "ekphory-rerank-tiny"
    read: int = 10
    share: float = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class GateOptions:
    """How the gate is learned, and where it is written.

    Attributes:
        keep: Share of the MAP gain that the gate has to keep.
        feature: What of the first stage's scores the gate compares; all are shown.
        seed: Draws the conversations and questions.
    """

    keep: float = 0.98
    feature: str = "best_probability"
    seed: int = 0
    target: TargetOption = None


@command
def gate(
    data: DataOption,
    asked: ReadingOptions,
    wanted: GateOptions,
    output: OutputOptions,
    check: list[Path] | None = None,
) -> None:
    """Learn when the first stage's scores leave a reranker nothing to gain, and write the gate.

    Args:
        check (PATH): A benchmark on which the learned gate is measured, and not learned;
            repeatable.
    """
    from ekphory.models.loading import load_configured_embedder, load_embedder, load_named_reranker
    from ekphory.models.reranker import model_id
    from ekphory.retrieval.calibration import write_fitted
    from ekphory_lab.evaluation.ablation import load_benchmark
    from ekphory_lab.evaluation.reranking.benchmark import GATE_FEATURES, gate_cases
    from ekphory_lab.training import gates as learning

    target = _gate_target(wanted.target, asked.reranker)
    if wanted.feature not in GATE_FEATURES:
        known = ", ".join(GATE_FEATURES)
        problem = "must be a feature of a gate"
        raise InvalidInput("feature", wanted.feature, problem, f"Give {known}")
    settings = read_settings()
    model = load_named_reranker(asked.reranker, settings)
    embedder = load_configured_embedder(settings) or load_embedder(None)
    learned_on = learning.gate_conversations(data, seed=wanted.seed)
    with step_bar() as progress:

        def cases(dataset: Dataset) -> GateCases:
            judge = learning.find_judge(dataset, model, embedder, progress)
            return gate_cases(
                dataset, judge, read=asked.read, first_stage_share=asked.share, progress=progress
            )

        gates = learning.learn_gates(cases(learned_on), keep=wanted.keep)
        chosen = next(gate for gate in gates if gate.feature == wanted.feature)
        benchmarks = [load_benchmark(path).dataset for path in check or ()]
        checked = {each.name: learning.measure_gates(gates, cases(each)) for each in benchmarks}
    # A reranker that states no revision is named without one; no search uses such a gate.
    models = {"embedder": embedder.identity.model_id, "reranker": model_id(model) or model.name}
    file = learning.gate_file(
        chosen,
        learned_on,
        models=models,
        seed=wanted.seed,
        command=_command(asked, wanted, chosen),
        checked={name: found[gates.index(chosen)] for name, found in checked.items()},
    )
    write_fitted(target, file)
    found = {"target": target, "embedder": models["embedder"], "gates": gates}
    print_result(output, {**found, "checked": checked}, _table(gates, checked))
    if not output.json:
        result_console().print(f"{target}: the gate on {chosen.feature}", soft_wrap=True)


def _gate_target(given: Path | None, reranker: str) -> Path:
    from ekphory.retrieval.calibration import GATE_FILES

    if given is None and reranker not in GATE_FILES:
        problem = f"must be given where the reranker is none of {', '.join(GATE_FILES)}"
        raise InvalidInput("target", None, problem, "Give --target FILE")
    return fitted_target(given, f"gate-{reranker}.json")


def _command(asked: ReadingOptions, wanted: GateOptions, chosen: LearnedGate) -> str:
    """Return the command that finds this gate again."""
    return (
        f"ekphory train gate --data DIR --reranker {asked.reranker} --read {asked.read} "
        f"--share {asked.share} --keep {wanted.keep} --seed {wanted.seed} "
        f"--feature {chosen.feature}"
    )


def _table(gates: Sequence[LearnedGate], checked: dict[str, list[GateOutcome]]) -> Table:
    headers = ("feature", "low", "high", "other training conversations", *checked)
    title = "rerank where low ≤ feature ≤ high; skipped / share of the MAP gain kept"
    table = Table(*headers, title=title)
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
    reranker: str,
    target: Path,
    output: OutputOptions,
    read: Annotated[
        int, typer.Option(min=1, help="How many candidates of a question it reads.")
    ] = 50,
) -> None:
    """Fit a reranker's scores to be probabilities, so that a hit's score and min_score hold.

    Name the file in EKPHORY_RERANKER_CALIBRATION, or give it to Reranker.from_pretrained.

    Args:
        reranker (--reranker MODEL): A directory, hub id or URL; a service is asked as
            EKPHORY_RERANKER_… say.
        target (--target FILE): Where to write it, with a picture beside it.
    """
    from ekphory.models import loading
    from ekphory_lab.evaluation.reranking.report import reliability_svg
    from ekphory_lab.training.gates import find_judge, fit_own_calibration, gate_conversations

    _check_target(target)
    settings = read_settings()
    model = loading.load_named_reranker(reranker, settings)
    dataset = gate_conversations(data)
    embedder = loading.load_configured_embedder(settings) or loading.load_embedder(None)
    with step_bar() as progress:
        judge = find_judge(dataset, model, embedder, progress)
        found = fit_own_calibration(dataset, judge, read=read, progress=progress)
    loading.write_calibration(target, loading.FittedCalibration(model.name, found.card))
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


def _reranker_calibration_table(name: str, found: OwnCalibration) -> Table:
    card = found.card
    title = f"{name}: P = σ({card.slope:.3f} · logit(score) + {card.intercept:.3f})"
    table = Table("precision wanted", "least probability", title=title)
    for precision, threshold in card.thresholds.items():
        table.add_row(precision, f"{threshold:.4f}")
    table.caption = f"{card.data}; error {card.measured['ece/held back']:.4f}"
    return table


# `ekphory train generate`: make memories with queries and hard negatives.


@command
def generate(
    out: Path, output: OutputOptions, count: int = 500_000, seed: int = 0, split: str = "train"
) -> None:
    """Generate queries, each with the memory that answers and seven hard negatives.

    Args:
        out (--out FILE): JSON Lines file to write.
        count: How many samples.
        seed: Other seeds give other samples.
        split: train or test: they share no wording.
    """
    from ekphory_lab.training import memories

    samples = memories.generate(cast("Split", split), seed=seed, count=count)
    with step_bar() as progress:
        report = memories.write_samples(
            samples, out, progress=lambda done: progress("samples", done, count)
        )
    told = [f"{out}: {report.samples:,} samples in {report.seconds:.1f} s"]
    for title, counts in (("answers", report.types), ("negatives", report.negatives)):
        named = ", ".join(f"{name} {number:,}" for name, number in counts.items())
        told.append(f"{title}: {named}")
    print_result(output, {"file": out, "report": report}, "\n".join(told))


# The trainings: `embedder` and `average`; those of rerankers are in `reranker_commands.py`.


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingOptions:
    """What a training reads, where it writes, and what decides the order of its data.

    Attributes:
        data (--data PATH): Folder of the training files; for an embedder also a file of `train
            generate`.
        base (--base DIR): Base weights: a sentence-transformers directory, or a reranker's.
        target (--target DIR): Where to write; a stopped run there goes on.
        seed: Else the configuration's.
        precision: float32, bfloat16 or float16; else bfloat16 where the device multiplies it.
    """

    data: Path
    base: Path
    target: Path
    seed: int | None = None
    precision: str | None = None


@command
def embedder(
    asked: TrainingOptions,
    output: OutputOptions,
    config: str = "small",
    steps: Annotated[int | None, typer.Option(help="Else the configuration's.", min=1)] = None,
    teacher: Path | None = None,
) -> None:
    """Train the embedder on questions and conversations; run it again to go on after a stop.

    Where the data are a file of `train generate`, it learns from those memories alone.

    Args:
        config: small, refined, settled, conversing, anchored, documented or remembering (384
            numbers), or base (768).
        teacher (DIR): Exported model to follow; else the bundled one.
    """
    require_torch()
    from ekphory.models.loading import load_embedder
    from ekphory_lab.training.embedder_config import CONFIGS
    from ekphory_lab.training.embedder_run import train_embedder
    from ekphory_lab.training.run_files import RunPlaces, config_named
    from ekphory_lab.training.sources import load_training_data, samples_alone

    changes = {"seed": asked.seed, "steps": steps, "precision": asked.precision}
    chosen = config_named(CONFIGS, config, **changes)
    if not asked.data.exists():
        remedy = "Give the folder of the training files, or a file of `train generate`"
        raise InvalidInput("data", str(asked.data), "there is no such file or folder", remedy)
    if asked.data.is_file():
        chosen, training = chosen.with_samples_alone(), samples_alone(asked.data)
    else:
        training = load_training_data(asked.data, list(chosen.mix))
    followed = load_embedder(teacher)
    named = {"teacher": str(followed.identity)}
    with step_bar() as progress:
        model = train_embedder(
            chosen,
            replace(training, hashes={**training.hashes, **named}),
            followed,
            places=RunPlaces(base=asked.base, target=asked.target),
            progress=lambda _, done, total: progress("training", done, total),
        )
    _write_card(model)
    print_result(output, {"model": model, "steps": chosen.steps}, f"{model}: {chosen.steps} steps")


def _write_card(directory: Path) -> None:
    """Write the card of an embedder; results it has none, since nothing was measured yet."""
    from ekphory.models.agent_embedder import write_card
    from ekphory.models.loading import load_local_embedder

    write_card(load_local_embedder(directory), directory)


@command
def average(base: Path, trained: Path, share: float, target: Path, output: OutputOptions) -> None:
    """Average a trained embedder's encoder with its base: less forgotten, most of it learned.

    Args:
        base (--base DIR): Where the training started.
        trained (--trained DIR): What it ended with.
        share (--share): Share of the trained weights, from 0 to 1.
        target (--target DIR): Where to write the average.
    """
    require_torch()
    from ekphory_lab.training.encoder import averaged, load_agent_encoder, save_agent_encoder

    mixed = averaged(load_agent_encoder(base), load_agent_encoder(trained), share=share)
    save_agent_encoder(mixed, target)
    _write_card(target)
    print_result(output, {"model": target, "share": share}, f"{target}: {share:g} trained")


def require_torch() -> None:
    """Refuse a command that trains where torch is missing.

    Raises:
        MissingExtra: It is.
    """
    for name in ("torch", "transformers", "safetensors"):
        if find_spec(name) is None:
            raise MissingExtra("torch", "Training")


# What was trained, exported and back: `export`, `export-reranker` and `unpack`.


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOptions:
    """What is exported, where to, and what the model's record says and its weights do not.

    Attributes:
        source (--source DIR): Directory of the trained model.
        target (--target DIR): Directory to write.
        name: The model's name; else that of SOURCE.
        licence: SPDX identifier of the weights' licence.
        origin: Where the weights come from.
    """

    source: Path
    target: Path
    name: str | None = None
    licence: str = ""
    origin: str = ""

    def description(self, *, query_prompt: str = "", passage_prompt: str = "") -> ModelDescription:
        """Return it as the exports take it."""
        from ekphory.models.onnx_export import ModelDescription

        return ModelDescription(
            name=self.name or self.source.resolve().name,
            query_prompt=query_prompt,
            passage_prompt=passage_prompt,
            licence=self.licence,
            source=self.origin,
        )


@command
def export(
    asked: RecordOptions,
    output: OutputOptions,
    query_prompt: str = "",
    passage_prompt: str = "",
    calibration: list[Path] | None = None,
) -> None:
    """Export a sentence-transformers model as an ONNX embedder that needs no torch.

    With calibration texts it is quantised to 8-bit integers, without them it stays in float. An
    encoder of another build than BERT's, such as ModernBERT, is exported in float, with torch.

    Args:
        query_prompt: What stands before every query.
        passage_prompt: What stands before every memory.
        calibration (PATH): JSON Lines file of neutral texts, or a folder of conversations; never
            evaluation data; repeatable.
    """
    from ekphory_lab.training.static_int8 import export_float_embedder, export_int8_embedder
    from ekphory_lab.training.texts import read_calibration

    described = asked.description(query_prompt=query_prompt, passage_prompt=passage_prompt)
    with show_note("exporting"):
        if calibration:
            texts = read_calibration(calibration)
            record = export_int8_embedder(
                asked.source, asked.target, description=described, calibration=texts
            )
        else:
            record = export_float_embedder(asked.source, asked.target, description=described)
    _write_card(asked.target)
    _print_record(output, asked.target, record)


@command
def export_reranker(asked: RecordOptions, output: OutputOptions, calibration: list[Path]) -> None:
    """Export a trained reranker as an ONNX model of 8-bit integers, calibrated, without torch.

    Args:
        calibration (--calibration FILE): held_back.jsonl.gz of a run, never evaluation data;
            repeatable.
    """
    from ekphory_lab.training.reranker import export

    examples = export.read_calibration_examples(calibration)
    with show_note("exporting"):
        record = export.export_reranker(
            asked.source, asked.target, description=asked.description(), calibration=examples
        )
    _print_record(output, asked.target, record)


def _print_record(
    output: OutputOptions, target: Path, record: ModelRecord | RerankerRecord
) -> None:
    content = {"target": target, "record": record}
    print_result(output, content, f"{target}: {record.name}@{record.revision}")


@command
def unpack(target: Path, output: OutputOptions, source: str = "bundled") -> None:
    """Turn an exported 8-bit model back into weights that training can start from.

    Args:
        target (--target DIR): Directory to write.
        source (MODEL): Directory of an exported embedder or reranker, a bundled reranker's name, or
            bundled for the embedder.
    """
    from ekphory.models.model_record import is_reranker
    from ekphory.models.onnx_export import unpack_embedder
    from ekphory_lab.training.reranker.export import unpack_reranker

    directory = _model_directory(source)
    if is_reranker(directory):
        unpack_reranker(directory, target)
    else:
        unpack_embedder(directory, target)
    print_result(output, {"target": target}, f"{target}: unpacked from {source}")


def _model_directory(source: str) -> Path:
    from ekphory.models.onnx_models import load_bundled
    from ekphory.models.reranker import BUNDLED_RERANKERS, bundled_directory

    if source in BUNDLED_RERANKERS:
        return bundled_directory(source)
    directory = load_bundled().directory if source == "bundled" else Path(source)
    if not directory.is_dir():
        known = ", ".join(("bundled", *BUNDLED_RERANKERS))
        raise InvalidInput("source", source, "no such directory", f"Give one, or {known}.")
    return directory


# `ekphory train recipe`: all steps to a bundled model.


@command
def recipe(
    name: str, data: DataOption, target: Path, output: OutputOptions, *, dry_run: bool = False
) -> None:
    """Make a bundled model again from base weights, step by step; run it again to go on.

    Args:
        name: A bundled model such as ekphory-small or ekphory-change-reader (a file of
            `lab/recipes`, without its ending), or a file of your own.
        target (--output DIR): Gets every step; finished ones stay.
        dry_run: Only show the plan.
    """
    from ekphory_lab.training.recipes import read_recipe, run_recipe, unfinished_steps
    from ekphory_lab.training.texts import CONVERSATIONS

    found = read_recipe(name)
    folders = {"base": Path("BASE"), "data": data, "conversations": CONVERSATIONS, "output": target}
    commands = {each.name: shlex.join(each.arguments(folders)) for each in found.steps}
    unfinished = {step.name for step in unfinished_steps(found, target)}
    if not dry_run:
        run_recipe(
            found,
            data=data,
            output=target,
            on_step=lambda step: message_console().print(f"{step.name}: {commands[step.name]}"),
        )
        unfinished = set()
    if output.json:
        steps = [{**asdict(each), "finished": each.name not in unfinished} for each in found.steps]
        print_json({"model": found.model, "made": found.made, "output": target, "steps": steps})
        return
    for each in found.steps:
        hours = each.hours if isinstance(each.hours, str) else f"{each.hours:g} h"
        state = "to do" if each.name in unfinished else "finished"
        result_console().print(
            f"{each.name} ({state}; {hours}; {each.distance}): ekphory train {commands[each.name]}",
            soft_wrap=True,
            markup=False,
        )
