"""`ekphory add`, `update`, `forget`, `supersede`, and what else writes or tells what changed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from typing import cast

import typer

from ekphory.cli.capture_commands import find_hook_state
from ekphory.cli.command import command, message_console, print_result, step_bar
from ekphory.cli.options import (
    MemoryId,
    OutputOptions,
    StoreOptions,
    open_existing,
    open_for_writing,
    read_metadata,
    settings_for,
)
from ekphory.cli.output import (
    count_memories,
    describe_mistakes,
    make_profile_table,
    make_revision_table,
    make_timeline_table,
)
from ekphory.errors import InvalidInput
from ekphory.filters.tree import EVERYTHING, Field, Filter, In
from ekphory.types import RevisionKind


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFields:
    """The fields of a memory beside its text; its session is that of the scope.

    Attributes:
        id: Its id; it alone then decides what is there already.
        at (TIME): When it happened, ISO 8601; else now.
        producer: Who said it.
        produced_for: Whom it was said to.
        role: Chat role: user, assistant, …
        sequence: Position within its session.
        pool: Its pool; agent_memory by default.
        type: episodic, semantic, procedural or unknown; else predicted.
        importance: From 0 to 1; else predicted.
        expires_at (TIME): From then on it is hidden.
        source: Where it comes from.
        metadata (KEY=VALUE): A field of your own; repeatable.
    """

    PANEL = "The memory"

    id: str | None = None
    at: str | None = None
    producer: str | None = None
    produced_for: str | None = None
    role: str | None = None
    sequence: int | None = None
    pool: str | None = None
    type: str | None = None
    importance: float | None = None
    expires_at: str | None = None
    source: str | None = None
    metadata: list[str] | None = None


SAMPLED = (
    "The text is longer than 60,000 characters: it is stored whole and found by its words, "
    "and 64 windows spread over it are searched by meaning. Import it as a document to have all "
    "of it searched so."
)


@command
def add(
    text: str,
    fields: MemoryFields,
    where: StoreOptions,
    output: OutputOptions,
    *,
    redact: bool = False,
) -> None:
    """Remember one text.

    On return it is durable. What is there already is skipped, not doubled.

    Args:
        text: What to remember; - reads standard input.
        redact: Cut out passwords, keys and other secrets before anything is written.
    """
    given = asdict(fields) | {"metadata": read_metadata(fields.metadata), "redact": redact}
    with open_for_writing(where) as memory:
        report = memory.add(_read_text(text), **given)
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
        found = error.object[error.start : error.start + 8]
        raise InvalidInput("text", found, "must be UTF-8", "Convert the text") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The fields of a memory that can change.

    Attributes:
        text: The new text.
        at (TIME): When it happened, ISO 8601.
        type: episodic, semantic, procedural or unknown.
        importance: From 0 to 1.
        expires_at (TIME): From then on it is hidden.
        metadata (KEY=VALUE): Your own fields; they replace all earlier ones. Repeatable.
    """

    text: str | None = None
    at: str | None = None
    type: str | None = None
    importance: float | None = None
    expires_at: str | None = None
    metadata: list[str] | None = None


@command
def update(
    memory_id: MemoryId, changes: Changes, where: StoreOptions, output: OutputOptions
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
    *,
    memory_id: str | None = None,
    filter: str | None = None,  # noqa: A002  the option's name
    purge: bool = False,
    yes: bool = False,
) -> None:
    """Forget one memory, all that match a condition, or all of --session, with their history.

    Forgetting more than one asks first; where nobody can be asked, it needs --yes.

    Args:
        memory_id ([ID]): The memory's id.
        filter (CONDITION): Forget all for which this condition holds.
        purge: Leave no byte of the text on disk; takes longer.
        yes (--yes -y): Do not ask.
    """
    condition: str | Filter | None = filter
    is_session = memory_id is None and filter is None and where.session is not None
    if is_session:
        condition = EVERYTHING
    with open_existing(where) as memory:
        several = condition is not None and memory_id is None
        affected = memory.count(filter=condition) if several else 1
        if affected > 1 and not yes:
            _confirm(affected)
        with _hold_what_waits(where) if is_session else nullcontext():
            forgotten = memory.forget(memory_id, filter=condition, purge=purge)
    noun, whose = ("memory", "its") if forgotten == 1 else ("memories", "their")
    trace = f", and {whose} text is wiped from the disk" if purge else ""
    shown = f"{forgotten:,} {noun} forgotten{trace}."
    print_result(output, {"forgotten": forgotten, "purged": purge}, shown)


@contextmanager
def _hold_what_waits(where: StoreOptions) -> Iterator[None]:
    """Let what hooks have noted of a session not be captured while it is forgotten, nor after."""
    from ekphory.hooks.running import leave_out_waiting

    settings, state = settings_for(where), find_hook_state(where)
    scope = {"org": settings.org, "project": settings.project}
    with state.hold_captures():
        leave_out_waiting(state, session=settings.session or "", **scope)
        yield


def _confirm(affected: int) -> None:
    if not sys.stdin.isatty():
        problem = "nobody can be asked whether to forget them all"
        remedy = "Add --yes when that is meant"
        raise InvalidInput("filter", f"{affected} memories match", problem, remedy)
    message_console().print(f"Forget {count_memories(affected)}? [y/N] ", end="", style="yellow")
    if input().strip().lower() not in ("y", "yes"):
        message_console().print("Nothing was forgotten.")
        raise typer.Exit(0)


# Pools as a workflow.


@command
def learn_mistake(
    what: str, where: StoreOptions, output: OutputOptions, *, fix: str, shared: bool = False
) -> None:
    """Remember a mistake and what was learnt from it; searches weigh mistakes more.

    Args:
        what: What went wrong.
        fix: How it is put right, or avoided.
        shared: Let the whole project see it, not this agent alone.
    """
    with open_for_writing(where) as memory:
        made = memory.learn_mistake(what, fix=fix, shared=shared)
    print_result(output, {"id": made}, f"Remembered as {made}")


@command
def add_rule(text: str, where: StoreOptions, output: OutputOptions) -> None:
    """Add a rule that every search of the project finds first.

    It enters every later prompt of all agents.

    Args:
        text: The rule.
    """
    with open_for_writing(where) as memory:
        made = memory.add_rule(text)
    print_result(output, {"id": made}, f"Added {made}")


@command
def promote(
    memory_id: MemoryId, where: StoreOptions, output: OutputOptions, pool: str = "shared_knowledge"
) -> None:
    """Copy a memory into a pool that the whole project sees.

    Args:
        pool: shared_knowledge, shared_mistakes or shared_rules.
    """
    with open_existing(where) as memory:
        made = memory.promote(memory_id, pool=pool)
    print_result(output, {"id": made}, f"Copied into {pool} as {made}")


@command
def supersede(
    old: str,
    where: StoreOptions,
    output: OutputOptions,
    *,
    by: str,
    kind: str = "replaces",
    at: str | None = None,
) -> None:
    """Say that one memory takes the place of another; both are kept.

    Searches put the older one below the newer one from then on. `unsupersede` takes it back.

    Args:
        old (ID): The memory that holds no more.
        by (ID): The memory that takes its place.
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
    revision: str | None = None,
    batch: str | None = None,
) -> None:
    """Take back a decision on what supersedes what, or set a conflict aside.

    Args:
        revision ([REVISION]): The decision.
        batch (BATCH): All decisions of this batch instead.
    """
    with open_existing(where) as memory:
        count = memory.unsupersede(revision=revision, batch=batch)
    noun = "decision" if count == 1 else "decisions"
    print_result(output, {"undone": count}, f"{count:,} {noun} taken back.")


@command
def conflicts(
    where: StoreOptions, output: OutputOptions, *, scan: bool = False, limit: int = 100
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
    texts = {each.id: each.text for each in told}
    table = make_revision_table(found, texts) if found else None
    print_result(output, {"conflicts": found}, table, nothing="No conflicts.")


@command
def revisions(
    where: StoreOptions, output: OutputOptions, *, of: list[str] | None = None, limit: int = 100
) -> None:
    """List the decisions on what supersedes what, with those that act, the newest first.

    Take one back with `unsupersede`.

    Args:
        of: Only those on this memory; may be given several times.
        limit: How many to show.
    """
    with open_existing(where) as memory:
        pairs = memory.revisions(of=of, limit=limit)
    found = [pair.revision for pair in pairs]
    texts = {each.id: each.text for pair in pairs for each in (pair.older, pair.newer)}
    table = make_revision_table(found, texts) if found else None
    print_result(output, {"revisions": found}, table, nothing="No decisions.")


@command
def timeline(
    topic: str, where: StoreOptions, output: OutputOptions, k: int = 20, now: str | None = None
) -> None:
    """Show the states of a topic in the order in which they held.

    Args:
        topic: Words that name it, such as: where I live.
        k (--k -k): Most states, the newest ones.
        now (TIME): The moment of asking, ISO 8601; else the current one.
    """
    with open_existing(where) as memory:
        states = memory.timeline(topic, k=k, now=now)
    table = make_timeline_table(states) if states else None
    print_result(output, {"topic": topic, "states": states}, table, nothing="No memory matches.")


@command
def profile(
    where: StoreOptions, output: OutputOptions, k: int = 50, now: str | None = None
) -> None:
    """Show the lasting facts and preferences that hold now, each with its evidence.

    Args:
        k (--k -k): Most entries.
        now (TIME): The moment of asking, ISO 8601; else the current one.
    """
    with open_existing(where) as memory:
        entries = memory.profile(k=k, now=now)
    table = make_profile_table(entries) if entries else None
    nothing = "No lasting fact or preference is known."
    print_result(output, {"profile": entries}, table, nothing=nothing)


@command
def mistakes(where: StoreOptions, output: OutputOptions, least: int = 2) -> None:
    """Count the mistakes that several agents of the project made and nobody shared.

    Neither who made them nor what they wrote is shown.

    Args:
        least: How many agents must have made one.
    """
    with open_existing(where) as memory:
        found = memory.repeated_mistakes(least=least)
    told = describe_mistakes(found) if found else None
    nothing = "No mistake of several agents is unshared."
    print_result(output, {"mistakes": found}, told, nothing=nothing)


@command
def settle(where: StoreOptions, output: OutputOptions, timeout: float | None = None) -> None:
    """Wait until everything that was written is compared with earlier memories.

    Args:
        timeout (SECONDS): Give up waiting after so long.
    """
    with open_existing(where) as memory:
        memory.settle(timeout)
    print_result(output, {"settled": True}, "All memories are compared.")
