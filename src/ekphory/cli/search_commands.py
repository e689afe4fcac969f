"""`ekphory search`, `ask`, `list`, `get`, `related`, `gate-status` and `history`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer
from rich.console import Console

from ekphory.agent.provider import AgentOptions, ProviderName
from ekphory.agent_trace import StageResults, json_lines
from ekphory.cli.command import command, message_console, print_result, result_console
from ekphory.cli.options import MemoryId, OutputOptions, StoreOptions, open_existing
from ekphory.cli.output import (
    count_memories,
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
from ekphory.errors import InvalidInput
from ekphory.scope import get_owner
from ekphory.types import SupersededUse, TimeUse

if TYPE_CHECKING:
    from ekphory.memory import Memory
    from ekphory.search import SearchResult
    from ekphory.store.protocol import Order


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """What to find, and how.

    Attributes:
        k (--k -k): How many hits, 1 to 1000.
        filter (CONDITION): Only memories for which this condition holds.
        pool: Only this pool; repeatable, else all.
        min_score: Only hits of at least this probability, 0 to 1.
        now (TIME): The moment of asking, ISO 8601; else the current one.
        time: What a time in the question does: boost what lies in it, filter, or ignore.
        timezone (NAME): Where its days begin, such as Europe/Berlin.
        superseded: What becomes of memories that later ones supersede: recede, hide, or ignore.
        context (TEXT): A turn of the dialogue before the question, oldest first; repeatable.
        preset: The pipeline to rank with; else EKPHORY_PRESET, else balanced.
    """

    k: int = 10
    filter: str | None = None
    pool: list[str] | None = None
    min_score: float | None = None
    now: str | None = None
    time: TimeUse = "boost"
    timezone: str = "UTC"
    superseded: SupersededUse = "recede"
    context: list[str] | None = None
    preset: str | None = None

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `Memory.search` that they stand for."""
        given = asdict(self)
        return given | {"pools": given.pop("pool"), "context": self.context or ()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowOptions:
    """What is shown of a search.

    Attributes:
        explain: Show what every stage did, and all raw scores.
        prompt: Print the hits as a block for a model's prompt.
        max_tokens (N): With --prompt: most tokens of the block [2000].
    """

    explain: bool = False
    prompt: bool = False
    max_tokens: int | None = None

    def check(self) -> int:
        """Return the most tokens of a block; refuse what would be ignored."""
        if self.prompt and self.explain:
            raise InvalidInput("explain", True, "cannot be used with --prompt", "Leave one out")
        if self.max_tokens is not None and not self.prompt:
            problem = "limits the block of --prompt"
            raise InvalidInput("max_tokens", self.max_tokens, problem, "Add --prompt")
        return 2000 if self.max_tokens is None else self.max_tokens


@command
def search(
    query: str, asked: SearchOptions, where: StoreOptions, show: ShowOptions, output: OutputOptions
) -> None:
    """Find the memories that answer a question, best first.

    The number before a hit is the probability that it answers. Nothing found is an empty
    result, with exit code 0. With --json the hits come first; --explain adds the trace.

    Args:
        query: A question or some words; "" lists the newest.
    """
    max_tokens = show.check()
    with open_existing(where) as memory:
        result = memory.search(query, **asked.arguments())
        hint = "" if result.hits else _hint_at_nothing(memory)
    if show.prompt:
        block = result.prompt_block(max_tokens, now=asked.now)
        if output.json:
            print_json(block)
        else:
            typer.echo(block.text)
        if not block.included and any(each.reason == "budget" for each in block.left_out):
            problem = f"No memory fits into {max_tokens} tokens"
            message_console().print(f"{problem}. Give a larger --max-tokens.")
        return
    if output.json:
        print_json(describe_search(query, result, trace=show.explain))
        return
    console = result_console()
    _print_hits(console, result, hint)
    if show.explain:
        console.print()
        console.print(make_stage_table(result.trace))
        if result.hits:
            console.print(make_score_table(result.hits))


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCallOptions:
    """How the agent works.

    Attributes:
        provider: Who decides on the queries: local needs no key; else as it is configured, and
            local without a configuration.
        config (FILE): YAML file with the section retrieval_agent; else EKPHORY_CONFIG.
        stage_results: none, trace: tell the hops in the trace, or memory: in the answer context
            too.
        events (FILE): Write the session's events to this file, a JSON line each.
    """

    PANEL = "Agent"

    provider: ProviderName | None = None
    config: Path | None = None
    stage_results: StageResults = "none"
    events: Path | None = None


@command
def ask(
    question: str,
    asked: SearchOptions,
    agent: AgentCallOptions,
    where: StoreOptions,
    output: OutputOptions,
    *,
    answer_context: bool = False,
) -> None:
    """Follow a question from memory to memory, and show the chain of evidence as it grows.

    A question that needs one lookup takes one, as `ekphory search` does.

    Args:
        question: A question, however many lookups it needs.
        answer_context: Print the block for a prompt instead.
    """
    if not question.strip():
        remedy = "Give one, or see the newest memories with ekphory list"
        raise InvalidInput("question", question, "is empty", remedy)
    # Needs numpy, which `ekphory --version` does without.
    from ekphory.agent.configuration import read_agent_settings

    settings = None  # of the configuration here, or of the server's
    if agent.provider is not None or agent.config is not None:
        given = {"agent_session_provider": agent.provider}
        settings = read_agent_settings(agent.config, arguments=given)
    tell = None if output.json or answer_context else partial(print_event, result_console())
    options = AgentOptions(settings=settings, stage_results=agent.stage_results, on_event=tell)
    with open_existing(where) as memory:
        found = partial(memory.search, question, **asked.arguments())
        result = found(agent_mode=True, agent_options=options)
        hint = "" if result.hits else _hint_at_nothing(memory)
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
    _print_hits(console, result, hint)
    if result.hits and trace is not None and trace.is_doubtful:
        console.print("What was found likely does not answer the question.", style="yellow")
    if trace is not None:
        console.print(format_ending(trace))


@command
def list_memories(
    where: StoreOptions,
    output: OutputOptions,
    filter: str | None = None,  # noqa: A002  the option's name
    limit: int = 100,
    offset: int = 0,
    order: str = "newest",
) -> None:
    """List the memories of a scope, a page at a time.

    Args:
        filter (CONDITION): Only memories for which this condition holds.
        limit: How many to show.
        offset: How many to pass over first.
        order: newest, oldest or written.
    """
    with open_existing(where) as memory:
        page = memory.list(filter=filter, limit=limit, offset=offset, order=cast("Order", order))
        total = memory.count(filter=filter)
        hint = "" if total else _hint_at_nothing(memory)
    if output.json:
        print_json({"memories": page, "total": total, "offset": offset, "order": order})
        return
    result_console().print(make_memory_table(page, first=offset + 1))
    end = offset + len(page)
    shown = f"{offset + 1:,} to {end:,}" if page else "None shown"
    more = f"; go on with --offset {end}" if page and end < total else ""
    told = f"{shown} of {count_memories(total)}{more}." if total else hint or "No memory matches."
    message_console().print(told, style="dim")


@command
def related(memory_id: MemoryId, where: StoreOptions, output: OutputOptions, k: int = 10) -> None:
    """Show the memories that are like one, the nearest first.

    What came from the same file: ekphory list --filter "path = 'notes/plan.md'".

    Args:
        k (--k -k): How many, 1 to 999.
    """
    with open_existing(where) as memory:
        found = memory.related(memory_id, k=k)
    table = make_memory_table(found) if found else None
    nothing = "No other memory is seen here."
    print_result(output, {"id": memory_id, "memories": found}, table, nothing=nothing)


@command
def gate_status(where: StoreOptions, output: OutputOptions, preset: str | None = None) -> None:
    """Show when a preset's gate lets the reranker run, and how often it did.

    Counted are the searches that are recorded with EKPHORY_RECORD_SEARCHES.

    Args:
        preset: Whose; else EKPHORY_PRESET, else balanced.
    """
    with open_existing(where) as memory:
        status = memory.gate_status(preset=preset)
    print_result(output, status, "\n".join(status.in_words()))


def _print_hits(console: Console, result: SearchResult, hint: str) -> None:
    if result.hits:
        listed = make_memory_table([hit.memory for hit in result.hits])
        console.print(make_hit_table(result.hits) if result.was_asked else listed)
        return
    reason = "reaches --min-score" if result.abstained else "matches"
    message_console().print(f"No memory {reason}. {hint}".rstrip())


def _hint_at_nothing(memory: Memory) -> str:
    """Say that a scope holds nothing, where that is why nothing was found."""
    if memory.count():
        return ""
    named = ", ".join(memory.scope.named())
    return f"There are no memories{named and f' of {named}'} in this store."


@command
def get(memory_id: MemoryId, where: StoreOptions, output: OutputOptions) -> None:
    """Show one memory whole; a missing id is an error."""
    with open_existing(where) as memory:
        record = memory.get(memory_id)
    print_result(output, record, make_record_table(record))


@command
def history(memory_id: MemoryId, where: StoreOptions, output: OutputOptions) -> None:
    """Show a memory and the versions that it replaced, newest first."""
    from ekphory.revise import find_successors

    with open_existing(where) as memory:
        versions = memory.history(memory_id)
        pairs = memory.revisions(of=[memory_id])
    decided = find_successors(pairs).get((get_owner(versions[0]), memory_id))
    told = {"superseded_by": decided and decided.newer.id, "since": decided and decided.since}
    found = {"id": memory_id, "versions": versions, **told}
    print_result(output, found, make_history_table(versions, decided=decided))
