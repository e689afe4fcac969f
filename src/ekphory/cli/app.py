"""The `ekphory` command: every command by name, with an example."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ekphory import __version__
from ekphory.cli.ablation_command import ablation
from ekphory.cli.add_command import add
from ekphory.cli.agentmem_command import agentmem
from ekphory.cli.ask_command import ask
from ekphory.cli.backup_command import backup, restore
from ekphory.cli.bench_command import bench
from ekphory.cli.bench_server_command import bench_server
from ekphory.cli.change_commands import forget, update
from ekphory.cli.consoles import make_unprintable_harmless, result_console
from ekphory.cli.cues_command import cues
from ekphory.cli.demo_command import demo
from ekphory.cli.doctor_command import doctor
from ekphory.cli.eval_commands import beir, conversation, locomo, multihop
from ekphory.cli.export_command import export_memories
from ekphory.cli.generate_command import generate
from ekphory.cli.import_command import import_records
from ekphory.cli.injection_command import injection
from ekphory.cli.keys_commands import create_key, list_keys, revoke_key
from ekphory.cli.mcp_command import mcp
from ekphory.cli.option_groups import Function
from ekphory.cli.pipeline_command import list_presets
from ekphory.cli.pipeline_command import show as show_pipeline
from ekphory.cli.probabilities_command import probabilities
from ekphory.cli.read_commands import get, history, list_memories
from ekphory.cli.rerank_eval_command import rerank
from ekphory.cli.search_command import search
from ekphory.cli.serve_command import serve
from ekphory.cli.train_commands import calibration, export, unpack
from ekphory.cli.train_embedder_command import average, components, embedder
from ekphory.cli.train_gate_command import gate
from ekphory.cli.train_reranker_calibration_command import reranker_calibration
from ekphory.cli.train_reranker_command import export_reranker, reranker


@dataclass(frozen=True, slots=True)
class Entry:
    """One command of the command line.

    Attributes:
        name: What a user types after `ekphory`, or after the group's name.
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
    Entry("demo", demo, _START, "ekphory demo"),
    Entry(
        "add",
        add,
        _REMEMBER,
        'ekphory add "I prefer Python over JavaScript" --producer user --type semantic',
    ),
    Entry("import", import_records, _REMEMBER, "ekphory import chats.jsonl --project home"),
    Entry("export", export_memories, _REMEMBER, "ekphory export --target memories.jsonl"),
    Entry("update", update, _REMEMBER, 'ekphory update note-7 --text "The meeting is at ten"'),
    Entry("forget", forget, _REMEMBER, "ekphory forget note-7 --purge"),
    Entry(
        "search",
        search,
        _FIND,
        'ekphory search "what language does the user like?" --k 5 --explain',
    ),
    Entry("ask", ask, _FIND, 'ekphory ask "Where was the father of Rembrandt\'s wife born?"'),
    Entry("list", list_memories, _FIND, "ekphory list --filter \"producer = 'user'\" --limit 20"),
    Entry("get", get, _FIND, "ekphory get note-7 --json"),
    Entry("history", history, _FIND, "ekphory history note-7"),
    Entry("doctor", doctor, _CARE, "ekphory doctor --repair"),
    Entry("backup", backup, _CARE, "ekphory backup --store ./memories --target memories.tar"),
    Entry("restore", restore, _CARE, "ekphory restore --source memories.tar --store ./copy"),
    Entry("serve", serve, _CARE, "ekphory serve --store ./memories --port 8080"),
    Entry("mcp", mcp, _CARE, "ekphory mcp --store ./memories --project home --user mara"),
    Entry("bench", bench, _MEASURE, "ekphory bench --n 10000 --scopes 50 --json bench.json"),
    Entry("bench-server", bench_server, _MEASURE, "ekphory bench-server --n 10000 --seconds 20"),
)

PIPELINES = (
    Entry("list", list_presets, "", "ekphory pipeline list"),
    Entry("show", show_pipeline, "", "ekphory pipeline show memory_spark"),
)

EVALUATIONS = (
    Entry("locomo", locomo, "", "ekphory eval locomo --data locomo10.json --system ekphory"),
    Entry(
        "conversation",
        conversation,
        "",
        "ekphory eval conversation --data realtalk --show-misses --limit 5",
    ),
    Entry("beir", beir, "", "ekphory eval beir --data scifact --configs A,C,GATE-A"),
    Entry("ablation", ablation, "", "ekphory eval ablation --data locomo10.json --data scifact"),
    Entry(
        "injection",
        injection,
        "",
        "ekphory eval injection --data tests/prompting/injection_lines.jsonl --part held_out",
    ),
    Entry("agentmem", agentmem, "", "ekphory eval agentmem --data realtalk --model my-embedder"),
    Entry("cues", cues, "", "ekphory eval cues --json cues.json"),
    Entry("rerank", rerank, "", "ekphory eval rerank --data locomo10.json --rerankers none,bm25"),
    Entry("multihop", multihop, "", "ekphory eval multihop --data 2wiki_dev --agent local"),
    Entry(
        "probabilities",
        probabilities,
        "",
        "ekphory eval probabilities --only statements --preset balanced",
    ),
)

KEYS = (
    Entry("create", create_key, "", "ekphory keys create --store ./memories"),
    Entry("list", list_keys, "", "ekphory keys list --store ./memories"),
    Entry("revoke", revoke_key, "", "ekphory keys revoke ID --store ./memories"),
)

TRAINING = (
    Entry(
        "embedder",
        embedder,
        "",
        "ekphory train embedder --data train --base all-MiniLM-L6-v2 --target run",
    ),
    Entry(
        "average",
        average,
        "",
        "ekphory train average --base BASE --trained run/model --share 0.8 --target m",
    ),
    Entry("components", components, "", "ekphory train components --model run/model --target m"),
    Entry("export", export, "", "ekphory train export --source all-MiniLM-L6-v2 --target model"),
    Entry("unpack", unpack, "", "ekphory train unpack --target base"),
    Entry(
        "reranker",
        reranker,
        "",
        "ekphory train reranker --data train --base run/model --target rerank-run",
    ),
    Entry(
        "export-reranker",
        export_reranker,
        "",
        "ekphory train export-reranker --source run/model --target m --calibration held.jsonl.gz",
    ),
    Entry("generate", generate, "", "ekphory train generate --count 1000 --out samples.jsonl"),
    Entry("calibration", calibration, "", "ekphory train calibration --data training-data"),
    Entry("gate", gate, "", "ekphory train gate --data training-data --reranker model"),
    Entry(
        "reranker-calibration",
        reranker_calibration,
        "",
        "ekphory train reranker-calibration --data train --reranker model --target card.json",
    ),
)


def _show_version(wanted: bool) -> None:  # noqa: FBT001  the form of a typer callback
    if wanted:
        result_console().print(f"ekphory {__version__}")
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
        name="ekphory",
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
    keys = _group("Keys of the server.")
    _register(keys, KEYS)
    application.add_typer(keys, name="keys", rich_help_panel=_CARE)
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
