"""`ekphory list`, `get` and `history`: read memories without ranking them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

import typer

from ekphory.cli.command import command
from ekphory.cli.consoles import message_console, result_console
from ekphory.cli.json_output import print_json
from ekphory.cli.memory_printing import history_table, memory_table, record_table
from ekphory.cli.open_store import open_existing
from ekphory.cli.options import OutputOptions, StoreOptions

if TYPE_CHECKING:
    from ekphory.store.store import Order


@command
def list_memories(
    where: StoreOptions,
    output: OutputOptions,
    filter: Annotated[  # noqa: A002  the option's name
        str | None,
        typer.Option(metavar="CONDITION", help="Only memories for which this condition holds."),
    ] = None,
    limit: Annotated[int, typer.Option(help="How many to show.")] = 100,
    offset: Annotated[int, typer.Option(help="How many to pass over first.")] = 0,
    order: Annotated[str, typer.Option(help="newest, oldest or written.")] = "newest",
) -> None:
    """List the memories of a scope, a page at a time."""
    with open_existing(where) as memory:
        page = memory.list(filter=filter, limit=limit, offset=offset, order=cast("Order", order))
        total = memory.count(filter=filter)
    if output.json:
        print_json({"memories": page, "total": total, "offset": offset, "order": order})
        return
    result_console().print(memory_table(page, first=offset + 1))
    end = offset + len(page)
    shown = f"{offset + 1:,} to {end:,} of {total:,}" if page else f"None shown of {total:,}"
    more = f"; go on with --offset {end}" if page and end < total else ""
    message_console().print(f"{shown} memories{more}.", style="dim")


@command
def get(
    memory_id: Annotated[str, typer.Argument(metavar="ID", help="The memory's id.")],
    where: StoreOptions,
    output: OutputOptions,
) -> None:
    """Show one memory whole; a missing id is an error."""
    with open_existing(where) as memory:
        record = memory.get(memory_id)
    if output.json:
        print_json(record)
    else:
        result_console().print(record_table(record))


@command
def history(
    memory_id: Annotated[str, typer.Argument(metavar="ID", help="The memory's id.")],
    where: StoreOptions,
    output: OutputOptions,
) -> None:
    """Show a memory and the versions that it replaced, newest first."""
    with open_existing(where) as memory:
        versions = memory.history(memory_id)
    if output.json:
        print_json({"id": memory_id, "versions": versions})
    else:
        result_console().print(history_table(versions))
