"""`ekphory update` and `forget`: change what is remembered."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ekphory.cli.command import command
from ekphory.cli.consoles import message_console, result_console
from ekphory.cli.json_output import print_json
from ekphory.cli.metadata_option import read_metadata
from ekphory.cli.open_store import open_existing
from ekphory.cli.options import OutputOptions, StoreOptions
from ekphory.errors import InvalidInput

if TYPE_CHECKING:
    from ekphory.types import MemoryType


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The fields of a memory that can change."""

    text: Annotated[str | None, typer.Option(help="The new text.")] = None
    at: Annotated[str | None, typer.Option(metavar="TIME", help="When it happened, ISO 8601.")] = (
        None
    )
    type: Annotated[str | None, typer.Option(help="episodic, semantic, procedural or unknown.")] = (
        None
    )
    importance: Annotated[float | None, typer.Option(help="From 0 to 1.")] = None
    expires_at: Annotated[
        str | None, typer.Option(metavar="TIME", help="From then on it is hidden.")
    ] = None
    metadata: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="Your own fields; they replace all earlier ones. Repeatable."
        ),
    ] = None


@command
def update(
    memory_id: Annotated[str, typer.Argument(metavar="ID", help="The memory's id.")],
    changes: Changes,
    where: StoreOptions,
    output: OutputOptions,
) -> None:
    """Change a memory; the earlier version is kept as history."""
    metadata = read_metadata(changes.metadata)
    with open_existing(where) as memory:
        record = memory.update(
            memory_id,
            text=changes.text,
            at=changes.at,
            type=cast("MemoryType | None", changes.type),
            importance=changes.importance,
            expires_at=changes.expires_at,
            metadata=metadata,
        )
    if output.json:
        print_json(record)
    else:
        kept = f"Updated {record.id}; the earlier version is kept as {record.supersedes}"
        result_console().print(kept, soft_wrap=True)


@command
def forget(
    where: StoreOptions,
    output: OutputOptions,
    memory_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="The memory's id.", show_default=False)
    ] = None,
    filter: Annotated[  # noqa: A002  the option's name
        str | None,
        typer.Option(metavar="CONDITION", help="Forget all for which this condition holds."),
    ] = None,
    purge: Annotated[
        bool, typer.Option("--purge", help="Leave no byte of the text on disk; takes longer.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Forget one memory, or all that match a condition, with their history.

    Forgetting more than one asks first; where nobody can be asked, it needs --yes.
    """
    with open_existing(where) as memory:
        affected = memory.count(filter=filter) if filter is not None and memory_id is None else 1
        if affected > 1 and not yes:
            _confirm(affected)
        forgotten = memory.forget(memory_id, filter=filter, purge=purge)
    if output.json:
        print_json({"forgotten": forgotten, "purged": purge})
    else:
        trace = ", and their text is wiped from the disk" if purge else ""
        noun = "memory" if forgotten == 1 else "memories"
        result_console().print(f"{forgotten:,} {noun} forgotten{trace}.")


def _confirm(affected: int) -> None:
    if not sys.stdin.isatty():
        raise InvalidInput(
            "filter",
            f"{affected} memories match",
            "nobody can be asked whether to forget them all",
            "Add --yes when that is meant",
        )
    message_console().print(f"Forget {affected:,} memories? [y/N] ", end="", style="yellow")
    if input().strip().lower() not in ("y", "yes"):
        message_console().print("Nothing was forgotten.")
        raise typer.Exit(0)
