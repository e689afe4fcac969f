"""Loads the demo's conversation and questions, which lie beside this file as JSON Lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files

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
    """Give the demo's memories as records for `Memory.add_many`, the conversation in order."""
    yield from _rows("conversation.jsonl")


def demo_questions() -> tuple[DemoQuestion, ...]:
    """Give the demo's questions in the order in which they are best shown."""
    return tuple(
        DemoQuestion(
            text=str(row["text"]),
            shows=str(row["shows"]),
            expected=_ids(row["expected"]),
            chain=_ids(row.get("chain")),
        )
        for row in _rows("questions.jsonl")
    )


def _rows(name: str) -> Iterator[dict[str, object]]:
    text = files("ekphory.demo").joinpath(name).read_text(encoding="utf-8")
    for line in text.splitlines():
        row: dict[str, object] = json.loads(line)
        yield row


def _ids(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()
