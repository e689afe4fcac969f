"""`ekphory ask`: follow a question from memory to memory, and show the chain as it grows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ekphory.agent.settings import ProviderName
from ekphory.agent_trace.retrieval_trace import StageResults
from ekphory.cli.chain_printing import ChainPrinter, ending
from ekphory.cli.command import command
from ekphory.cli.consoles import message_console, result_console
from ekphory.cli.json_output import print_json, search_json
from ekphory.cli.memory_printing import hit_table
from ekphory.cli.open_store import open_existing
from ekphory.cli.options import OutputOptions, StoreOptions
from ekphory.cli.search_command import SearchOptions

if TYPE_CHECKING:
    from ekphory.results import SearchResult


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
    from ekphory.agent.configuration.reading import read_agent_settings
    from ekphory.agent.settings import AgentOptions
    from ekphory.agent_trace.event_log import json_lines

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
