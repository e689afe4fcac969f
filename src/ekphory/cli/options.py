"""The options that most commands share, and the store that they name."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ekphory.config import Settings, read_settings
from ekphory.errors import InvalidInput
from ekphory.types import Scalar

if TYPE_CHECKING:
    from ekphory.memory import Memory

STANDARD_OUTPUT = Path("-")
EmbedderOption = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="Model directory or /v1/embeddings URL; else EKPHORY_EMBEDDER, else the bundled "
        "model.",
    ),
]
"""Which embedder a measurement uses."""
MemoryId = Annotated[str, typer.Argument(metavar="ID", help="The memory's id.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """How a command reports.

    Attributes:
        json: Print one JSON document.
        debug: Show the traceback of an error.
    """

    PANEL = "Output"

    json: bool = False
    debug: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOutputOptions:
    """How a command reports that writes its JSON to a file.

    Attributes:
        json_file (--json FILE): Write the whole report to this file; - for standard output.
        debug: Show the traceback of an error.
    """

    PANEL = "Output"

    json_file: Path | None = None
    debug: bool = False

    @property
    def json(self) -> bool:
        """Whether the report goes to standard output."""
        return self.json_file == STANDARD_OUTPUT


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    """Which store, and which scope of it; None takes the environment's.

    Attributes:
        store (DIR): Directory or Lance URI of the store, or a server's URL; else EKPHORY_STORE,
            else a folder in your data directory.
        project: Only this project; else EKPHORY_PROJECT.
        user: Only this user; else EKPHORY_USER.
        agent: Only this agent; else EKPHORY_AGENT.
        session: Only this session; else EKPHORY_SESSION.
        org: Only this organisation; else EKPHORY_ORG.
        embedder (MODEL): Model directory or /v1/embeddings URL; else EKPHORY_EMBEDDER, else the
            bundled model.
    """

    PANEL = "Scope"

    store: str | None = None
    project: str | None = None
    user: str | None = None
    agent: str | None = None
    session: str | None = None
    org: str | None = None
    embedder: str | None = None


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
        metadata[key.strip()] = _read_scalar(value)
    return metadata


def _read_scalar(text: str) -> Scalar:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, float) and not math.isfinite(value):
        return text
    return value if isinstance(value, str | int | float) else text


def settings_for(options: StoreOptions) -> Settings:
    """Return the environment's settings, overridden by the options that were given."""
    named = {entry.name: getattr(options, entry.name) for entry in fields(options)}
    given = {name: value for name, value in named.items() if value is not None}
    return replace(read_settings(), **given)


def catalog_for(given: Path | None) -> Path | None:
    """Return the catalog that is given, else the one of EKPHORY_CONFIG; None: in the store.

    Raises:
        InvalidInput, MissingExtra: The configuration file cannot be used.
    """
    settings = read_settings()
    if given is not None or settings.config is None:
        return given
    from ekphory.service.configuration import read_places

    return read_places(settings).sessions


def open_for_writing(options: StoreOptions) -> Memory:
    """Open the store, and make it where there is none."""
    return _open(settings_for(options))


def open_existing(options: StoreOptions) -> Memory:
    """Open a store that must be there, so that a misspelt path is refused and not created.

    Raises:
        InvalidInput: There is no store at the path.
    """
    settings = settings_for(options)
    if not _is_store(settings.store):
        remedy = "Make one with `ekphory add` or `ekphory import`, or name another with --store"
        raise InvalidInput("store", settings.store, "there is no store", remedy)
    return _open(settings)


def _open(settings: Settings) -> Memory:
    from ekphory.memory import Memory
    from ekphory.scope import SCOPE_FIELDS

    memory = Memory(
        settings.store,
        **{name: getattr(settings, name) for name in SCOPE_FIELDS},
        embedder=settings.embedder,
        reranker=settings.reranker,
        chat=settings.chat_url,
        preset=settings.preset,
    )
    memory.surface = "command line"
    return memory


def _is_store(path: str) -> bool:
    """Whether opening would find a store; a file and a URI are left to the store to judge."""
    # LanceDB takes seconds to import, and not every command opens a store.
    from ekphory.store.lance_table import STATE_FILE

    if "://" in path:
        return True
    directory = Path(path).expanduser()
    is_told = directory.is_file() or (directory / STATE_FILE).is_file()
    return is_told or any(directory.glob("*.lance"))
