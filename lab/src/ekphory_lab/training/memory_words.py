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
from typing import Any, Literal, get_args

from ekphory.types import MemoryType

# Whom and what the memories of one half are about.

Split = Literal["train", "test"]


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
    things: tuple[str, ...]
    choices: tuple[str, ...]
    tasks: tuple[tuple[str, ...], ...]
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
    topics = tuple(map(_topic, given.pop("topics")))
    return Vocabulary(**{name: _listed(text) for name, text in given.items()}, topics=topics)


def read_toml(name: str) -> dict[str, Any]:
    """Read a file of the folder `halves`."""
    file = files("ekphory_lab.training").joinpath("halves", name)
    return tomllib.loads(file.read_text(encoding="utf-8"))


def _topic(given: Mapping[str, str]) -> Topic:
    listed: dict[str, Any] = {name: _listed(text) for name, text in given.items()}
    tasks = tuple(tuple(task.split(" > ")) for task in listed.pop("tasks"))
    return Topic(**listed | {"subject": given["subject"]}, tasks=tasks)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(" ".join(entry.split()) for entry in text.split(";"))


# How the memories and queries of one half are worded.

Voice = Literal["said", "told", "said_not", "told_not"]
VOICES: tuple[Voice, ...] = get_args(Voice)
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


@dataclass(frozen=True, slots=True)
class Queries:
    """Ways to ask for one kind of memory.

    Attributes:
        named: They name a person.
        mine: The user asks about herself.
    """

    named: tuple[Template, ...]
    mine: tuple[Template, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of memory.

    Attributes:
        name: Its name.
        type: The type of its memories.
        importance: In [0, 1].
        graded_by_money: Whether the sum decides the importance instead.
        weight: How often it comes, among those of its type.
        voices: Its memories: said in the first person, told with the person's name, and each
            denied or no longer true.
        queries: What asks for it.
    """

    name: str
    type: MemoryType
    importance: float
    graded_by_money: bool
    weight: float
    voices: Mapping[Voice, tuple[Template, ...]]
    queries: Queries


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

    kinds: Mapping[MemoryType, tuple[Kind, ...]]
    generic: Mapping[MemoryType | Literal["important", "denied"], Queries]
    stresses: tuple[Stress, ...]
    echoes: tuple[str, ...]
    hearsays: tuple[str, ...]
    times: tuple[TimePhrase, ...]


@cache
def templates(split: Split) -> Templates:
    """Read the wordings of one half."""
    given = read_toml(f"{split}_templates.toml")
    kinds: dict[MemoryType, tuple[Kind, ...]] = {}
    for kind in map(_kind, given["kinds"]):
        kinds[kind.type] = (*kinds.get(kind.type, ()), kind)
    return Templates(
        kinds=kinds,
        generic={each["asks"]: _queries(each) for each in given["generic"]},
        stresses=tuple(Stress(tuple(each["words"]), each["change"]) for each in given["stresses"]),
        echoes=_words(given["echoes"]),
        hearsays=_words(given["hearsays"]),
        times=tuple(TimePhrase(tuple(each["words"]), *each["days"]) for each in given["times"]),
    )


def template(text: str) -> Template:
    """Read a sentence with slots."""
    return Template(text, frozenset(name for _, name, _, _ in Formatter().parse(text) if name))


def _kind(given: Mapping[str, Any]) -> Kind:
    return Kind(
        name=given["name"],
        type=given["type"],
        importance=given["importance"],
        graded_by_money=given.get("graded_by") == "money",
        weight=given["weight"],
        voices={voice: _templates(given[voice]) for voice in VOICES},
        queries=_queries(given),
    )


def _queries(given: Mapping[str, Any]) -> Queries:
    return Queries(_templates(given["queries"]), _templates(given["mine"]))


def _templates(texts: Sequence[str]) -> tuple[Template, ...]:
    return tuple(map(template, texts))


def _words(given: Sequence[Mapping[str, Sequence[str]]]) -> tuple[str, ...]:
    return tuple(words for each in given for words in each["words"])
