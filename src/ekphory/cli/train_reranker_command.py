"""`ekphory train reranker` and `ekphory train export-reranker`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ekphory.cli.command import command
from ekphory.cli.consoles import message_console, result_console
from ekphory.cli.json_output import print_json
from ekphory.cli.options import OutputOptions
from ekphory.cli.progress import running_note, step_bar
from ekphory.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from ekphory.training.reranker.development import Development
    from ekphory.training.reranker.preference_teachers import PreferenceTeacher
    from ekphory.training.reranker.reranker_config import RerankerConfig

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
        """Give the configuration as it is wanted."""
        from ekphory.training.reranker.reranker_config import config_named

        config = config_named(self.config)
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
    from ekphory.training.reranker.preparation import ExampleMaking
    from ekphory.training.reranker.reranker_run import (
        Listener,
        RerankRunPlaces,
        train_reranker,
    )

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
            places=RerankRunPlaces(base=base, target=target, followed=teachers.followed),
            listener=Listener(progress=progress, report=_print_development),
        )
    if output.json:
        print_json({"model": model, "steps": config.steps})
    else:
        result_console().print(f"{model}: {config.steps} steps", soft_wrap=True)


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
    from ekphory.training.reranker.export_reranker import (
        RerankerDescription,
        read_calibration_examples,
    )
    from ekphory.training.reranker.export_reranker import export_reranker as write

    description = RerankerDescription(
        name=described.name or source.resolve().name,
        licence=described.licence,
        source=described.origin,
    )
    with running_note("exporting"):
        record = write(
            source,
            target,
            description=description,
            calibration=read_calibration_examples(calibration),
        )
    if output.json:
        print_json({"target": target, "record": record})
    else:
        result_console().print(f"{target}: {record.name}@{record.revision}", soft_wrap=True)


def _teacher(name: str) -> PreferenceTeacher:
    from ekphory.config import read_settings
    from ekphory.models.configured import configured_chat, named_reranker
    from ekphory.training.reranker.chat_teacher import ChatTeacher
    from ekphory.training.reranker.preference_teachers import reranking_teacher

    settings = read_settings()
    if name != CHAT:
        return reranking_teacher(named_reranker(name, settings))
    chat = configured_chat(settings)
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


def _require_torch() -> None:
    for name in ("torch", "transformers", "safetensors"):
        if find_spec(name) is None:
            raise MissingExtra("torch", "Training")
    if find_spec("bm25s") is None:
        raise MissingExtra("eval", "Training")
