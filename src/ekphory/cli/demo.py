"""`ekphory demo`: a year of somebody's life, remembered and searched."""

from __future__ import annotations

import json
import shlex
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.rule import Rule
from rich.table import Column, Table
from rich.text import Text

from ekphory.agent.provider import AgentOptions, AgentSettings
from ekphory.agent_trace import StageResult
from ekphory.cli.command import command, message_console, result_console, show_note
from ekphory.cli.options import OutputOptions
from ekphory.cli.output import (
    describe_search,
    format_hop,
    make_history_table,
    make_hit_table,
    make_printable,
    make_score_table,
    make_stage_table,
    make_table,
    number_column,
    print_json,
    word_column,
)
from ekphory.config import read_settings
from ekphory.types import Hit, MemoryRecord

if TYPE_CHECKING:
    from ekphory.capture import CaptureReport
    from ekphory.memory import Memory
    from ekphory.search import SearchResult


DEMO_NOW = datetime(2026, 10, 1, 9, 0, tzinfo=UTC)
"""The moment at which the demo's questions are asked."""


@dataclass(frozen=True, slots=True)
class DemoQuestion:
    """One question that the demo asks.

    Attributes:
        text: The question.
        shows: What it demonstrates: `meaning`, `time`, `type`, `importance`, `update` or `chain`.
        expected: Ids of the memories that answer it; one of them is enough.
        chain: Ids of the memories to go through, in order, where one lookup is not enough.
    """

    text: str
    shows: str
    expected: tuple[str, ...]
    chain: tuple[str, ...] = ()


def demo_records() -> Iterator[dict[str, object]]:
    """Return the demo's memories as records for `Memory.add_many`, the conversation in order."""
    return _read_rows("conversation.jsonl")


def demo_questions() -> tuple[DemoQuestion, ...]:
    """Return the demo's questions in the order in which they are best shown."""
    return tuple(
        DemoQuestion(row["text"], row["shows"], tuple(row["expected"]), tuple(row.get("chain", ())))
        for row in _read_rows("questions.jsonl")
    )


def _read_rows(name: str) -> Iterator[dict[str, Any]]:
    text = files("ekphory.cli").joinpath("demo_data", name).read_text(encoding="utf-8")
    return map(json.loads, text.splitlines())


_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Scene:
    """One search that the demo shows.

    Attributes:
        shows: What it demonstrates.
        query: What is asked.
        filter: The condition; None asks without one.
        pool: The only pool searched; None searches all.
    """

    shows: str
    query: str
    filter: str | None = None
    pool: str | None = None


@dataclass(frozen=True, slots=True)
class DemoAnswer:
    """What the demo found for one of its questions.

    Attributes:
        question: The question.
        rank: Rank, from 1, of the first expected memory among those shown; None for a miss.
        hit: That memory, or else the first hit.
        milliseconds: How long the search took.
        hops: What the agent found on the way, where one lookup was not enough.
    """

    question: DemoQuestion
    rank: int | None
    hit: Hit
    milliseconds: float
    hops: tuple[StageResult, ...] = ()


@dataclass(frozen=True, slots=True)
class Showing:
    """Everything that the demo did.

    Attributes:
        added, seconds: How many memories were added, and how long that took.
        scenes: The searches with their results.
        versions: The updated memory with its history, newest first.
        answers: What was found for each question.
        captured: What was kept of a session, and the messages of it.
        known: What the next session finds of it.
    """

    added: int
    seconds: float
    scenes: tuple[tuple[Scene, SearchResult], ...]
    versions: tuple[MemoryRecord, ...]
    answers: tuple[DemoAnswer, ...]
    captured: CaptureReport
    known: SearchResult

    @property
    def answered(self) -> int:
        """How many questions have an expected memory among the first hits."""
        return sum(answer.rank is not None for answer in self.answers)


def demo_scenes() -> tuple[Scene, ...]:
    """Return the searches that the demo shows, in their order."""
    return tuple(Scene(**row) for row in _read_rows("scenes.jsonl"))


_NEXT_SESSION = "Do we install packages with pip or with uv?"
_RENEWED = "fact-passport"
_RENEWED_TEXT = "Mara's passport was replaced; the new one is valid until 1 October 2036."


def show(memory: Memory) -> Showing:
    """Add the demo's conversation, search it, ask its questions and update a memory."""
    started = time.perf_counter()
    added = memory.add_many(demo_records()).added
    seconds = time.perf_counter() - started
    memory.settle()
    scenes = tuple((scene, _play(memory, scene)) for scene in demo_scenes())
    answers = tuple(_ask(memory, question) for question in demo_questions())
    memory.update(_RENEWED, text=_RENEWED_TEXT, expires_at="2036-10-01T00:00:00Z")
    versions = tuple(memory.history(_RENEWED))
    captured = memory.capture(list(_read_rows("session.jsonl")), session="labels")
    known = memory.search(_NEXT_SESSION, k=1, now=DEMO_NOW)
    return Showing(added, seconds, scenes, versions, answers, captured, known)


def _play(memory: Memory, scene: Scene) -> SearchResult:
    pools = None if scene.pool is None else [scene.pool]
    return memory.search(scene.query, k=_SHOWN, now=DEMO_NOW, filter=scene.filter, pools=pools)


def _ask(memory: Memory, question: DemoQuestion) -> DemoAnswer:
    started = time.perf_counter()
    result = memory.search(
        question.text,
        k=_SHOWN,
        now=DEMO_NOW,
        agent_mode=bool(question.chain),
        agent_options=AgentOptions(settings=AgentSettings(agent_session_provider="local")),
    )
    milliseconds = (time.perf_counter() - started) * 1000
    hits = result.hits
    ranked = ((rank, hit) for rank, hit in enumerate(hits, start=1) if hit.id in question.expected)
    rank, hit = next(ranked, (None, hits[0]))
    hops = () if result.retrieval_trace is None else result.retrieval_trace.hops
    return DemoAnswer(question, rank, hit, milliseconds, hops)


@command
def demo(output: OutputOptions, keep: Path | None = None) -> None:
    """Remember a bundled conversation and search it, in a store of its own.

    Touches none of your stores. With --keep you can go on asking it.

    Args:
        keep (DIR): Keep the store in this directory; else it is deleted.
    """
    from ekphory.memory import Memory

    with (
        _open_directory(keep) as directory,
        Memory(directory, embedder=read_settings().embedder) as memory,
        show_note("remembering and searching"),
    ):
        showing = show(memory)
    if output.json:
        print_json(_make_report(showing, keep))
    else:
        _print_showing(showing, keep)


@contextmanager
def _open_directory(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="ekphory-demo-") as temporary:
        yield Path(temporary) / "memories"


def _make_report(showing: Showing, keep: Path | None) -> dict[str, object]:
    return {
        "store": keep,
        "added": showing.added,
        "seconds": showing.seconds,
        "searches": [
            {"shows": scene.shows, "filter": scene.filter, "pool": scene.pool}
            | describe_search(scene.query, result, trace=False)
            for scene, result in showing.scenes
        ],
        "history": showing.versions,
        "questions": showing.answers,
        "answered": showing.answered,
        "captured": showing.captured,
        "known": describe_search(_NEXT_SESSION, showing.known, trace=False),
    }


def _print_showing(showing: Showing, keep: Path | None) -> None:
    console = result_console()
    console.print(Rule("ekphory: a year with Mara, who renovates a flat", style="cyan"))
    console.print(
        f"{showing.added} memories of eight conversations added in {showing.seconds:.1f} s: "
        "durable, indexed, searchable at once.\n"
    )
    for scene, result in showing.scenes:
        _print_command(console, scene)
        console.print(make_hit_table(result.hits))
        console.print()
    _, first = showing.scenes[0]
    console.print(Text("What the first search did, as --explain shows it:", style="bold"))
    console.print(make_stage_table(first.trace))
    console.print(make_score_table(first.hits))
    console.print(Text("What changes is kept as history:", style="bold"))
    console.print(make_history_table(showing.versions))
    console.print()
    _print_capture(console, showing)
    console.print(_make_answer_table(showing))
    for answer in showing.answers:
        _print_chain(console, answer)
    _print_next_steps(keep)


def _print_capture(console: Console, showing: Showing) -> None:
    report = showing.captured
    told = (
        f"Of a session of {len(report.kept) + len(report.dropped)} messages is kept, with "
        f"{report.redactions} secret cut out:"
    )
    console.print(Text(told, style="bold"))
    for each in report.kept:
        console.print(Text.assemble((f"  {each.class_}  ", "dim"), make_printable(each.text)))
    console.print(Text(f"\nThe next session asks: {_NEXT_SESSION}", style="bold"))
    console.print(make_hit_table(showing.known.hits))
    console.print()


def _print_chain(console: Console, answer: DemoAnswer) -> None:
    if not answer.hops:
        return
    command = f'ekphory ask "{answer.question.text}"'
    console.print(Text.assemble(("Hop by hop\n", "bold"), (f"$ {command}", "cyan")))
    for hop in answer.hops:
        console.print(format_hop(hop), soft_wrap=True)
    console.print(Text(f"  {make_printable(answer.hit.text)}\n"), soft_wrap=True)


def _print_command(console: Console, scene: Scene) -> None:
    words = f'ekphory search "{scene.query}" --k 3'
    if scene.filter is not None:
        words += f' --filter "{scene.filter}"'
    if scene.pool is not None:
        words += f" --pool {scene.pool}"
    console.print(Text.assemble((f"{scene.shows.capitalize()}\n", "bold"), (f"$ {words}", "cyan")))


def _make_answer_table(showing: Showing) -> Table:
    speed = median(answer.milliseconds for answer in showing.answers)
    table = make_table(
        f"{showing.answered} of {len(showing.answers)} questions find an expected memory "
        f"among the first three; {speed:.0f} ms each",
        *(word_column(""), Column("question", ratio=2, overflow="fold"), word_column("shows")),
        *(number_column("rank"), word_column("found", ratio=3, overflow="ellipsis")),
    )
    table.title_style, table.expand = "bold", True
    for answer in showing.answers:
        found = answer.rank is not None
        table.add_row(
            Text("✓", style="green") if found else Text("✗", style="red"),
            Text(answer.question.text),
            Text(answer.question.shows, style="dim"),
            Text(str(answer.rank) if found else "–"),
            Text(make_printable(answer.hit.text), style="" if found else "dim"),
        )
    return table


def _print_next_steps(keep: Path | None) -> None:
    console = message_console()
    if keep is not None:
        console.print(f"\nThe store is kept in {keep}. Ask it something else:")
        store = shlex.quote(str(keep))
        console.print(f'  ekphory search "Who is Bram?" --store {store}', style="cyan")
    console.print("\nNow with memories of your own:")
    console.print('  ekphory add "I prefer Python over JavaScript" --producer me', style="cyan")
    console.print("  ekphory import PATH-OF-A-CHAT-EXPORT", style="cyan")
    console.print('  ekphory search "what language do I like?" --explain', style="cyan")
