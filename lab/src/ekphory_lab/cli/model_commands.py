"""`ekphory train`: the commands that train and export models, and the recipes of them."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

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
from ekphory.errors import InvalidInput, MissingExtra
from ekphory_lab.cli.fit_commands import DataOption

if TYPE_CHECKING:
    from ekphory.models.model_record import ModelRecord, RerankerRecord
    from ekphory.models.onnx_export import ModelDescription
    from ekphory_lab.training.reranker.examples import Development
    from ekphory_lab.training.reranker.teachers import PreferenceTeacher


# The trainings: `embedder`, `average` and `reranker`.

CHAT = "chat"
_CHAT_REMEDY = "Set EKPHORY_CHAT_URL and EKPHORY_CHAT_MODEL."


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingOptions:
    """What a training reads, where it writes, and what decides the order of its data."""

    data: DataOption
    base: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="Base weights: a sentence-transformers directory, or a reranker's."
        ),
    ]
    target: Annotated[
        Path, typer.Option(metavar="DIR", help="Where to write; a stopped run there goes on.")
    ]
    seed: Annotated[int | None, typer.Option(help="Else the configuration's.")] = None


@command
def embedder(
    asked: TrainingOptions,
    output: OutputOptions,
    config: Annotated[
        str,
        typer.Option(
            help="small, refined, settled, conversing, anchored, documented or remembering (384 "
            "numbers), or base (768)."
        ),
    ] = "small",
    steps: Annotated[int | None, typer.Option(help="Else the configuration's.", min=1)] = None,
    teacher: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Exported model to follow; else the bundled one."),
    ] = None,
) -> None:
    """Train the embedder on questions and conversations; run it again to go on after a stop."""
    _require_torch()
    from ekphory.models.loading import load_embedder
    from ekphory_lab.training.embedder_config import CONFIGS
    from ekphory_lab.training.embedder_run import train_embedder
    from ekphory_lab.training.run_files import RunPlaces, config_named
    from ekphory_lab.training.sources import load_training_data

    chosen = config_named(CONFIGS, config, seed=asked.seed, steps=steps)
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
    print_result(output, {"model": model, "steps": chosen.steps}, f"{model}: {chosen.steps} steps")


@command
def average(
    base: Annotated[Path, typer.Option(metavar="DIR", help="Where the training started.")],
    trained: Annotated[Path, typer.Option(metavar="DIR", help="What it ended with.")],
    share: Annotated[float, typer.Option(help="Share of the trained weights, from 0 to 1.")],
    target: Annotated[Path, typer.Option(metavar="DIR", help="Where to write the average.")],
    output: OutputOptions,
) -> None:
    """Average a trained embedder's encoder with its base: less forgotten, most of it learned."""
    _require_torch()
    from ekphory_lab.training.encoder import averaged, load_agent_encoder, save_agent_encoder

    mixed = averaged(load_agent_encoder(base), load_agent_encoder(trained), share=share)
    save_agent_encoder(mixed, target)
    print_result(output, {"model": target, "share": share}, f"{target}: {share:g} trained")


def _require_torch() -> None:
    for name in ("torch", "transformers", "safetensors"):
        if find_spec(name) is None:
            raise MissingExtra("torch", "Training")


@command
def reranker(
    asked: TrainingOptions,
    output: OutputOptions,
    config: Annotated[
        str,
        typer.Option(
            help="small, tiny (three layers), refined (goes on), following (goes on and follows "
            "a larger one), 0.6b or 4b (LoRA)."
        ),
    ] = "small",
    questions: Annotated[
        int | None, typer.Option(help="How many to train on; else the configuration's.", min=1)
    ] = None,
    teacher: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL",
            help="A further teacher: a reranker's directory or URL, or `chat` for the language "
            "model that is configured; repeatable.",
        ),
    ] = None,
    followed: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A larger reranker's weights, whose scores are followed."),
    ] = None,
) -> None:
    """Train a reranker in two stages; run it again to go on after a stop."""
    _require_torch()
    from ekphory.models.loading import load_embedder
    from ekphory_lab.training.reranker.config import CONFIGS
    from ekphory_lab.training.reranker.preparation import ExampleMaking
    from ekphory_lab.training.reranker.run import Listener, train_reranker
    from ekphory_lab.training.run_files import RunPlaces, config_named

    chosen = config_named(CONFIGS, config, seed=asked.seed, questions=questions)
    first_stage = load_embedder(None)
    making = ExampleMaking(
        folder=asked.data,
        base=first_stage,
        base_name=str(first_stage.identity),
        further=[_teacher(name) for name in teacher or ()],
    )
    with step_bar() as progress:
        model = train_reranker(
            chosen,
            making,
            places=RunPlaces(base=asked.base, target=asked.target, followed=followed),
            listener=Listener(progress=progress, report=_print_development),
        )
    print_result(output, {"model": model, "steps": chosen.steps}, f"{model}: {chosen.steps} steps")


def _teacher(name: str) -> PreferenceTeacher:
    from ekphory.config import read_settings
    from ekphory.models.loading import load_configured_chat, load_named_reranker
    from ekphory_lab.training.reranker.teachers import ChatTeacher, reranking_teacher

    settings = read_settings()
    if name != CHAT:
        return reranking_teacher(load_named_reranker(name, settings))
    chat = load_configured_chat(settings)
    if chat is None:
        raise InvalidInput("teacher", name, "no language model is configured", _CHAT_REMEDY)
    return ChatTeacher(chat)


def _print_development(found: Development) -> None:
    ranks = "  ".join(f"{source} {rank:.3f}" for source, rank in found.ranks.items())
    context = "" if found.with_context is None else f"  with context {found.with_context:.3f}"
    message_console().print(
        f"{'first stage' if found.step < 0 else f'step {found.step}'}: MRR {ranks}{context}",
        soft_wrap=True,
        markup=False,
        highlight=False,
    )


# What was trained, exported and back: `export`, `export-reranker` and `unpack`.


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOptions:
    """What is exported, where to, and what the model's record says and its weights do not."""

    source: Annotated[Path, typer.Option(metavar="DIR", help="Directory of the trained model.")]
    target: Annotated[Path, typer.Option(metavar="DIR", help="Directory to write.")]
    name: Annotated[str | None, typer.Option(help="The model's name; else that of SOURCE.")] = None
    licence: Annotated[str, typer.Option(help="SPDX identifier of the weights' licence.")] = ""
    origin: Annotated[str, typer.Option(help="Where the weights come from.")] = ""

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
    query_prompt: Annotated[str, typer.Option(help="What stands before every query.")] = "",
    passage_prompt: Annotated[str, typer.Option(help="What stands before every memory.")] = "",
    calibration: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH",
            help="JSON Lines file of neutral texts, or a folder of conversations; never evaluation "
            "data; repeatable.",
        ),
    ] = None,
) -> None:
    """Export a sentence-transformers model as an ONNX embedder that needs no torch.

    With calibration texts it is quantised to 8-bit integers, without them it stays in float.
    """
    from ekphory.models.onnx_export import export_embedder
    from ekphory_lab.training.static_int8 import export_int8_embedder
    from ekphory_lab.training.texts import read_calibration

    described = asked.description(query_prompt=query_prompt, passage_prompt=passage_prompt)
    with show_note("exporting"):
        if calibration:
            texts = read_calibration(calibration)
            record = export_int8_embedder(
                asked.source, asked.target, description=described, calibration=texts
            )
        else:
            record = export_embedder(asked.source, asked.target, description=described)
    _print_record(output, asked.target, record)


@command
def export_reranker(
    asked: RecordOptions,
    output: OutputOptions,
    calibration: Annotated[
        list[Path],
        typer.Option(
            metavar="FILE", help="held_back.jsonl.gz of a run, never evaluation data; repeatable."
        ),
    ],
) -> None:
    """Export a trained reranker as an ONNX model of 8-bit integers, calibrated, without torch."""
    from ekphory_lab.training.reranker.export import export_reranker as write
    from ekphory_lab.training.reranker.export import read_calibration_examples

    examples = read_calibration_examples(calibration)
    with show_note("exporting"):
        record = write(
            asked.source, asked.target, description=asked.description(), calibration=examples
        )
    _print_record(output, asked.target, record)


def _print_record(
    output: OutputOptions, target: Path, record: ModelRecord | RerankerRecord
) -> None:
    content = {"target": target, "record": record}
    print_result(output, content, f"{target}: {record.name}@{record.revision}")


@command
def unpack(
    target: Annotated[Path, typer.Option(metavar="DIR", help="Directory to write.")],
    output: OutputOptions,
    source: Annotated[
        str,
        typer.Option(
            metavar="MODEL",
            help="Directory of an exported embedder or reranker, a bundled reranker's name, or "
            "bundled for the embedder.",
        ),
    ] = "bundled",
) -> None:
    """Turn an exported 8-bit model back into weights that training can start from."""
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
    from ekphory.models.onnx_embedder import load_bundled
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
    name: Annotated[
        str,
        typer.Argument(help="ekphory-small, ekphory-rerank-small, ekphory-rerank-tiny, or a file."),
    ],
    data: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the training files.")],
    target: Annotated[
        Path,
        typer.Option("--output", metavar="DIR", help="Gets every step; finished ones stay."),
    ],
    output: OutputOptions,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the plan.")] = False,
) -> None:
    """Make a bundled model again from base weights, step by step; run it again to go on."""
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
