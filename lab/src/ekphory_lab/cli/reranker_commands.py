"""`ekphory train reranker`, and the commands that compare how a reranker is taught."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from ekphory.cli.command import command, message_console, print_result, result_console, step_bar
from ekphory.cli.options import OutputOptions
from ekphory.config import read_settings
from ekphory.errors import InvalidInput
from ekphory_lab.cli.train_commands import DataOption, TrainingOptions, require_torch

if TYPE_CHECKING:
    from ekphory_lab.evaluation.metrics import PairedTest
    from ekphory_lab.training.reranker.config import RerankerConfig
    from ekphory_lab.training.reranker.examples import Development
    from ekphory_lab.training.reranker.preparation import ExampleMaking
    from ekphory_lab.training.reranker.teachers import LabelledExamples, PreferenceTeacher

CHAT = "chat"
_CHAT_REMEDY = "Set EKPHORY_CHAT_URL and EKPHORY_CHAT_MODEL."
ANSWERS_FILE = "chat_answers.jsonl"

QuestionsOption = Annotated[
    int | None, typer.Option(help="How many to train on; else the configuration's.", min=1)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigOptions:
    """Which configuration a training has.

    Attributes:
        config: small, tiny (three layers), refined (goes on), following (goes on and follows a
            larger one), teacher (to be followed), exchanging (follows it), exiting (likewise, with
            an exit), 0.6b or 4b (LoRA), staged (soft labels, then InfoNCE), or smoke (a minute).
    """

    config: str = "small"


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherOptions:
    """Who teaches besides the gold labels, BM25 and the embedder.

    Attributes:
        teacher (MODEL): A further teacher: a reranker's directory or URL, or `chat` for the
            language model that is configured; repeatable.
        prompt (FILE): What the language model is told before each pair.
    """

    teacher: list[str] | None = None
    prompt: Path | None = None


@command
def reranker(
    asked: TrainingOptions,
    teachers: TeacherOptions,
    output: OutputOptions,
    named: ConfigOptions,
    questions: QuestionsOption = None,
    followed: Path | None = None,
) -> None:
    """Train a reranker in two stages; run it again to go on after a stop.

    Their losses are taken together, or with `--config staged` one after the other. What a language
    model answers is kept beside the run.

    Args:
        followed (DIR): A larger reranker's weights, whose scores are followed.
    """
    require_torch()
    from ekphory_lab.training.reranker.run import train_reranker
    from ekphory_lab.training.run_files import RunPlaces

    chosen = _config(asked, named.config, questions)
    making = _making(asked.data, teachers, asked.target / ANSWERS_FILE)
    with step_bar() as progress:
        model = train_reranker(
            chosen,
            making,
            places=RunPlaces(base=asked.base, target=asked.target, followed=followed),
            progress=progress,
            report=_print_development,
        )
    print_result(output, {"model": model, "steps": chosen.steps}, f"{model}: {chosen.steps} steps")


@command
def compare_stages(
    asked: TrainingOptions,
    output: OutputOptions,
    named: ConfigOptions,
    questions: QuestionsOption = None,
    held_back: Annotated[
        int | None, typer.Option(help="How many questions are measured.", min=1)
    ] = None,
) -> None:
    """Train by the joint loss and by two stages in sequence, on the same examples; compare both."""
    require_torch()
    from ekphory_lab.training.reranker import run
    from ekphory_lab.training.run_files import RunPlaces

    chosen = _config(asked, named.config, questions)
    if held_back is not None:
        kept = replace(chosen.held_back, questions=held_back, measured=held_back)
        chosen = replace(chosen, held_back=kept)
    with step_bar() as progress:
        found = run.compare_stages(
            chosen,
            _making(asked.data, TeacherOptions(), asked.target / ANSWERS_FILE),
            places=RunPlaces(base=asked.base, target=asked.target),
            progress=progress,
            report=_print_development,
        )
    difference = run.compare_sequence(found)
    content = {"steps": chosen.steps, "config": chosen.name, "measured": found}
    content["sequence_against_joint"] = difference
    print_result(output, content, _stages_table(found, chosen, difference))


def _stages_table(
    found: Mapping[str, Development], config: RerankerConfig, difference: PairedTest | None
) -> Table:
    from ekphory_lab.evaluation.tables import format_test

    measured = config.held_back.measured
    sources = list(next(iter(found.values())).ranks)
    title = f"MRR on {measured} questions held back; {config.steps} steps"
    said = None if difference is None else f"sequence against joint: {format_test(difference)}"
    table = Table("", *sources, "with context", "log loss", title=title, caption=said)
    for name, each in found.items():
        ranks = [f"{each.ranks[source]:.3f}" for source in sources]
        table.add_row(name, *ranks, _shown(each.with_context), _shown(each.log_loss))
    return table


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


@command
def compare_teachers(
    data: DataOption,
    teachers: TeacherOptions,
    answers: Path,
    output: OutputOptions,
    named: ConfigOptions,
    questions: Annotated[int, typer.Option(help="How many the teachers are asked.", min=1)] = 20,
) -> None:
    """Ask several teachers about the same questions: how far they agree, and what they cost.

    Args:
        answers (--answers FILE): Keeps what a language model answers.
    """
    from ekphory_lab.training.reranker.config import CONFIGS
    from ekphory_lab.training.reranker.preparation import example_report, labelled_examples
    from ekphory_lab.training.run_files import config_named

    chosen = config_named(CONFIGS, named.config, questions=questions)
    making = _making(data, teachers, answers)
    with step_bar() as progress:
        labelled = labelled_examples(chosen, making, progress=progress)
    costs = _costs(making.further, questions)
    print_result(output, {**example_report(labelled), "costs": costs}, _agreement_table(labelled))
    if not output.json:
        for cost in costs:
            numbers = {name: value for name, value in cost.items() if isinstance(value, int)}
            told = ", ".join(f"{name} {value:,}" for name, value in numbers.items())
            result_console().print(f"{cost['teacher']}: {told}", soft_wrap=True)


def _costs(teachers: Sequence[PreferenceTeacher], questions: int) -> list[dict[str, Any]]:
    """Return what each language model was asked, and the tokens that its service named."""
    from ekphory_lab.training.reranker.teachers import ChatTeacher, KeptAnswers

    costs = []
    for each in teachers:
        if isinstance(each, ChatTeacher) and isinstance(each.chat, KeptAnswers):
            usage = each.chat.usage
            tokens = usage.prompt_tokens + usage.completion_tokens
            costs.append(
                {
                    "teacher": each.name,
                    "prompt": each.instruction,
                    "answers": usage.answers,
                    "kept from before": each.chat.kept,
                    "prompt tokens": usage.prompt_tokens,
                    "completion tokens": usage.completion_tokens,
                    "tokens per question": round(tokens / questions),
                }
            )
    return costs


def _agreement_table(labelled: LabelledExamples) -> Table:
    levels = ", ".join(f"{level}: {count}" for level, count in labelled.levels.items())
    headers = ("teacher", "teacher", "Kendall's tau-b", "questions", "Cohen's kappa")
    title = f"{len(labelled.examples)} questions; candidates by level {levels}"
    table = Table(*headers, title=title)
    for each in labelled.agreements:
        tau, kappa = _shown(each.kendall), _shown(each.cohen)
        table.add_row(each.first, each.second, tau, str(each.questions), kappa)
    return table


def _config(asked: TrainingOptions, name: str, questions: int | None) -> RerankerConfig:
    from ekphory_lab.training.reranker.config import CONFIGS
    from ekphory_lab.training.run_files import config_named

    changes = {"seed": asked.seed, "questions": questions, "precision": asked.precision}
    return config_named(CONFIGS, name, **changes)


def _making(data: Path, teachers: TeacherOptions, answers: Path) -> ExampleMaking:
    from ekphory.models.loading import load_embedder
    from ekphory_lab.training.reranker.preparation import ExampleMaking

    first_stage = load_embedder(None)
    prompt = None if teachers.prompt is None else teachers.prompt.read_text(encoding="utf-8")
    return ExampleMaking(
        folder=data,
        base=first_stage,
        base_name=str(first_stage.identity),
        further=[_teacher(name, prompt, answers) for name in teachers.teacher or ()],
    )


def _teacher(name: str, prompt: str | None, answers: Path) -> PreferenceTeacher:
    from ekphory.models.loading import load_configured_chat, load_named_reranker
    from ekphory_lab.training.reranker import teachers

    settings = read_settings()
    if name != CHAT:
        return teachers.reranking_teacher(load_named_reranker(name, settings))
    chat = load_configured_chat(settings)
    if chat is None:
        raise InvalidInput("teacher", name, "no language model is configured", _CHAT_REMEDY)
    answers.parent.mkdir(parents=True, exist_ok=True)
    kept = teachers.KeptAnswers(chat, answers)
    return teachers.ChatTeacher(kept, prompt or teachers.INSTRUCTION)


def _print_development(found: Development) -> None:
    ranks = "  ".join(f"{source} {rank:.3f}" for source, rank in found.ranks.items())
    context = "" if found.with_context is None else f"  with context {found.with_context:.3f}"
    message_console().print(
        f"{'first stage' if found.step < 0 else f'step {found.step}'}: MRR {ranks}{context}",
        soft_wrap=True,
        markup=False,
        highlight=False,
    )
