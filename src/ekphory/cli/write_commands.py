"""`ekphory add`, `update` and `forget`."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from functools import partial
from typing import Annotated

import typer

from ekphory.cli.command import command, message_console, print_result
from ekphory.cli.options import (
    MemoryId,
    OutputOptions,
    StoreOptions,
    open_existing,
    open_for_writing,
    read_metadata,
)
from ekphory.errors import InvalidInput
from ekphory.filters.tree import EVERYTHING, Filter

_field_option = partial(typer.Option, rich_help_panel="The memory")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFields:
    """The fields of a memory beside its text; its session is that of the scope."""

    id: Annotated[
        str | None, _field_option(help="Its id; it alone then decides what is there already.")
    ] = None
    at: Annotated[
        str | None, _field_option(metavar="TIME", help="When it happened, ISO 8601; else now.")
    ] = None
    producer: Annotated[str | None, _field_option(help="Who said it.")] = None
    produced_for: Annotated[str | None, _field_option(help="Whom it was said to.")] = None
    role: Annotated[str | None, _field_option(help="Chat role: user, assistant, …")] = None
    sequence: Annotated[int | None, _field_option(help="Position within its session.")] = None
    pool: Annotated[str | None, _field_option(help="Its pool; agent_memory by default.")] = None
    type: Annotated[
        str | None, _field_option(help="episodic, semantic, procedural or unknown; else predicted.")
    ] = None
    importance: Annotated[float | None, _field_option(help="From 0 to 1; else predicted.")] = None
    expires_at: Annotated[
        str | None, _field_option(metavar="TIME", help="From then on it is hidden.")
    ] = None
    source: Annotated[str | None, _field_option(help="Where it comes from.")] = None
    metadata: Annotated[
        list[str] | None,
        _field_option(metavar="KEY=VALUE", help="A field of your own; repeatable."),
    ] = None


SAMPLED = (
    "The text is longer than 60,000 characters: it is stored whole and found by its words, "
    "and 64 windows spread over it are searched by meaning. Import it as a document to have all "
    "of it searched so."
)


@command
def add(
    text: Annotated[str, typer.Argument(help="What to remember; - reads standard input.")],
    fields: MemoryFields,
    where: StoreOptions,
    output: OutputOptions,
) -> None:
    """Remember one text.

    On return it is durable. What is there already is skipped, not doubled.
    """
    metadata = read_metadata(fields.metadata)
    with open_for_writing(where) as memory:
        report = memory.add(_read_text(text), **(asdict(fields) | {"metadata": metadata}))
    state = "Added" if report.added else "Already there:"
    shown = f"{state} {report.ids[0]}" if report.ids else "Nothing new: only recalled memories"
    print_result(output, report, shown)
    if report.sampled and not output.json:
        message_console().print(SAMPLED, style="dim")


def _read_text(text: str) -> str:
    """Return the text, or that of standard input where it is `-`."""
    if text != "-":
        return text
    try:
        return sys.stdin.buffer.read().decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            "text", error.object[error.start : error.start + 8], "must be UTF-8", "Convert the text"
        ) from error


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
    memory_id: MemoryId,
    changes: Changes,
    where: StoreOptions,
    output: OutputOptions,
) -> None:
    """Change a memory; the earlier version is kept as history."""
    metadata = read_metadata(changes.metadata)
    with open_existing(where) as memory:
        record = memory.update(memory_id, **(asdict(changes) | {"metadata": metadata}))
    shown = f"Updated {record.id}; the earlier version is kept as {record.supersedes}"
    print_result(output, record, shown)


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
    """Forget one memory, all that match a condition, or all of --session, with their history.

    Forgetting more than one asks first; where nobody can be asked, it needs --yes.
    """
    condition: str | Filter | None = filter
    if memory_id is None and filter is None and where.session is not None:
        condition = EVERYTHING
    with open_existing(where) as memory:
        several = condition is not None and memory_id is None
        affected = memory.count(filter=condition) if several else 1
        if affected > 1 and not yes:
            _confirm(affected)
        forgotten = memory.forget(memory_id, filter=condition, purge=purge)
    trace = ", and their text is wiped from the disk" if purge else ""
    noun = "memory" if forgotten == 1 else "memories"
    shown = f"{forgotten:,} {noun} forgotten{trace}."
    print_result(output, {"forgotten": forgotten, "purged": purge}, shown)


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


# Pools as a workflow.


@command
def learn_mistake(
    what: Annotated[str, typer.Argument(help="What went wrong.")],
    where: StoreOptions,
    output: OutputOptions,
    fix: Annotated[str, typer.Option(help="How it is put right, or avoided.")],
    shared: Annotated[
        bool, typer.Option("--shared", help="Let the whole project see it, not this agent alone.")
    ] = False,
) -> None:
    """Remember a mistake and what was learnt from it; searches weigh mistakes more."""
    with open_for_writing(where) as memory:
        made = memory.learn_mistake(what, fix=fix, shared=shared)
    print_result(output, {"id": made}, f"Remembered as {made}")


@command
def add_rule(
    text: Annotated[str, typer.Argument(help="The rule.")],
    where: StoreOptions,
    output: OutputOptions,
) -> None:
    """Add a rule that every search of the project finds first.

    It enters every later prompt of all agents.
    """
    with open_for_writing(where) as memory:
        made = memory.add_rule(text)
    print_result(output, {"id": made}, f"Added {made}")


@command
def promote(
    memory_id: MemoryId,
    where: StoreOptions,
    output: OutputOptions,
    pool: Annotated[
        str, typer.Option(help="shared_knowledge, shared_mistakes or shared_rules.")
    ] = "shared_knowledge",
) -> None:
    """Copy a memory into a pool that the whole project sees."""
    with open_existing(where) as memory:
        made = memory.promote(memory_id, pool=pool)
    print_result(output, {"id": made}, f"Copied into {pool} as {made}")
