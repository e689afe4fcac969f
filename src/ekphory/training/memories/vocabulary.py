"""Whom and what the memories of one half are about."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

Split = Literal["train", "test"]


@dataclass(frozen=True, slots=True)
class Task:
    """Something that is done in steps.

    Attributes:
        goal: What is done, without "to".
        first, second: Its steps, as orders.
    """

    goal: str
    first: str
    second: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """One topic's own words.

    Attributes:
        subject: Its name.
        things: Nouns that stand behind "the".
        choices: What one may like or decide on.
        tasks: What is done in steps.
        events: What somebody did, without the subject.
        units: What is counted.
    """

    subject: str
    things: tuple[str, ...]
    choices: tuple[str, ...]
    tasks: tuple[Task, ...]
    events: tuple[str, ...]
    units: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """All words of one half.

    Attributes:
        people, places: The entities.
        conditions: Of health; they follow "is".
        topics: The topics.
    """

    people: tuple[str, ...]
    places: tuple[str, ...]
    conditions: tuple[str, ...]
    topics: tuple[Topic, ...]


@cache
def vocabulary(split: Split) -> Vocabulary:
    """Read the words of one half."""
    given = read_toml(f"{split}_topics.toml")
    return Vocabulary(
        people=_listed(given["people"]),
        places=_listed(given["places"]),
        conditions=_listed(given["conditions"]),
        topics=tuple(_topic(each) for each in given["topics"]),
    )


def read_toml(name: str) -> dict[str, Any]:
    """Read a file of the folder `halves`."""
    file = files("ekphory.training.memories").joinpath("halves", name)
    return tomllib.loads(file.read_text(encoding="utf-8"))


def _topic(given: Mapping[str, str]) -> Topic:
    tasks = (task.split(" > ") for task in _listed(given["tasks"]))
    return Topic(
        subject=given["subject"],
        things=_listed(given["things"]),
        choices=_listed(given["choices"]),
        tasks=tuple(Task(goal, first, second) for goal, first, second in tasks),
        events=_listed(given["events"]),
        units=_listed(given["units"]),
    )


def _listed(text: str) -> tuple[str, ...]:
    return tuple(" ".join(entry.split()) for entry in text.split(";"))
