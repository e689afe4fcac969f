"""Memories and hits for people."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from rich.table import Table
from rich.text import Text

from ekphory.types import Hit, MemoryRecord

_LONGEST = 400
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_DEFAULTS: Mapping[str, object] = {
    "type": "unknown",
    "pool": "agent_memory",
    "importance": 0.5,
    "session": None,
}


def printable(text: str) -> str:
    """Show control characters escaped, so that a stored text cannot steer the terminal."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def moment(at: datetime) -> str:
    """Show a moment in UTC, to the minute."""
    return at.strftime("%Y-%m-%d %H:%MZ") if at.year > 999 else at.isoformat()


def hit_table(hits: Sequence[Hit]) -> Table:
    """Show hits, best first: rank, score, text, and a line about the memory."""
    table = _grid()
    for rank, hit in enumerate(hits, start=1):
        score = Text(f"{hit.score:.2f}", style="bold green" if hit.score >= 0.5 else "green")
        table.add_row(Text(str(rank), style="dim"), score, _body(hit.memory))
    return table


def memory_table(records: Sequence[MemoryRecord], *, first: int = 1) -> Table:
    """Show memories: number, text, and a line about each."""
    table = _grid()
    for number, record in enumerate(records, start=first):
        table.add_row(Text(str(number), style="dim"), Text(""), _body(record))
    return table


def history_table(versions: Sequence[MemoryRecord]) -> Table:
    """Show a memory's versions, the current one first."""
    table = _grid()
    for number, record in zip(range(len(versions), 0, -1), versions, strict=True):
        state = "now" if record.superseded_by is None else "was"
        table.add_row(Text(str(number), style="dim"), Text(state, style="green"), _body(record))
    return table


def record_table(record: MemoryRecord) -> Table:
    """Show every field that a memory has, and its whole text."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name in record.__dataclass_fields__:
        value = getattr(record, name)
        if name == "predicted" or value is None or value == "" or value == {}:
            continue
        shown = value.isoformat() if isinstance(value, datetime) else value
        if isinstance(shown, Mapping):
            shown = ", ".join(f"{key}={entry!r}" for key, entry in shown.items())
        style = "bold" if name == "text" else ""
        table.add_row(name, Text(printable(_marked(record, name, shown)), style=style))
    return table


def _grid() -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _body(record: MemoryRecord) -> Text:
    text = printable(record.text)
    shown = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    body = Text()
    if record.producer:
        body.append(f"{printable(record.producer)}: ", style="cyan")
    body.append(" ".join(shown.split()))
    body.append(f"\n{_about(record)}", style="dim")
    return body


def _about(record: MemoryRecord) -> str:
    parts = [moment(record.at), *_place(record)]
    for name, default in _DEFAULTS.items():
        value = getattr(record, name)
        if value != default and not (name == "session" and _names_document(record)):
            label = f"{name} " if name in ("importance", "session") else ""
            parts.append(f"{label}{_marked(record, name, value)}")
    parts.append(f"id {record.id}")
    return printable(" · ".join(parts))


def _marked(record: MemoryRecord, name: str, value: object) -> str:
    """Say of a value that was predicted that it was."""
    return f"{value} (predicted)" if name in record.predicted else str(value)


def _place(record: MemoryRecord) -> Iterator[str]:
    """Give where in a document a memory stands: `guide.md (3-5)`, then the headings above it."""
    if record.path:
        yield f"{record.path} ({record.lines})" if record.lines else record.path
    if record.heading:
        yield record.heading


def _names_document(record: MemoryRecord) -> bool:
    """Say whether the session only repeats the path, as that of an imported document does."""
    return bool(record.path) and (record.session or "").endswith(f"/{record.path}")
