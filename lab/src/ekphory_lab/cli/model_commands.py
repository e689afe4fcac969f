"""`ekphory train`: the commands that train and export models, and the recipes of them."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ekphory.cli.command import command, message_console, result_console, show_note, step_bar
from ekphory.cli.options import OutputOptions
from ekphory.cli.output import print_json
from ekphory.errors import InvalidInput, MissingExtra
from ekphory_lab.cli.fit_commands import print_result

if TYPE_CHECKING:
    from ekphory_lab.training.reranker.config import RerankerConfig
    from ekphory_lab.training.reranker.examples import Development
    from ekphory_lab.training.reranker.teachers import PreferenceTeacher


# The embedder: `embedder`, `components` and `average`.


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What changes a configuration."""

    config: Annotated[
        str,
        typer.Option(
            help="small, refined, settled, conversing, anchored, documented or remembering (384 "
            "numbers), or base (768)."
        ),
    ] = "small"
    steps: Annotated[int | None, typer.Option(help="Else the configuration's.", min=1)] = None
    seed: Annotated[int | None, typer.Option(help="Else the configuration's.")] = None


@command
def embedder(
    data: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the training files.")],
    base: Annotated[
        Path, typer.Option(metavar="DIR", help="Base weights, a sentence-transformers directory.")
    ],
    target: Annotated[
        Path, typer.Option(metavar="DIR", help="Where to write; a stopped run there goes on.")
    ],
    chosen: RunOptions,
    output: OutputOptions,
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

    config = config_named(CONFIGS, chosen.config)
    config = replace(
        config,
        steps=chosen.steps or config.steps,
        seed=config.seed if chosen.seed is None else chosen.seed,
    )
    training = load_training_data(data, list(config.mix))
    followed = load_embedder(teacher)
    named = {"teacher": str(followed.identity)}
    training = replace(training, hashes={**training.hashes, **named})
    with step_bar() as progress:
        model = train_embedder(
            config,
            training,
            followed,
            places=RunPlaces(base=base, target=target),
            progress=lambda _, done, total: progress("training", done, total),
        )
    print_result(output, {"model": model, "steps": config.steps}, f"{model}: {config.steps} steps")


@command
def components(
    model: Annotated[Path, typer.Option(metavar="DIR", help="A trained embedder's directory.")],
    target: Annotated[Path, typer.Option(metavar="DIR", help="Where to write the whole.")],
    output: OutputOptions,
    count: Annotated[int, typer.Option(help="How many generated samples.", min=1)] = 4000,
    seed: Annotated[int, typer.Option(help="Of the samples and their order.")] = 20,
) -> None:
    """Train age, type and importance of a trained embedder; its encoder stays as it is."""
    _require_torch()
    from ekphory_lab.training.component_training import ComponentConfig, train_components
    from ekphory_lab.training.encoder import load_agent_encoder, save_agent_encoder
    from ekphory_lab.training.memory_generator import generate

    encoder = load_agent_encoder(model)
    samples = list(generate("train", seed=seed, count=count))
    with step_bar() as progress:
        report = train_components(
            encoder, samples, config=ComponentConfig(seed=seed), progress=progress
        )
    save_agent_encoder(encoder, target)
    if output.json:
        print_json({"model": target, "report": report})
        return
    result_console().print(
        f"{target}: the answer comes first for {report.first_with:.1%} of the queries, by content "
        f"alone for {report.first_without:.1%}; types {report.type_accuracy:.1%}, importance off "
        f"by {report.importance_error:.3f}",
        soft_wrap=True,
    )


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


# The rerankers: `reranker` and `export-reranker`.

CHAT = "chat"
_CHAT_REMEDY = "Set EKPHORY_CHAT_URL and EKPHORY_CHAT_MODEL."


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankRunOptions:
    """What changes a configuration."""

    config: Annotated[
        str,
        typer.Option(
            help="small, tiny (three layers), refined (goes on), following (goes on and follows "
            "a larger one), 0.6b or 4b (LoRA)."
        ),
    ] = "small"
    questions: Annotated[
        int | None, typer.Option(help="How many to train on; else the configuration's.", min=1)
    ] = None
    seed: Annotated[int | None, typer.Option(help="Else the configuration's.")] = None

    def changed(self) -> RerankerConfig:
        """Return the configuration as it is wanted."""
        from ekphory_lab.training.reranker.config import CONFIGS
        from ekphory_lab.training.run_files import config_named

        config = config_named(CONFIGS, self.config)
        return replace(
            config,
            questions=self.questions or config.questions,
            seed=config.seed if self.seed is None else self.seed,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherOptions:
    """Whom a run learns from besides the labels."""

    teacher: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL",
            help="A further teacher: a reranker's directory or URL, or `chat` for the language "
            "model that is configured; repeatable.",
        ),
    ] = None
    followed: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A larger reranker's weights, whose scores are followed."),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankRecordOptions:
    """What the exported model's record says and its weights do not."""

    name: Annotated[str | None, typer.Option(help="The model's name; else that of SOURCE.")] = None
    licence: Annotated[str, typer.Option(help="SPDX identifier of the weights' licence.")] = ""
    origin: Annotated[str, typer.Option(help="Where the weights come from.")] = ""


@command
def reranker(
    data: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the training files.")],
    base: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="Base weights: a sentence-transformers directory, or a reranker's."
        ),
    ],
    target: Annotated[
        Path, typer.Option(metavar="DIR", help="Where to write; a stopped run there goes on.")
    ],
    chosen: RerankRunOptions,
    teachers: TeacherOptions,
    output: OutputOptions,
) -> None:
    """Train a reranker in two stages; run it again to go on after a stop."""
    _require_torch()
    from ekphory.models.loading import load_embedder
    from ekphory_lab.training.reranker.preparation import ExampleMaking
    from ekphory_lab.training.reranker.run import Listener, train_reranker
    from ekphory_lab.training.run_files import RunPlaces

    config = chosen.changed()
    embedder = load_embedder(None)
    making = ExampleMaking(
        folder=data,
        base=embedder,
        base_name=str(embedder.identity),
        further=[_teacher(name) for name in teachers.teacher or ()],
    )
    with step_bar() as progress:
        model = train_reranker(
            config,
            making,
            places=RunPlaces(base=base, target=target, followed=teachers.followed),
            listener=Listener(progress=progress, report=_print_development),
        )
    print_result(output, {"model": model, "steps": config.steps}, f"{model}: {config.steps} steps")


@command
def export_reranker(
    source: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder `model` of a reranker's run.")
    ],
    target: Annotated[Path, typer.Option(metavar="DIR", help="Directory to write.")],
    calibration: Annotated[
        list[Path],
        typer.Option(
            metavar="FILE", help="held_back.jsonl.gz of a run, never evaluation data; repeatable."
        ),
    ],
    described: RerankRecordOptions,
    output: OutputOptions,
) -> None:
    """Export a trained reranker as an ONNX model of 8-bit integers, calibrated, without torch."""
    from ekphory.models.onnx_export import ModelDescription
    from ekphory_lab.training.reranker.export import export_reranker as write
    from ekphory_lab.training.reranker.export import read_calibration_examples

    description = ModelDescription(
        name=described.name or source.resolve().name,
        licence=described.licence,
        source=described.origin,
    )
    with show_note("exporting"):
        record = write(
            source,
            target,
            description=description,
            calibration=read_calibration_examples(calibration),
        )
    print_result(
        output, {"target": target, "record": record}, f"{target}: {record.name}@{record.revision}"
    )


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
