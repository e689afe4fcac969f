"""`ekphory supersede`, `unsupersede`, `conflicts`, `timeline`, `profile` and `settle`."""

from __future__ import annotations

from functools import partial
from typing import Annotated, cast

import typer

from ekphory.cli.command import command, message_console, print_result, result_console, step_bar
from ekphory.cli.options import OutputOptions, StoreOptions, open_existing
from ekphory.cli.output import (
    make_profile_table,
    make_revision_table,
    make_timeline_table,
    print_json,
)
from ekphory.filters.tree import Field, In
from ekphory.types import RevisionKind

_NowOption = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="The moment of asking, ISO 8601; else the current one."),
]


@command
def supersede(
    old: str,
    where: StoreOptions,
    output: OutputOptions,
    by: Annotated[str, typer.Option(metavar="ID", help="The memory that takes its place.")],
    kind: str = "replaces",
    at: str | None = None,
) -> None:
    """Say that one memory takes the place of another; both are kept.

    Searches put the older one below the newer one from then on. `unsupersede` takes it back.

    Args:
        old (ID): The memory that holds no more.
        kind: replaces, corrects, ends, restates, excepts or plans.
        at (TIME): Since when, ISO 8601; else since the newer memory.
    """
    with open_existing(where) as memory:
        made = memory.supersede(old, by=by, kind=cast("RevisionKind", kind), at=at)
    shown = f"{made.newer} {made.kind} {made.older}. Taken back with: unsupersede {made.id}"
    print_result(output, made, shown)


@command
def unsupersede(
    where: StoreOptions,
    output: OutputOptions,
    revision: Annotated[
        str | None, typer.Argument(metavar="[REVISION]", help="The decision.", show_default=False)
    ] = None,
    batch: str | None = None,
) -> None:
    """Take back a decision on what supersedes what, or set a conflict aside.

    Args:
        batch (BATCH): All decisions of this batch instead.
    """
    with open_existing(where) as memory:
        count = memory.unsupersede(revision=revision, batch=batch)
    noun = "decision" if count == 1 else "decisions"
    print_result(output, {"undone": count}, f"{count:,} {noun} taken back.")


@command
def conflicts(
    where: StoreOptions,
    output: OutputOptions,
    *,
    scan: bool = False,
    limit: int = 100,
) -> None:
    """List memories that may contradict others, where it is not sure enough to act.

    Confirm one with `supersede`, set one aside with `unsupersede`.

    Args:
        scan: Compare all memories of the scope first; takes a while.
        limit: How many to show.
    """
    with open_existing(where) as memory, step_bar() as show:
        found = memory.conflicts(scan=scan, limit=limit, on_progress=partial(show, "comparing"))
        ids = {each for pair in found for each in (pair.older, pair.newer)}
        named = In(Field("id"), tuple(ids))
        told = memory.list(filter=named, limit=2 * limit) if ids and not output.json else []
    if output.json:
        print_json({"conflicts": found})
        return
    if found:
        result_console().print(make_revision_table(found, {each.id: each.text for each in told}))
    else:
        message_console().print("No conflicts.")


@command
def timeline(
    topic: str,
    where: StoreOptions,
    output: OutputOptions,
    k: Annotated[int, typer.Option("--k", "-k", help="Most states, the newest ones.")] = 20,
    now: _NowOption = None,
) -> None:
    """Show the states of a topic in the order in which they held.

    Args:
        topic: Words that name it, such as: where I live.
    """
    with open_existing(where) as memory:
        states = memory.timeline(topic, k=k, now=now)
    if output.json:
        print_json({"topic": topic, "states": states})
    elif states:
        result_console().print(make_timeline_table(states))
    else:
        message_console().print("No memory matches.")


@command
def profile(
    where: StoreOptions,
    output: OutputOptions,
    k: Annotated[int, typer.Option("--k", "-k", help="Most entries.")] = 50,
    now: _NowOption = None,
) -> None:
    """Show the lasting facts and preferences that hold now, each with its evidence."""
    with open_existing(where) as memory:
        entries = memory.profile(k=k, now=now)
    if output.json:
        print_json({"profile": entries})
    elif entries:
        result_console().print(make_profile_table(entries))
    else:
        message_console().print("No lasting fact or preference is known.")


@command
def settle(
    where: StoreOptions,
    output: OutputOptions,
    timeout: float | None = None,
) -> None:
    """Wait until everything that was written is compared with earlier memories.

    Args:
        timeout (SECONDS): Give up waiting after so long.
    """
    with open_existing(where) as memory:
        memory.settle(timeout)
    print_result(output, {"settled": True}, "All memories are compared.")
