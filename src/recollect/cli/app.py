"""The `recollect` command: every command by name, with an example."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from recollect import __version__
from recollect.cli.ablation_command import ablation
from recollect.cli.add_command import add
from recollect.cli.agentmem_command import agentmem
from recollect.cli.ask_command import ask
from recollect.cli.backup_command import backup, restore
from recollect.cli.bench_command import bench
from recollect.cli.bench_server_command import bench_server
from recollect.cli.change_commands import forget, update
from recollect.cli.consoles import make_unprintable_harmless, result_console
from recollect.cli.cues_command import cues
from recollect.cli.demo_command import demo
from recollect.cli.doctor_command import doctor
from recollect.cli.eval_commands import beir, conversation, locomo, multihop
from recollect.cli.export_command import export_memories
from recollect.cli.generate_command import generate
from recollect.cli.import_command import import_records
from recollect.cli.injection_command import injection
from recollect.cli.keys_commands import create_key, list_keys, revoke_key
from recollect.cli.mcp_command import mcp
from recollect.cli.option_groups import Function
from recollect.cli.pipeline_command import list_presets
from recollect.cli.pipeline_command import show as show_pipeline
from recollect.cli.probabilities_command import probabilities
from recollect.cli.read_commands import get, history, list_memories
from recollect.cli.rerank_eval_command import rerank
from recollect.cli.search_command import search
from recollect.cli.serve_command import serve
from recollect.cli.train_commands import calibration, export, unpack
from recollect.cli.train_embedder_command import average, components, embedder
from recollect.cli.train_gate_command import gate
from recollect.cli.train_reranker_calibration_command import reranker_calibration
from recollect.cli.train_reranker_command import export_reranker, reranker


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
    Entry("export", export_memories, _REMEMBER, "recollect export --target memories.jsonl"),
    Entry("update", update, _REMEMBER, 'recollect update note-7 --text "The meeting is at ten"'),
    Entry("forget", forget, _REMEMBER, "recollect forget note-7 --purge"),
    Entry(
        "search",
        search,
        _FIND,
        'recollect search "what language does the user like?" --k 5 --explain',
    ),
    Entry("ask", ask, _FIND, 'recollect ask "Where was the father of Rembrandt\'s wife born?"'),
    Entry("list", list_memories, _FIND, "recollect list --filter \"producer = 'user'\" --limit 20"),
    Entry("get", get, _FIND, "recollect get note-7 --json"),
    Entry("history", history, _FIND, "recollect history note-7"),
    Entry("doctor", doctor, _CARE, "recollect doctor --repair"),
    Entry("backup", backup, _CARE, "recollect backup --store ./memories --target memories.tar"),
    Entry("restore", restore, _CARE, "recollect restore --source memories.tar --store ./copy"),
    Entry("serve", serve, _CARE, "recollect serve --store ./memories --port 8080"),
    Entry("mcp", mcp, _CARE, "recollect mcp --store ./memories --project home --user mara"),
    Entry("bench", bench, _MEASURE, "recollect bench --n 10000 --scopes 50 --json bench.json"),
    Entry("bench-server", bench_server, _MEASURE, "recollect bench-server --n 10000 --seconds 20"),
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
    Entry("rerank", rerank, "", "recollect eval rerank --data locomo10.json --rerankers none,bm25"),
    Entry("multihop", multihop, "", "recollect eval multihop --data 2wiki_dev --agent local"),
    Entry(
        "probabilities",
        probabilities,
        "",
        "recollect eval probabilities --only statements --preset balanced",
    ),
)

KEYS = (
    Entry("create", create_key, "", "recollect keys create --store ./memories"),
    Entry("list", list_keys, "", "recollect keys list --store ./memories"),
    Entry("revoke", revoke_key, "", "recollect keys revoke ID --store ./memories"),
)

TRAINING = (
    Entry(
        "embedder",
        embedder,
        "",
        "recollect train embedder --data train --base all-MiniLM-L6-v2 --target run",
    ),
    Entry(
        "average",
        average,
        "",
        "recollect train average --base BASE --trained run/model --share 0.8 --target m",
    ),
    Entry("components", components, "", "recollect train components --model run/model --target m"),
    Entry("export", export, "", "recollect train export --source all-MiniLM-L6-v2 --target model"),
    Entry("unpack", unpack, "", "recollect train unpack --target base"),
    Entry(
        "reranker",
        reranker,
        "",
        "recollect train reranker --data train --base run/model --target rerank-run",
    ),
    Entry(
        "export-reranker",
        export_reranker,
        "",
        "recollect train export-reranker --source run/model --target m --calibration held.jsonl.gz",
    ),
    Entry("generate", generate, "", "recollect train generate --count 1000 --out samples.jsonl"),
    Entry("calibration", calibration, "", "recollect train calibration --data training-data"),
    Entry("gate", gate, "", "recollect train gate --data training-data --reranker model"),
    Entry(
        "reranker-calibration",
        reranker_calibration,
        "",
        "recollect train reranker-calibration --data train --reranker model --target card.json",
    ),
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
