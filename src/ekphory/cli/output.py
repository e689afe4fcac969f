"""Results as JSON with keys that stay, and for people."""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from ekphory import agent_trace
from ekphory.errors import InvalidInput
from ekphory.types import Hit, MemoryRecord, Revision, StageTrace, Trace, to_plain_data

if TYPE_CHECKING:
    from ekphory.mistakes import RepeatedMistake
    from ekphory.revise import DecidedPair, ProfileEntry, State
    from ekphory.search import SearchResult


def print_json(value: object) -> None:
    """Print one JSON document on standard output."""
    encoding = (sys.stdout.encoding or "ascii").lower()
    text = json.dumps(to_plain_data(value), indent=2, ensure_ascii=not encoding.startswith("utf"))
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def write_json(value: object, file: Path) -> None:
    """Write one JSON document to a file, whose folder is made if need be."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(to_plain_data(value), indent=2) + "\n", encoding="utf-8")


def describe_search(query: str, result: SearchResult, *, trace: bool) -> dict[str, object]:
    """Return a search's hits first, what the agent did where it was asked, and the trace."""
    found: dict[str, object] = {**result.to_dict(), "query": query}
    if result.retrieval_trace is not None:
        found["retrieval_trace"] = result.retrieval_trace.to_dict()
    if trace:
        found["trace"] = result.trace.to_dict()
    return found


def describe_error(error: BaseException, message: str) -> dict[str, object]:
    """Return an error with what a program needs to act on it."""
    described: dict[str, object] = {"type": type(error).__name__, "message": message}
    if isinstance(error, InvalidInput):
        described |= {"field": error.field, "value": error.value, "remedy": error.remedy}
    if isinstance(error, KeyboardInterrupt) and (report := getattr(error, "report", None)):
        described["report"] = report
    return {"error": described}


def count_memories(number: int) -> str:
    """Return the number of memories in words: "1 memory", "2,000 memories"."""
    return f"{number:,} {'memory' if number == 1 else 'memories'}"


def format_memory_count(memories: int, versions: int) -> str:
    """Return the number of memories and of their earlier versions."""
    counted = f"{versions:,} earlier {'version' if versions == 1 else 'versions'}"
    return f"{count_memories(memories)} and {counted}"


_LONGEST = 400
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_DEFAULTS = {"type": "unknown", "pool": "agent_memory", "importance": 0.5, "session": None}


def make_printable(text: str) -> str:
    """Show control characters escaped, so that a stored text cannot steer the terminal."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def format_timestamp(at: datetime) -> str:
    """Show a moment in UTC, to the minute."""
    return at.strftime("%Y-%m-%d %H:%MZ") if at.year > 999 else at.isoformat()


def make_hit_table(hits: Sequence[Hit]) -> Table:
    """Show hits, best first: rank, score, text, and a line about the memory."""
    styles = ("bold green" if hit.score >= 0.5 else "green" for hit in hits)
    return _make_grid(
        (
            (rank, Text(f"{hit.score:.2f}", style=style), hit.memory)
            for rank, (hit, style) in enumerate(zip(hits, styles, strict=True), start=1)
        ),
        notes=[_tell_superseded(hit.superseded_by, hit.since) for hit in hits],
    )


def _tell_superseded(by: str | None, since: datetime | None) -> str:
    return "" if by is None or since is None else f"superseded by {by} since {since:%Y-%m-%d}"


def make_memory_table(records: Sequence[MemoryRecord], *, first: int = 1) -> Table:
    """Show memories: number, text, and a line about each."""
    return _make_grid(
        (number, Text(""), record) for number, record in enumerate(records, start=first)
    )


def make_history_table(
    versions: Sequence[MemoryRecord], *, decided: DecidedPair | None = None
) -> Table:
    """Show a memory's versions, the current one first; `decided` says what holds in its place."""
    states = ["now" if record.superseded_by is None else "was" for record in versions]
    notes = [""] * len(versions)
    if decided is not None:
        states[0], notes[0] = "was", _tell_superseded(decided.newer.id, decided.since)
    rows = zip(range(len(versions), 0, -1), states, versions, strict=True)
    marked = ((number, Text(state, style="green"), record) for number, state, record in rows)
    return _make_grid(marked, notes=notes)


def make_timeline_table(states: Sequence[State]) -> Table:
    """Show the states of a topic, the earliest first, each with from when to when it held."""
    return _make_grid(
        (number, Text(_format_span(state), style="green"), state.memory)
        for number, state in enumerate(states, start=1)
    )


def _format_span(state: State) -> str:
    until = "now" if state.until is None else f"{state.until:%Y-%m-%d}"
    return f"{state.since:%Y-%m-%d} to {until}"


def describe_mistakes(found: Sequence[RepeatedMistake]) -> str:
    """Return a line for each repeated mistake, and what to do about them."""
    lines = []
    for each in found:
        first, last = each.first.date(), each.last.date()
        when = f"on {first}" if first == last else f"between {first} and {last}"
        made = f"{each.owners:,} agents made the same mistake"
        lines.append(f"{made}, {each.memories:,} times {when}.")
    lines.append("Ask them to `ekphory promote ID --pool shared_mistakes`.")
    return "\n".join(lines)


def make_profile_table(entries: Sequence[ProfileEntry]) -> Table:
    """Show lasting facts: how sure each is, its text, since when, and what tells it."""
    table = Table.grid(word_column(style="green"), Column(overflow="fold"), padding=(0, 1))
    for entry in entries:
        body = Text(make_printable(entry.text))
        told = [make_printable(entry.producer)] if entry.producer else []
        told += [f"since {entry.since:%Y-%m-%d}", ", ".join(entry.evidence)]
        body.append("\n" + " · ".join(told), style="dim")
        table.add_row(f"{entry.probability:.2f}", body)
    return table


def make_revision_table(revisions: Sequence[Revision], texts: Mapping[str, str]) -> Table:
    """Show decisions: how sure each is, what the newer memory does, and both texts."""
    table = Table.grid(word_column(style="green"), Column(overflow="fold"), padding=(0, 1))
    for each in revisions:
        body = Text(each.kind, style="bold")
        for place, name in (("older", each.older), ("newer", each.newer)):
            text = make_printable(texts.get(name, "(has expired)"))
            body.append(f"\n{place} {name}: {text}", style="not bold")
        told = f"\n{each.id} · {each.state} · by {each.decided_by} · batch {each.batch}"
        body.append(told, style="dim not bold")
        table.add_row(f"{each.probability:.2f}", body)
    return table


def make_record_table(record: MemoryRecord) -> Table:
    """Show every field that a memory has, and its whole text."""
    table = Table.grid(word_column(style="dim"), Column(overflow="fold"), padding=(0, 2))
    for name in record.__dataclass_fields__:
        value = getattr(record, name)
        if name == "predicted" or value is None or value == "" or value == {}:
            continue
        shown = value.isoformat() if isinstance(value, datetime) else value
        if isinstance(shown, Mapping):
            shown = ", ".join(f"{key}={entry!r}" for key, entry in shown.items())
        style = "bold" if name == "text" else ""
        table.add_row(name, Text(make_printable(_mark_predicted(record, name, shown)), style=style))
    return table


def _make_grid(
    rows: Iterable[tuple[int, Text, MemoryRecord]], *, notes: Sequence[str] = ()
) -> Table:
    """Show memories, each with its number, a mark beside it, and a note below if it has one."""
    columns = number_column(), word_column(), Column(overflow="fold")
    table = Table.grid(*columns, padding=(0, 1))
    listed = list(rows)
    for (number, mark, record), note in zip(listed, notes or [""] * len(listed), strict=True):
        body = _format_body(record)
        if note:
            body.append(f"\n{note}", style="yellow")
        table.add_row(Text(str(number), style="dim"), mark, body)
    return table


def _format_body(record: MemoryRecord) -> Text:
    text = make_printable(record.text)
    shown = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    body = Text()
    if record.producer:
        body.append(f"{make_printable(record.producer)}: ", style="cyan")
    body.append(" ".join(shown.split()))
    body.append(f"\n{_format_details(record)}", style="dim")
    return body


def _format_details(record: MemoryRecord) -> str:
    parts = [format_timestamp(record.at), *_find_places(record)]
    for name, default in _DEFAULTS.items():
        value = getattr(record, name)
        if value != default and not (name == "session" and _names_document(record)):
            label = f"{name} " if name in ("importance", "session") else ""
            parts.append(f"{label}{_mark_predicted(record, name, value)}")
    parts.append(f"id {record.id}")
    return make_printable(" · ".join(parts))


def _mark_predicted(record: MemoryRecord, name: str, value: object) -> str:
    """Say of a value that was predicted that it was."""
    return f"{value} (predicted)" if name in record.predicted else str(value)


def _find_places(record: MemoryRecord) -> Iterator[str]:
    """Return where a memory stands: `guide.md (3-5)` and the headings above it, or a dialogue."""
    if record.path:
        yield f"{record.path} ({record.lines})" if record.lines else record.path
    if record.heading:
        yield record.heading
    title = record.metadata.get("title")
    if record.session and not record.path and isinstance(title, str):
        yield f"“{title}”"


def _names_document(record: MemoryRecord) -> bool:
    """Say whether the session only repeats the path, as that of an imported document does."""
    return bool(record.path) and (record.session or "").endswith(f"/{record.path}")


number_column = partial(Column, justify="right", no_wrap=True)
word_column = partial(Column, no_wrap=True)


def make_table(title: str | None, *columns: Column) -> Table:
    """Make an empty table in the style of all that have a heading."""
    return Table(*columns, title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)


_STATUS_STYLE = {"ran": "", "skipped": "dim", "degraded": "yellow"}


def make_stage_table(trace: Trace) -> Table:
    """Draw the stages in the order in which they ran, those of the preset numbered."""
    of_preset = sum(stage.number > 0 for stage in trace.stages)
    title = f"preset {trace.preset}: {of_preset} stages, {trace.milliseconds:.1f} ms"
    columns = [number_column("#"), word_column("stage"), number_column("in → out")]
    columns += [number_column("ms"), word_column("status"), Column("what it did", overflow="fold")]
    table = make_table(title, *columns)
    number = itertools.count(1)
    for stage in trace.stages:
        place = str(next(number)) if stage.number else ""
        passed = f"{stage.candidates_in:,} → {stage.candidates_out:,}"
        cells = (place, stage.name, passed, f"{stage.milliseconds:.1f}", stage.status)
        table.add_row(*cells, _describe(stage), style=_STATUS_STYLE[stage.status])
    return table


def make_score_table(hits: Sequence[Hit]) -> Table:
    """Draw the raw scores of every hit, a column for each that any of them has."""
    names = list(dict.fromkeys(name for hit in hits for name in hit.scores))
    table = make_table("scores", *map(number_column, ("#", *names)))
    for rank, hit in enumerate(hits, start=1):
        values = (f"{hit.scores[name]:.3f}" if name in hit.scores else "–" for name in names)
        table.add_row(str(rank), *values)
    return table


def _describe(stage: StageTrace) -> str:
    noted = (
        f"{name.replace('_', ' ')} {_format_value(value)}" for name, value in stage.detail.items()
    )
    return ", ".join([stage.reason, *noted] if stage.reason else noted)


def _format_value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else make_printable(str(value))


def print_event(console: Console, event: agent_trace.AgentEvent) -> None:
    """Print an event if a reader wants to see it."""
    if (shown := _format_event(event)) is not None:
        console.print(shown, soft_wrap=True)


def _format_event(event: agent_trace.AgentEvent) -> Text | None:
    body = event.body
    if isinstance(body, agent_trace.ToolReturned):
        return _format_search(body)
    if isinstance(body, agent_trace.HopResolved):
        return format_hop(body)
    if isinstance(body, agent_trace.RouteChosen):
        return Text(f"  {body.route}: {make_printable(body.reason_note)}", style="dim")
    if isinstance(body, agent_trace.ModelRetried):
        problem = make_printable(body.problem)
        return Text(f"  again in {body.wait_seconds:.1f} s: {problem}", style="yellow")
    if isinstance(body, agent_trace.FellBack):
        return Text(f"! {body.reason}: {make_printable(body.problem)}", style="yellow")
    return None


def format_hop(hop: agent_trace.HopResolved | agent_trace.StageResult) -> Text:
    """Return a resolved hop: what was looked for, what was found, how sure it is, and where."""
    shown = Text("✓ ", style="green") if hop.confidence >= 0.5 else Text("? ", style="yellow")
    shown.append(make_printable(hop.query))
    if hop.answer:
        shown.append(" → ")
        shown.append(make_printable(hop.answer), style="bold")
    shown.append(f"  {hop.confidence:.2f}", style="green")
    shown.append(f"  id {make_printable(', '.join(hop.memory_ids))}", style="dim")
    return shown


def format_ending(trace: agent_trace.RetrievalTrace) -> Text:
    """Sum a session up in a line."""
    confidence, searches = trace.confidence_score, f"{trace.memory_search_called} searches"
    parts = [f"{trace.selected_agent_name}, {trace.provider}", searches]
    parts.append(f"{trace.milliseconds:.0f} ms")
    if confidence is not None:
        parts.append(f"confidence {confidence:.2f}")
    if trace.fallback_trigger_reason is not None:
        parts.append(f"fell back: {trace.fallback_trigger_reason}")
    return Text(" · ".join(parts), style="dim")


def _format_search(call: agent_trace.ToolReturned) -> Text:
    shown = Text("→ ", style="cyan")
    shown.append(make_printable(call.query), style="cyan")
    found = f"{call.status}: {make_printable(call.summary)}"
    if call.status == "success":
        found = f"{count_memories(len(call.memory_ids))}, {call.milliseconds:.0f} ms"
    shown.append(f"  {found}", style="dim")
    return shown
