"""The options that most commands share, and the store that they name."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from ekphory.config import Settings, read_settings
from ekphory.errors import InvalidInput
from ekphory.types import Scalar

if TYPE_CHECKING:
    from ekphory.memory import Memory


# The options that most commands share.

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


# `--metadata key=value` on the command line.


def read_metadata(pairs: Sequence[str] | None) -> dict[str, Scalar] | None:
    """Read `key=value` pairs; None where there are none.

    A number, true, false and a text in double quotes are what they are in JSON; all else is text.

    Raises:
        InvalidInput: A pair has no `=` or no key.
    """
    if not pairs:
        return None
    metadata: dict[str, Scalar] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise InvalidInput("metadata", pair, "must be key=value", "Write --metadata year=2026")
        metadata[key.strip()] = _scalar(value)
    return metadata


def _scalar(text: str) -> Scalar:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, float) and not math.isfinite(value):
        return text
    return value if isinstance(value, str | int | float) else text


# Opening the store and scope that a command line and the environment name.


def settings_for(options: StoreOptions) -> Settings:
    """Return the environment's settings, overridden by the options that were given."""
    named = {entry.name: getattr(options, entry.name) for entry in fields(options)}
    given = {name: value for name, value in named.items() if value is not None}
    return replace(read_settings(), **given)


def open_for_writing(options: StoreOptions) -> Memory:
    """Open the store, and make it where there is none."""
    return _open(settings_for(options))


def open_existing(options: StoreOptions) -> Memory:
    """Open a store that must be there, so that a misspelt path is told and not created.

    Raises:
        InvalidInput: There is no store at the path.
    """
    settings = settings_for(options)
    if not _may_be_a_store(settings.store):
        raise InvalidInput(
            "store",
            settings.store,
            "there is no store",
            "Make one with `ekphory add` or `ekphory import`, or name another with --store",
        )
    return _open(settings)


def _open(settings: Settings) -> Memory:
    from ekphory.memory import Memory

    return Memory(
        settings.store,
        org=settings.org,
        project=settings.project,
        agent=settings.agent,
        user=settings.user,
        session=settings.session,
        embedder=settings.embedder,
        reranker=settings.reranker,
        chat=settings.chat_url,
        preset=settings.preset,
    )


def _may_be_a_store(path: str) -> bool:
    """Whether opening would find a store; a file and a URI are left to the store to judge."""
    # Slow to import, and not every command opens a store.
    from ekphory.store.lance_table import STATE_FILE

    if "://" in path:
        return True
    directory = Path(path).expanduser()
    if directory.is_file() or (directory / STATE_FILE).is_file():
        return True
    return any(directory.glob("*.lance"))
