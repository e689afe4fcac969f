"""`ekphory search`, `ask`, `list`, `get` and `history`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ekphory.agent.provider import ProviderName
from ekphory.agent_trace import StageResults
from ekphory.cli.command import command, message_console, result_console
from ekphory.cli.options import OutputOptions, StoreOptions, open_existing
from ekphory.cli.output import (
    ChainPrinter,
    ending,
    history_table,
    hit_table,
    memory_table,
    print_json,
    record_table,
    score_table,
    search_json,
    stage_table,
)
from ekphory.types import TimeUse

if TYPE_CHECKING:
    from ekphory.search import SearchResult
    from ekphory.store.protocol import Order


# `ekphory search`: find the memories that answer a question.


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """What to find, and how."""

    k: Annotated[int, typer.Option("--k", "-k", help="How many hits, 1 to 1000.")] = 10
    filter: Annotated[
        str | None,
        typer.Option(metavar="CONDITION", help="Only memories for which this condition holds."),
    ] = None
    pool: Annotated[
        list[str] | None, typer.Option(help="Only this pool; repeatable, else all.")
    ] = None
    min_score: Annotated[
        float | None, typer.Option(help="Only hits of at least this probability, 0 to 1.")
    ] = None
    now: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="The moment of asking, ISO 8601; else the current one."),
    ] = None
    time: Annotated[
        TimeUse,
        typer.Option(
            help="What a time in the question does: boost what lies in it, filter, or ignore."
        ),
    ] = "boost"
    timezone: Annotated[
        str, typer.Option(metavar="NAME", help="Where its days begin, such as Europe/Berlin.")
    ] = "UTC"
    context: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="A turn of the dialogue before the question, oldest first; repeatable.",
        ),
    ] = None
    preset: Annotated[
        str | None,
        typer.Option(help="The pipeline to rank with; else EKPHORY_PRESET, else balanced."),
    ] = None


@command
def search(
    query: Annotated[str, typer.Argument(help='A question or some words; "" lists the newest.')],
    asked: SearchOptions,
    where: StoreOptions,
    output: OutputOptions,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what every stage did, and all raw scores.")
    ] = False,
) -> None:
    """Find the memories that answer a question, best first.

    The number before a hit is the probability that it answers. Nothing found is an empty
    result, with exit code 0.
    """
    with open_existing(where) as memory:
        result = memory.search(
            query,
            k=asked.k,
            now=asked.now,
            pools=asked.pool,
            filter=asked.filter,
            min_score=asked.min_score,
            preset=asked.preset,
            context=asked.context or (),
            time=asked.time,
            timezone=asked.timezone,
        )
    if output.json:
        print_json(search_json(query, result))
        return
    _print_hits(result)
    if explain:
        _print_stages(result)


def _print_hits(result: SearchResult) -> None:
    if result.hits:
        result_console().print(hit_table(result.hits))
    elif result.abstained:
        message_console().print("No memory reaches --min-score.")
    else:
        message_console().print("No memory matches.")


def _print_stages(result: SearchResult) -> None:
    console = result_console()
    console.print()
    console.print(stage_table(result.trace))
    if result.hits:
        console.print(score_table(result.hits))


# `ekphory ask`: follow a question from memory to memory, and show the chain as it grows.


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCallOptions:
    """How the agent works."""

    provider: Annotated[
        ProviderName | None,
        typer.Option(
            help="Who decides on the queries: local needs no key; else as it is configured, "
            "and local without a configuration.",
            rich_help_panel="Agent",
        ),
    ] = None
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="YAML file with the section retrieval_agent; else EKPHORY_CONFIG.",
            rich_help_panel="Agent",
        ),
    ] = None
    stage_results: Annotated[
        StageResults,
        typer.Option(
            help="none, trace: tell the hops in the trace, or memory: in the answer context too.",
            rich_help_panel="Agent",
        ),
    ] = "none"
    events: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the session's events to this file, a JSON line each.",
            rich_help_panel="Agent",
        ),
    ] = None


@command
def ask(
    question: Annotated[str, typer.Argument(help="A question, however many lookups it needs.")],
    asked: SearchOptions,
    agent: AgentCallOptions,
    where: StoreOptions,
    output: OutputOptions,
    answer_context: Annotated[
        bool, typer.Option("--answer-context", help="Print the block for a prompt instead.")
    ] = False,
) -> None:
    """Follow a question from memory to memory, and show the chain of evidence as it grows.

    A question that needs one lookup takes one, as `ekphory search` does.
    """
    from ekphory.agent.configuration import read_agent_settings
    from ekphory.agent.provider import AgentOptions
    from ekphory.agent_trace import json_lines

    settings = read_agent_settings(
        agent.config, arguments={"agent_session_provider": agent.provider}
    )
    quiet = output.json or answer_context
    options = AgentOptions(
        settings=settings,
        stage_results=agent.stage_results,
        on_event=None if quiet else ChainPrinter(result_console()),
    )
    with open_existing(where) as memory:
        result = memory.search(
            question,
            k=asked.k,
            now=asked.now,
            pools=asked.pool,
            filter=asked.filter,
            min_score=asked.min_score,
            preset=asked.preset,
            context=asked.context or (),
            time=asked.time,
            timezone=asked.timezone,
            agent_mode=True,
            agent_options=options,
        )
    trace = result.retrieval_trace
    if agent.events is not None and trace is not None:
        agent.events.write_text("\n".join(json_lines(trace.events)) + "\n", encoding="utf-8")
    if output.json:
        print_json(search_json(question, result))
        return
    if answer_context:
        typer.echo(result.answer_context(now=asked.now))
        return
    _print_found(result)


def _print_found(result: SearchResult) -> None:
    console = result_console()
    console.print()
    if result.hits:
        console.print(hit_table(result.hits))
    else:
        message_console().print("No memory matches.")
    if result.retrieval_trace is not None:
        console.print(ending(result.retrieval_trace))


# `ekphory list`, `get` and `history`: read memories without ranking them.


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
