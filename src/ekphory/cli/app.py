"""The `ekphory` command: every command by name, with an example."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import entry_points
from importlib.resources import files
from typing import Annotated, NoReturn, cast

import typer
import typer.main

from ekphory import __version__
from ekphory.cli import (
    capture_commands,
    cluster_commands,
    command,
    search_commands,
    server_commands,
    store_commands,
    transfer_commands,
    write_commands,
)
from ekphory.cli.demo import demo

_ADDED_BY = "ekphory.commands"
"""The group of entry points by which another distribution adds its commands."""
_IN_THE_LAB = ("bench", "bench-cluster", "bench-server", "eval", "train")
_TAKES_ANYTHING = {"allow_extra_args": True, "ignore_unknown_options": True}
_TOLD = tomllib.loads(files(__package__).joinpath("commands.toml").read_text("utf-8"))


def _make_group(name: str, functions: Mapping[str, command.Function]) -> command.CommandGroup:
    told = _TOLD[name]
    named = ((each, functions[each], "", told["examples"][each]) for each in functions)
    entries = tuple(command.Entry(*each) for each in named)
    return command.CommandGroup(name, told["summary"], told["panel"], entries)


_FUNCTIONS: Mapping[str, command.Function] = {
    "demo": demo,
    "add": write_commands.add,
    "capture": capture_commands.capture,
    "import": transfer_commands.import_records,
    "export": transfer_commands.export_memories,
    "update": write_commands.update,
    "supersede": write_commands.supersede,
    "unsupersede": write_commands.unsupersede,
    "conflicts": write_commands.conflicts,
    "revisions": write_commands.revisions,
    "settle": write_commands.settle,
    "learn-mistake": write_commands.learn_mistake,
    "add-rule": write_commands.add_rule,
    "promote": write_commands.promote,
    "forget": write_commands.forget,
    "search": search_commands.search,
    "ask": search_commands.ask,
    "list": search_commands.list_memories,
    "get": search_commands.get,
    "history": search_commands.history,
    "related": search_commands.related,
    "timeline": write_commands.timeline,
    "profile": write_commands.profile,
    "mistakes": write_commands.mistakes,
    "gate-status": search_commands.gate_status,
    "doctor": store_commands.doctor,
    "reembed": store_commands.reembed,
    "backup": transfer_commands.backup,
    "restore": transfer_commands.restore,
    "serve": server_commands.serve,
    "mcp": server_commands.mcp,
}
COMMANDS = tuple(
    command.Entry(name, function, **_TOLD[name]) for name, function in _FUNCTIONS.items()
)
_GROUPED: Mapping[str, Mapping[str, command.Function]] = {
    "pipeline": {"list": store_commands.list_presets, "show": store_commands.show},
    "hook": {
        "install": capture_commands.install_hook,
        "uninstall": capture_commands.uninstall_hook,
        "status": capture_commands.show_hooks,
        "pause": capture_commands.pause_hooks,
        "resume": capture_commands.resume_hooks,
        "run": capture_commands.run_hook,
        "catch-up": capture_commands.capture_noted,
    },
    "cluster": {
        "import": server_commands.import_in_bulk,
        "serve": server_commands.serve_cluster,
        "reshard": cluster_commands.reshard,
        "optimize": cluster_commands.optimize,
        "purge": cluster_commands.purge,
        "reembed": cluster_commands.reembed,
        "verify": cluster_commands.verify,
        "backup": cluster_commands.backup,
        "export": cluster_commands.export,
        "erase": cluster_commands.erase,
    },
    "skill": {"install": capture_commands.install_skill},
    "keys": {
        "create": server_commands.create_key,
        "list": server_commands.list_keys,
        "revoke": server_commands.revoke_key,
    },
    "daemon": {"status": server_commands.show_daemon, "stop": server_commands.stop_daemon},
}
GROUPS = tuple(_make_group(name, functions) for name, functions in _GROUPED.items())


def _show_version(wanted: bool) -> None:  # noqa: FBT001  the form of a typer callback
    if wanted:
        command.result_console().print(f"ekphory {__version__}")
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


def _load_added_commands() -> tuple[list[command.AddedCommands], str]:
    """Load what other distributions add; where one cannot be loaded, return why."""
    try:
        added = [point.load() for point in entry_points(group=_ADDED_BY)]
    except ImportError as error:
        return [], f"cannot be loaded ({error}). Install both in the same version with"
    return added, "is not installed. Install it with"


def _make_refusal(problem: str) -> command.Function:
    def refuse(context: typer.Context) -> None:
        """Is in the package ekphory-lab, which is not at hand."""
        command.message_console().print(
            f"`ekphory {context.info_name}` is in the package ekphory-lab, which {problem}: "
            "pip install ekphory ekphory-lab",
            soft_wrap=True,
        )
        raise typer.Exit(2)

    return refuse


def _register(application: typer.Typer, entries: tuple[command.Entry, ...]) -> None:
    for entry in entries:
        application.command(
            entry.name, rich_help_panel=entry.panel or None, epilog=f"Example: {entry.example}"
        )(entry.function)


app = _make_application()


@cache
def root_command() -> Callable[..., NoReturn]:
    """Return the command line as something to call; to make it takes longer than most commands."""
    return cast("Callable[..., NoReturn]", typer.main.get_command(app))


def main() -> None:
    """Run the command line; the process ends with its exit code."""
    command.make_unprintable_harmless()
    root_command()(prog_name="ekphory")
