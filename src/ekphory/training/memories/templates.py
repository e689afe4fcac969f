"""How the memories and queries of one half are worded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from string import Formatter
from typing import Any, Literal

from ekphory.training.memories.ages import TimePhrase
from ekphory.training.memories.vocabulary import Split, read_toml
from ekphory.types import MemoryType

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
        said, told: Its memories, in the first person and with the person's name.
        said_not, told_not: The same denied, or no longer true.
        queries: What asks for it.
    """

    name: str
    type: MemoryType
    importance: float
    graded_by_money: bool
    weight: float
    said: tuple[Template, ...]
    told: tuple[Template, ...]
    said_not: tuple[Template, ...]
    told_not: tuple[Template, ...]
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
        said=_templates(given["said"]),
        told=_templates(given["told"]),
        said_not=_templates(given["said_not"]),
        told_not=_templates(given["told_not"]),
        queries=_queries(given),
    )


def _queries(given: Mapping[str, Any]) -> Queries:
    return Queries(_templates(given["queries"]), _templates(given["mine"]))


def _templates(texts: Sequence[str]) -> tuple[Template, ...]:
    return tuple(map(template, texts))


def _words(given: Sequence[Mapping[str, Sequence[str]]]) -> tuple[str, ...]:
    return tuple(words for each in given for words in each["words"])
