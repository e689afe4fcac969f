"""The options that most commands share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Protocol

import typer

STANDARD_OUTPUT = Path("-")
_SCOPE = "Scope"
_OUTPUT = "Output"
_EMBEDDER_HELP = (
    "Model directory or /v1/embeddings URL; else EKPHORY_EMBEDDER, else the bundled model."
)

EmbedderOption = Annotated[str | None, typer.Option(metavar="MODEL", help=_EMBEDDER_HELP)]
"""Which embedder a measurement uses."""


class Output(Protocol):
    """How a command reports, failures included."""

    @property
    def json(self) -> bool:
        """Whether standard output carries one JSON document."""
        ...

    @property
    def debug(self) -> bool:
        """Whether an error shows its traceback."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """How a command reports."""

    json: Annotated[
        bool,
        typer.Option("--json", help="Print one JSON document.", rich_help_panel=_OUTPUT),
    ] = False
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show the traceback of an error.", rich_help_panel=_OUTPUT),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOutputOptions:
    """How a command reports that writes its JSON to a file."""

    json_file: Annotated[
        Path | None,
        typer.Option(
            "--json",
            metavar="FILE",
            help="Write the whole report to this file; - for standard output.",
            rich_help_panel=_OUTPUT,
        ),
    ] = None
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show the traceback of an error.", rich_help_panel=_OUTPUT),
    ] = False

    @property
    def json(self) -> bool:
        """Whether the report goes to standard output."""
        return self.json_file == STANDARD_OUTPUT


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    """Which store, and which scope of it; None takes the environment's."""

    store: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Directory or Lance URI of the store; else EKPHORY_STORE, "
            "else a folder in your data directory.",
            rich_help_panel=_SCOPE,
        ),
    ] = None
    project: Annotated[
        str | None,
        typer.Option(help="Only this project; else EKPHORY_PROJECT.", rich_help_panel=_SCOPE),
    ] = None
    user: Annotated[
        str | None,
        typer.Option(help="Only this user; else EKPHORY_USER.", rich_help_panel=_SCOPE),
    ] = None
    agent: Annotated[
        str | None,
        typer.Option(help="Only this agent; else EKPHORY_AGENT.", rich_help_panel=_SCOPE),
    ] = None
    session: Annotated[
        str | None,
        typer.Option(help="Only this session; else EKPHORY_SESSION.", rich_help_panel=_SCOPE),
    ] = None
    org: Annotated[
        str | None,
        typer.Option(help="Only this organisation; else EKPHORY_ORG.", rich_help_panel=_SCOPE),
    ] = None
    embedder: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help=_EMBEDDER_HELP, rich_help_panel=_SCOPE),
    ] = None
