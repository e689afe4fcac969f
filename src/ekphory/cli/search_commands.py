"""`ekphory search`, `ask`, `list`, `get` and `history`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ekphory.agent.provider import AgentOptions, ProviderName
from ekphory.agent_trace import StageResults, json_lines
from ekphory.cli.command import command, message_console, print_result, result_console
from ekphory.cli.options import MemoryId, OutputOptions, StoreOptions, open_existing
from ekphory.cli.output import (
    describe_search,
    format_ending,
    make_history_table,
    make_hit_table,
    make_memory_table,
    make_record_table,
    make_score_table,
    make_stage_table,
    print_event,
    print_json,
)
from ekphory.types import SupersededUse, TimeUse

if TYPE_CHECKING:
    from ekphory.store.protocol import Order

_FilterOption = Annotated[
    str | None,
    typer.Option(metavar="CONDITION", help="Only memories for which this condition holds."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """What to find, and how."""

    k: Annotated[int, typer.Option("--k", "-k", help="How many hits, 1 to 1000.")] = 10
    filter: _FilterOption = None
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
    superseded: Annotated[
        SupersededUse,
        typer.Option(
            help="What becomes of memories that later ones supersede: recede, hide, or ignore."
        ),
    ] = "recede"
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

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `Memory.search` that they stand for."""
        given = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        given |= {"pools": given.pop("pool"), "context": self.context or ()}
        return given


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowOptions:
    """What is shown of a search."""

    explain: Annotated[
        bool, typer.Option("--explain", help="Show what every stage did, and all raw scores.")
    ] = False
    prompt: Annotated[
        bool, typer.Option("--prompt", help="Print the hits as a block for a model's prompt.")
    ] = False
    max_tokens: Annotated[
        int, typer.Option(metavar="N", help="With --prompt: most tokens of the block.")
    ] = 2000


@command
def search(
    query: Annotated[str, typer.Argument(help='A question or some words; "" lists the newest.')],
    asked: SearchOptions,
    where: StoreOptions,
    show: ShowOptions,
    output: OutputOptions,
) -> None:
    """Find the memories that answer a question, best first.

    The number before a hit is the probability that it answers. Nothing found is an empty
    result, with exit code 0. With --json the hits come first; --explain adds the trace.
    """
    with open_existing(where) as memory:
        result = memory.search(query, **asked.arguments())
    if show.prompt:
        block = result.prompt_block(show.max_tokens, now=asked.now)
        if output.json:
            print_json(block)
        else:
            typer.echo(block.text)
        return
    if output.json:
        print_json(describe_search(query, result, trace=show.explain))
        return
    console = result_console()
    if result.hits:
        console.print(make_hit_table(result.hits))
    else:
        reason = "reaches --min-score" if result.abstained else "matches"
        message_console().print(f"No memory {reason}.")
    if show.explain:
        console.print()
        console.print(make_stage_table(result.trace))
        if result.hits:
            console.print(make_score_table(result.hits))


_agent_option = partial(typer.Option, rich_help_panel="Agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCallOptions:
    """How the agent works."""

    provider: Annotated[
        ProviderName | None,
        _agent_option(
            help="Who decides on the queries: local needs no key; else as it is configured, "
            "and local without a configuration."
        ),
    ] = None
    config: Annotated[
        Path | None,
        _agent_option(
            metavar="FILE", help="YAML file with the section retrieval_agent; else EKPHORY_CONFIG."
        ),
    ] = None
    stage_results: Annotated[
        StageResults,
        _agent_option(
            help="none, trace: tell the hops in the trace, or memory: in the answer context too."
        ),
    ] = "none"
    events: Annotated[
        Path | None,
        _agent_option(
            metavar="FILE", help="Write the session's events to this file, a JSON line each."
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
    # Needs numpy, which `ekphory --version` does without.
    from ekphory.agent.configuration import read_agent_settings

    settings = read_agent_settings(
        agent.config, arguments={"agent_session_provider": agent.provider}
    )
    quiet = output.json or answer_context
    options = AgentOptions(
        settings=settings,
        stage_results=agent.stage_results,
        on_event=None if quiet else partial(print_event, result_console()),
    )
    with open_existing(where) as memory:
        result = memory.search(
            question, **asked.arguments(), agent_mode=True, agent_options=options
        )
    trace = result.retrieval_trace
    if agent.events is not None and trace is not None:
        agent.events.write_text("\n".join(json_lines(trace.events)) + "\n", encoding="utf-8")
    if output.json:
        print_json(describe_search(question, result, trace=False))
        return
    if answer_context:
        typer.echo(result.answer_context(now=asked.now))
        return
    console = result_console()
    console.print()
    if result.hits:
        console.print(make_hit_table(result.hits))
    else:
        message_console().print("No memory matches.")
    if trace is not None:
        console.print(format_ending(trace))


@command
def list_memories(
    where: StoreOptions,
    output: OutputOptions,
    filter: _FilterOption = None,  # noqa: A002  the option's name
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
    result_console().print(make_memory_table(page, first=offset + 1))
    end = offset + len(page)
    shown = f"{offset + 1:,} to {end:,} of {total:,}" if page else f"None shown of {total:,}"
    more = f"; go on with --offset {end}" if page and end < total else ""
    message_console().print(f"{shown} memories{more}.", style="dim")


@command
def get(
    memory_id: MemoryId,
    where: StoreOptions,
    output: OutputOptions,
) -> None:
    """Show one memory whole; a missing id is an error."""
    with open_existing(where) as memory:
        record = memory.get(memory_id)
    print_result(output, record, make_record_table(record))


@command
def history(
    memory_id: MemoryId,
    where: StoreOptions,
    output: OutputOptions,
) -> None:
    """Show a memory and the versions that it replaced, newest first."""
    with open_existing(where) as memory:
        versions = memory.history(memory_id)
    print_result(output, {"id": memory_id, "versions": versions}, make_history_table(versions))
