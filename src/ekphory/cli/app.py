"""The `ekphory` command: every command by name, with an example."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from typing import Annotated, NoReturn, cast

import typer
import typer.main

from ekphory import __version__
from ekphory.cli.capture_commands import (
    capture,
    capture_noted,
    install_hook,
    install_skill,
    pause_hooks,
    resume_hooks,
    run_hook,
    show_hooks,
    uninstall_hook,
)
from ekphory.cli.command import (
    AddedCommands,
    CommandGroup,
    Entry,
    Function,
    make_unprintable_harmless,
    message_console,
    result_console,
)
from ekphory.cli.demo import demo
from ekphory.cli.search_commands import ask, get, history, list_memories, search
from ekphory.cli.server_commands import (
    create_key,
    import_in_bulk,
    list_keys,
    mcp,
    revoke_key,
    serve,
    serve_cluster,
    show_daemon,
    stop_daemon,
)
from ekphory.cli.store_commands import doctor, list_presets, reembed
from ekphory.cli.store_commands import show as show_pipeline
from ekphory.cli.transfer_commands import backup, export_memories, import_records, restore
from ekphory.cli.write_commands import (
    add,
    add_rule,
    conflicts,
    forget,
    learn_mistake,
    mistakes,
    profile,
    promote,
    settle,
    supersede,
    timeline,
    unsupersede,
    update,
)

_START, _REMEMBER, _FIND, _CARE = "Start here", "Remember", "Find", "Care"
_ADDED_BY = "ekphory.commands"
"""The group of entry points by which another distribution adds its commands."""
_IN_THE_LAB = ("bench", "bench-server", "eval", "train")
_TAKES_ANYTHING = {"allow_extra_args": True, "ignore_unknown_options": True}

COMMANDS = (
    Entry("demo", demo, _START, "ekphory demo"),
    Entry(
        "add",
        add,
        _REMEMBER,
        'ekphory add "I prefer Python over JavaScript" --producer user --type semantic',
    ),
    Entry("capture", capture, _REMEMBER, "ekphory capture transcript.jsonl --project home"),
    Entry("import", import_records, _REMEMBER, "ekphory import chats.jsonl --project home"),
    Entry("export", export_memories, _REMEMBER, "ekphory export --target memories.jsonl"),
    Entry("update", update, _REMEMBER, 'ekphory update note-7 --text "The meeting is at ten"'),
    Entry("supersede", supersede, _REMEMBER, "ekphory supersede note-7 --by note-9"),
    Entry("unsupersede", unsupersede, _REMEMBER, "ekphory unsupersede 3f9c2b7a51d06e84"),
    Entry("conflicts", conflicts, _CARE, "ekphory conflicts --scan"),
    Entry("settle", settle, _CARE, "ekphory settle --timeout 60"),
    Entry(
        "learn-mistake",
        learn_mistake,
        _REMEMBER,
        'ekphory learn-mistake "retried a 404" --fix "give up at once"',
    ),
    Entry("add-rule", add_rule, _REMEMBER, 'ekphory add-rule "Answer in metric units"'),
    Entry("promote", promote, _REMEMBER, "ekphory promote note-7 --pool shared_knowledge"),
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
    Entry("timeline", timeline, _FIND, 'ekphory timeline "where I live"'),
    Entry("profile", profile, _FIND, "ekphory profile --user mara"),
    Entry("mistakes", mistakes, _CARE, "ekphory mistakes --least 3"),
    Entry("doctor", doctor, _CARE, "ekphory doctor --repair"),
    Entry("reembed", reembed, _CARE, "ekphory reembed --store ./memories"),
    Entry("backup", backup, _CARE, "ekphory backup --store ./memories --target memories.tar"),
    Entry("restore", restore, _CARE, "ekphory restore --source memories.tar --store ./copy"),
    Entry("serve", serve, _CARE, "ekphory serve --store ./memories --port 8080"),
    Entry("mcp", mcp, _CARE, "ekphory mcp --store ./memories --project home --user mara"),
)

GROUPS = (
    CommandGroup(
        "pipeline",
        "Look at the stages of retrieval.",
        _FIND,
        (
            Entry("list", list_presets, "", "ekphory pipeline list"),
            Entry("show", show_pipeline, "", "ekphory pipeline show memory_spark"),
        ),
    ),
    CommandGroup(
        "hook",
        "Hooks of agent tools: memory that fills itself.",
        _REMEMBER,
        (
            Entry("install", install_hook, "", "ekphory hook install claude-code"),
            Entry("uninstall", uninstall_hook, "", "ekphory hook uninstall claude-code"),
            Entry("status", show_hooks, "", "ekphory hook status --json"),
            Entry("pause", pause_hooks, "", "ekphory hook pause --for 2h"),
            Entry("resume", resume_hooks, "", "ekphory hook resume"),
            Entry("run", run_hook, "", "ekphory hook run claude-code prompt < payload.json"),
            Entry("catch-up", capture_noted, "", "ekphory hook catch-up"),
        ),
    ),
    CommandGroup(
        "cluster",
        "One store over many machines: shards on object storage.",
        _CARE,
        (
            Entry(
                "import",
                import_in_bulk,
                "",
                "ekphory cluster import s3://acme/chats --store s3://acme/memories",
            ),
            Entry(
                "serve",
                serve_cluster,
                "",
                "ekphory cluster serve --store s3://acme/memories --port 8080 --workers 4",
            ),
        ),
    ),
    CommandGroup(
        "skill",
        "The skill that tells an agent how to search and keep memories.",
        _REMEMBER,
        (Entry("install", install_skill, "", "ekphory skill install ~/.claude/skills"),),
    ),
    CommandGroup(
        "keys",
        "Keys of the server.",
        _CARE,
        (
            Entry("create", create_key, "", "ekphory keys create --store ./memories"),
            Entry("list", list_keys, "", "ekphory keys list --store ./memories"),
            Entry("revoke", revoke_key, "", "ekphory keys revoke ID --store ./memories"),
        ),
    ),
    CommandGroup(
        "daemon",
        "The resident process that keeps stores open between commands.",
        _CARE,
        (
            Entry("status", show_daemon, "", "ekphory daemon status --json"),
            Entry("stop", stop_daemon, "", "ekphory daemon stop"),
        ),
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


def _make_application() -> typer.Typer:
    application = typer.Typer(
        name="ekphory",
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    application.callback()(_root)
    _register(application, COMMANDS)
    added, problem = _load_added_commands()
    for commands in added:
        _register(application, commands.entries)
    for group in (*GROUPS, *(group for commands in added for group in commands.groups)):
        grouped = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown", help=group.summary)
        _register(grouped, group.entries)
        application.add_typer(grouped, name=group.name, rich_help_panel=group.panel)
    if not added:
        for name in _IN_THE_LAB:
            application.command(
                name, rich_help_panel="Measure and train", context_settings=_TAKES_ANYTHING
            )(_make_refusal(problem))
    return application


def _load_added_commands() -> tuple[list[AddedCommands], str]:
    """Load what other distributions add; where one cannot be loaded, return why."""
    try:
        added = [point.load() for point in entry_points(group=_ADDED_BY)]
    except ImportError as error:
        return [], f"cannot be loaded ({error}). Install both in the same version with"
    return added, "is not installed. Install it with"


def _make_refusal(problem: str) -> Function:
    def refuse(context: typer.Context) -> None:
        """Is in the package ekphory-lab, which is not at hand."""
        message_console().print(
            f"`ekphory {context.info_name}` is in the package ekphory-lab, which {problem}: "
            "pip install ekphory ekphory-lab",
            soft_wrap=True,
        )
        raise typer.Exit(2)

    return refuse


def _register(application: typer.Typer, entries: tuple[Entry, ...]) -> None:
    for entry in entries:
        application.command(
            entry.name,
            rich_help_panel=entry.panel or None,
            epilog=f"Example: {entry.example}",
        )(entry.function)


app = _make_application()


@cache
def root_command() -> Callable[..., NoReturn]:
    """Return the command line as something to call; to make it takes longer than most commands."""
    return cast("Callable[..., NoReturn]", typer.main.get_command(app))


def main() -> None:
    """Run the command line; the process ends with its exit code."""
    make_unprintable_harmless()
    root_command()(prog_name="ekphory")
