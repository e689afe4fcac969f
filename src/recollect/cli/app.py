"""The `recollect` command: every command by name, with an example."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from recollect import __version__
from recollect.cli.ablation_command import ablation
from recollect.cli.add_command import add
from recollect.cli.agentmem_command import agentmem
from recollect.cli.bench_command import bench
from recollect.cli.change_commands import forget, update
from recollect.cli.consoles import make_unprintable_harmless, result_console
from recollect.cli.cues_command import cues
from recollect.cli.demo_command import demo
from recollect.cli.doctor_command import doctor
from recollect.cli.eval_commands import beir, conversation, locomo, multihop
from recollect.cli.generate_command import generate
from recollect.cli.import_command import import_records
from recollect.cli.injection_command import injection
from recollect.cli.option_groups import Function
from recollect.cli.pipeline_command import list_presets
from recollect.cli.pipeline_command import show as show_pipeline
from recollect.cli.read_commands import get, history, list_memories
from recollect.cli.search_command import search
from recollect.cli.train_commands import calibration, export
from recollect.cli.train_embedder_command import components, embedder


@dataclass(frozen=True, slots=True)
class Entry:
    """One command of the command line.

    Attributes:
        name: What a user types after `recollect`, or after the group's name.
        function: What runs.
        panel: The heading under which the help lists it.
        example: A whole command line.
    """

    name: str
    function: Function
    panel: str
    example: str


_START, _REMEMBER, _FIND, _CARE, _MEASURE = (
    "Start here",
    "Remember",
    "Find",
    "Care",
    "Measure and train",
)

COMMANDS = (
    Entry("demo", demo, _START, "recollect demo"),
    Entry(
        "add",
        add,
        _REMEMBER,
        'recollect add "I prefer Python over JavaScript" --producer user --type semantic',
    ),
    Entry("import", import_records, _REMEMBER, "recollect import chats.jsonl --project home"),
    Entry("update", update, _REMEMBER, 'recollect update note-7 --text "The meeting is at ten"'),
    Entry("forget", forget, _REMEMBER, "recollect forget note-7 --purge"),
    Entry(
        "search",
        search,
        _FIND,
        'recollect search "what language does the user like?" --k 5 --explain',
    ),
    Entry("list", list_memories, _FIND, "recollect list --filter \"producer = 'user'\" --limit 20"),
    Entry("get", get, _FIND, "recollect get note-7 --json"),
    Entry("history", history, _FIND, "recollect history note-7"),
    Entry("doctor", doctor, _CARE, "recollect doctor --repair"),
    Entry("bench", bench, _MEASURE, "recollect bench --n 10000 --scopes 50 --json bench.json"),
)

PIPELINES = (
    Entry("list", list_presets, "", "recollect pipeline list"),
    Entry("show", show_pipeline, "", "recollect pipeline show memory_spark"),
)

EVALUATIONS = (
    Entry("locomo", locomo, "", "recollect eval locomo --data locomo10.json --system recollect"),
    Entry(
        "conversation",
        conversation,
        "",
        "recollect eval conversation --data realtalk --show-misses --limit 5",
    ),
    Entry("beir", beir, "", "recollect eval beir --data scifact --configs A,C,GATE-A"),
    Entry("ablation", ablation, "", "recollect eval ablation --data locomo10.json --data scifact"),
    Entry(
        "injection",
        injection,
        "",
        "recollect eval injection --data tests/prompting/injection_lines.jsonl --part held_out",
    ),
    Entry("agentmem", agentmem, "", "recollect eval agentmem --data realtalk --model my-embedder"),
    Entry("cues", cues, "", "recollect eval cues --json cues.json"),
    Entry("multihop", multihop, "", "recollect eval multihop --data musique --json report.json"),
)

TRAINING = (
    Entry(
        "embedder",
        embedder,
        "",
        "recollect train embedder --data train --base all-MiniLM-L6-v2 --target run",
    ),
    Entry("components", components, "", "recollect train components --model run/model --target m"),
    Entry("export", export, "", "recollect train export --source all-MiniLM-L6-v2 --target model"),
    Entry("generate", generate, "", "recollect train generate --count 1000 --out samples.jsonl"),
    Entry("calibration", calibration, "", "recollect train calibration --data training-data"),
)


def _show_version(wanted: bool) -> None:  # noqa: FBT001  the form of a typer callback
    if wanted:
        result_console().print(f"recollect {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_show_version, help="Show the version and end."
        ),
    ] = False,
) -> None:
    """Remember what an agent has seen, and find the few memories that answer now.

    Exit codes: 0 done (an empty result too), 1 an error or refused records, 2 a wrong command
    line, 130 interrupted.
    """


def _application() -> typer.Typer:
    application = typer.Typer(
        name="recollect",
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    application.callback()(_root)
    _register(application, COMMANDS)
    pipelines = _group("Look at the stages of retrieval.")
    _register(pipelines, PIPELINES)
    application.add_typer(pipelines, name="pipeline", rich_help_panel=_FIND)
    evaluations = _group("Measure retrieval on a benchmark.")
    _register(evaluations, EVALUATIONS)
    application.add_typer(evaluations, name="eval", rich_help_panel=_MEASURE)
    training = _group("Make the models.")
    _register(training, TRAINING)
    application.add_typer(training, name="train", rich_help_panel=_MEASURE)
    return application


def _group(summary: str) -> typer.Typer:
    return typer.Typer(no_args_is_help=True, rich_markup_mode="markdown", help=summary)


def _register(application: typer.Typer, entries: tuple[Entry, ...]) -> None:
    for entry in entries:
        application.command(
            entry.name,
            rich_help_panel=entry.panel or None,
            epilog=f"Example: {entry.example}",
        )(entry.function)


app = _application()


def main() -> None:
    """Run the command line; the process ends with its exit code."""
    make_unprintable_harmless()
    app()
