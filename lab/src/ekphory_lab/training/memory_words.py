"""The words of generated memories, and how these and their queries are put, in two halves.

They are data in the folder `halves`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Formatter
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, TypeAdapter

from ekphory.types import MemoryType

# Whom and what the memories of one half are about.

Split = Literal["train", "test"]


def _listed(text: str) -> list[str]:
    return [" ".join(entry.split()) for entry in text.split(";")]


def _tasks(text: str) -> list[list[str]]:
    return [task.split(" > ") for task in _listed(text)]


Listed = Annotated[tuple[str, ...], BeforeValidator(_listed)]
"""In the file, text that is separated by semicolons."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """One topic's own words.

    Attributes:
        subject: Its name.
        things: Nouns that stand behind "the".
        choices: What one may like or decide on.
        tasks: What is done in steps: what, without "to", and two steps as orders.
        events: What somebody did, without the subject.
        units: What is counted.
    """

    subject: str
    things: Listed
    choices: Listed
    tasks: Annotated[tuple[tuple[str, ...], ...], BeforeValidator(_tasks)]
    events: Listed
    units: Listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """All words of one half.

    Attributes:
        people, places: The entities.
        conditions: Of health; they follow "is".
        topics: The topics.
    """

    people: Listed
    places: Listed
    conditions: Listed
    topics: tuple[Topic, ...]


@cache
def vocabulary(split: Split) -> Vocabulary:
    """Read the words of one half."""
    return TypeAdapter(Vocabulary).validate_python(read_toml(f"{split}_topics.toml"))


def read_toml(name: str) -> dict[str, Any]:
    """Read a file of the folder `halves`."""
    file = files("ekphory_lab.training").joinpath("halves", name)
    return tomllib.loads(file.read_text(encoding="utf-8"))


# How the memories and queries of one half are worded.

Voice = Literal["said", "told", "said_not", "told_not"]
_DENIED: dict[Voice, Voice] = {"said": "said_not", "told": "told_not"}
OPPOSITE: Mapping[Voice, Voice] = _DENIED | {denied: voice for voice, denied in _DENIED.items()}
NUMBER_SLOTS = frozenset({"count", "money", "date", "clock"})
# What every memory about the topic says, or its speaker does.
_GIVEN = frozenset({"person", "when", "subject"})


@dataclass(frozen=True, slots=True)
class Template:
    """A sentence with slots.

    Attributes:
        text: In the form of `str.format`.
        slots: The names in it.
    """

    text: str
    slots: frozenset[str]

    @property
    def asked(self) -> frozenset[str]:
        """What a memory must have in it to answer this query."""
        return self.slots - _GIVEN

    @property
    def asked_numbers(self) -> frozenset[str]:
        """The numbers that this query names."""
        return self.slots & NUMBER_SLOTS


def template(text: str) -> Template:
    """Read a sentence with slots."""
    return Template(text, frozenset(name for _, name, _, _ in Formatter().parse(text) if name))


def _templates(texts: Sequence[str]) -> list[Template]:
    return list(map(template, texts))


Wordings = Annotated[tuple[Template, ...], BeforeValidator(_templates)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Queries:
    """Ways to ask for one kind of memory.

    Attributes:
        named: They name a person.
        mine: The user asks about herself.
    """

    named: Wordings
    mine: Wordings


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Queries):
    """One kind of memory, and what asks for it.

    Attributes:
        name: Its name.
        type: The type of its memories.
        importance: In [0, 1].
        graded_by: `money` where the sum decides the importance instead.
        weight: How often it comes, among those of its type.
        said, told: Its memories in the first person, and told with the person's name.
        said_not, told_not: The same denied, or no longer true.
    """

    name: str
    type: MemoryType
    importance: float
    graded_by: Literal["money"] | None = None
    weight: float
    said: Wordings
    told: Wordings
    said_not: Wordings
    told_not: Wordings

    @property
    def voices(self) -> Mapping[Voice, tuple[Template, ...]]:
        """Its memories, by who says them and whether they are denied."""
        return {voice: getattr(self, voice) for voice in get_args(Voice)}


@dataclass(frozen=True, slots=True)
class Stress:
    """Words around a memory that say how much it matters.

    Attributes:
        words: Each with the slot `text`.
        change: What they add to the importance.
    """

    words: tuple[str, ...]
    change: float


@dataclass(frozen=True, slots=True)
class TimePhrase:
    """Words of a query for a time.

    Attributes:
        words: Ways to say it.
        low, high: The ages in days that it may mean, both inclusive.
    """

    words: tuple[str, ...]
    low: float
    high: float

    def covers(self, days: float) -> bool:
        """Whether it may mean that age."""
        return self.low <= days <= self.high


def _by_type(kinds: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for kind in kinds:
        found.setdefault(kind["type"], []).append(kind)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Templates:
    """All wordings of one half.

    Attributes:
        kinds: Kinds of memories, by type.
        generic: Queries that ask for a type, by its name, for what is `important`, or for what is
            `denied` or no longer so.
        stresses: Words for importance.
        echoes: Somebody else puts a query; slots `asker` and `query`.
        hearsays: Somebody repeats a memory without claiming it; slots `asker` and `text`.
        times: Words for times.
    """

    kinds: Annotated[Mapping[MemoryType, tuple[Kind, ...]], BeforeValidator(_by_type)]
    generic: Mapping[MemoryType | Literal["important", "denied"], Queries]
    stresses: tuple[Stress, ...]
    echoes: tuple[str, ...]
    hearsays: tuple[str, ...]
    times: tuple[TimePhrase, ...]


@cache
def templates(split: Split) -> Templates:
    """Read the wordings of one half."""
    return TypeAdapter(Templates).validate_python(read_toml(f"{split}_templates.toml"))
