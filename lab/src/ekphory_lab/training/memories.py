"""Generated memories: whom and what they are about, how they are worded, how old they are."""

from __future__ import annotations

import random
import tomllib
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from string import Formatter
from typing import Any, Literal, get_args

from ekphory.models.late_bound import AGE_BUCKETS, AGE_LIMITS_DAYS
from ekphory.types import MemoryType

# Ages in days: ten buckets, and words for stretches of them.

OLDEST = 1500
"""The greatest age that is drawn, in days."""

_LOWEST = (0, *AGE_LIMITS_DAYS)
_HIGHEST = (*AGE_LIMITS_DAYS, OLDEST)


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


def bucket_of(days: float) -> int:
    """Return the bucket of an age, from 0 to 9."""
    return bisect_left(AGE_LIMITS_DAYS, days)


def draw_age(source: random.Random) -> float:
    """Draw a bucket, and an age within it."""
    return _age_within(source, source.randrange(AGE_BUCKETS))


def draw_age_inside(source: random.Random, phrase: TimePhrase) -> float:
    """Draw an age that the phrase means."""
    return round(source.uniform(phrase.low, phrase.high), 1)


def draw_age_outside(source: random.Random, phrase: TimePhrase) -> float:
    """Draw an age from a bucket that the phrase does not touch."""
    first, last = bucket_of(phrase.low), bucket_of(phrase.high)
    free = [bucket for bucket in range(AGE_BUCKETS) if not first <= bucket <= last]
    return _age_within(source, source.choice(free))


def draw_older_age(source: random.Random, days: float) -> float:
    """Draw an age greater than `days`."""
    return round(source.uniform(days + 0.1, max(2 * days, days + 30)), 1)


def phrase_for(
    source: random.Random, phrases: Sequence[TimePhrase], days: float
) -> TimePhrase | None:
    """Draw a phrase that may mean this age; None where none does."""
    fitting = [phrase for phrase in phrases if phrase.covers(days)]
    return source.choice(fitting) if fitting else None


def _age_within(source: random.Random, bucket: int) -> float:
    low = _LOWEST[bucket] + (0.1 if bucket else 0.0)
    return round(source.uniform(low, _HIGHEST[bucket]), 1)


# Whom and what the memories of one half are about.

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
    file = files("ekphory_lab.training").joinpath("halves", name)
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


# How the memories and queries of one half are worded.

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


# What the memories of one sample share: who, where, about what, with which numbers.

USER = "the user"
_MONTHS = (
    "January February March April May June July August September October November December"
).split()
_DAYS_OF_A_MONTH = 28
_SUMS = (10, 50, 500, 5_000, 50_000)
_GRADES = (0.3, 0.5, 0.75, 0.95)


@dataclass(frozen=True, slots=True)
class Situation:
    """What fills the slots.

    Attributes:
        person: Whom it is about; `USER` for the user.
        topic: What it is about.
        sum: The sum of money, in dollars.
        slots: Value by slot.
    """

    person: str
    topic: Topic
    sum: int
    slots: Mapping[str, str]

    @property
    def money_importance(self) -> float:
        """How much a payment of this sum matters: less than 50, 500, 5,000 dollars, or more."""
        return next(
            grade
            for grade, most in zip(_GRADES, (*_SUMS[1:-1], _SUMS[-1] + 1), strict=True)
            if self.sum < most
        )


def draw_situation(source: random.Random, words: Vocabulary, *, mine: bool) -> Situation:
    """Draw everything anew; `mine` is about the user."""
    person, friend = source.sample(words.people, 2)
    topic = source.choice(words.topics)
    situation = Situation(
        USER if mine else person,
        topic,
        0,
        {
            "person": USER if mine else person,
            "friend": friend,
            "place": source.choice(words.places),
            "condition": source.choice(words.conditions),
            **_topic_slots(source, topic),
        },
    )
    return with_other_numbers(source, situation)


def with_other_topic(source: random.Random, words: Vocabulary, situation: Situation) -> Situation:
    """Keep who, where and which numbers; change what it is about."""
    topic = source.choice([each for each in words.topics if each is not situation.topic])
    number = situation.slots["count"].partition(" ")[0]
    slots = {**situation.slots, **_topic_slots(source, topic)}
    slots["count"] = f"{number} {slots['unit']}"
    return replace(situation, topic=topic, slots=slots)


def with_other_details(source: random.Random, situation: Situation) -> Situation:
    """Keep who, where, the topic and which numbers; change the things within the topic."""
    old, topic = situation.slots, situation.topic
    task = source.choice([task for task in topic.tasks if task.goal != old["task"]])
    choice, other = source.sample(
        [each for each in topic.choices if each not in (old["choice"], old["other"])], 2
    )
    changed = {
        "thing": _another(source, topic.things, old["thing"]),
        "event": _another(source, topic.events, old["event"]),
        "choice": choice,
        "other": other,
        "task": task.goal,
        "step": task.first,
        "then": task.second,
    }
    return replace(situation, slots={**old, **changed})


def with_other_person(source: random.Random, words: Vocabulary, situation: Situation) -> Situation:
    """Change whom it is about, and nothing else."""
    taken = (situation.person, situation.slots["friend"])
    person = source.choice([each for each in words.people if each not in taken])
    return replace(situation, person=person, slots={**situation.slots, "person": person})


def with_other_place(source: random.Random, words: Vocabulary, situation: Situation) -> Situation:
    """Change where it is, and nothing else."""
    place = _another(source, words.places, situation.slots["place"])
    return replace(situation, slots={**situation.slots, "place": place})


def with_other_numbers(source: random.Random, situation: Situation) -> Situation:
    """Change every number; the first time it draws them."""
    old, changed = situation.slots, dict(situation.slots)
    grade = source.randrange(len(_GRADES))
    total = source.randint(_SUMS[grade], _SUMS[grade + 1] - 1)
    changed["money"] = f"${total:,}"
    changed["count"] = f"{source.randint(2, 60)} {old['unit']}"
    day, month = source.randint(1, _DAYS_OF_A_MONTH), source.choice(_MONTHS)
    changed["date"] = source.choice((f"{day} {month}", f"{month} {day}"))
    hour, minute = source.randint(6, 21), source.choice(("00", "15", "30", "45"))
    changed["clock"] = f"{hour}:{minute}"
    same = any(old.get(name) == changed[name] for name in ("money", "count", "date", "clock"))
    return (
        with_other_numbers(source, situation)
        if same
        else replace(situation, sum=total, slots=changed)
    )


def _topic_slots(source: random.Random, topic: Topic) -> dict[str, str]:
    choice, other = source.sample(topic.choices, 2)
    task = source.choice(topic.tasks)
    return {
        "subject": topic.subject,
        "thing": source.choice(topic.things),
        "choice": choice,
        "other": other,
        "task": task.goal,
        "step": task.first,
        "then": task.second,
        "event": source.choice(topic.events),
        "unit": source.choice(topic.units),
    }


def _another(source: random.Random, values: tuple[str, ...], old: str) -> str:
    return source.choice([value for value in values if value != old])


# What the generator makes: a query, the memory that answers it, and memories that do not.

NegativeKind = Literal[
    "temporal",
    "type_confusion",
    "topic_drift",
    "entity_confusion",
    "negation",
    "number",
    "near_duplicate",
]
NEGATIVE_KINDS: tuple[NegativeKind, ...] = get_args(NegativeKind)

NEGATIVES = 7
"""Negatives of a sample; with the positive memory that is eight candidates."""


@dataclass(frozen=True, slots=True)
class GeneratedMemory:
    """One memory.

    Attributes:
        text: What is embedded; `speaker: text` where it is known who says it.
        days_ago: Its age in days, not negative.
        type: What kind of memory it is.
        importance: In [0, 1]; follows from the text.
    """

    text: str
    days_ago: float
    type: MemoryType
    importance: float


@dataclass(frozen=True, slots=True)
class HardNegative:
    """A memory that resembles the answer and is none.

    Attributes:
        kind: What is wrong with it: `temporal` the same at another age; `type_confusion` another
            type about the same; `topic_drift` the same said about another topic;
            `entity_confusion` another person or place; `negation` denied, or no longer true, or
            claimed where the query asks for that;
            `number` another number than the query names; `near_duplicate` almost the answer's
            words, about another thing or claimed by nobody, or the question itself.
        memory: The memory.
    """

    kind: NegativeKind
    memory: GeneratedMemory


@dataclass(frozen=True, slots=True)
class MemorySample:
    """One query with its candidates.

    Attributes:
        query: Asks in words; no age, type or importance comes with it.
        positive: The one memory that answers.
        negatives: `NEGATIVES` hard negatives, no two alike. A query without words for a time has no
            `temporal` one, a query without a number no `number` one; the other kinds are there.
    """

    query: str
    positive: GeneratedMemory
    negatives: tuple[HardNegative, ...]


# Turns a template and a situation into the text of a memory, with its importance.

Voice = Literal["said", "told", "said_not", "told_not"]

_STRESSED_SHARE = 0.3
_SHOWN_SPEAKER_SHARE = 0.6
_LESS_WHEN_DENIED = 0.35
_LEAST_WHEN_DENIED = 0.1
_PLAIN = "{text}"


@dataclass(frozen=True, slots=True)
class Wording:
    """How a memory is put, whomever and whatever it is about.

    Attributes:
        kind: The kind of memory.
        voice: Who says it, and whether it is denied.
        template: The sentence, one of that kind and voice.
        stress: Words around it, with the slot `text`.
        change: What these add to the importance.
        speaker: What stands before the user's own words, `user` or nothing.
    """

    kind: Kind
    voice: Voice
    template: Template
    stress: str = _PLAIN
    change: float = 0.0
    speaker: str = ""

    def memory(self, situation: Situation, days_ago: float) -> GeneratedMemory:
        """Say it about that situation."""
        return GeneratedMemory(
            self._text(situation), days_ago, self.kind.type, self._importance(situation)
        )

    def _text(self, situation: Situation) -> str:
        text = self.template.text.format_map(situation.slots)
        if self.stress is not _PLAIN:
            inside = self.stress.format(text=text)
            # "The tap" becomes "the tap" within a sentence; names and "I" stay as they are.
            opening = self.template.text[:2]
            movable = opening[0].isupper() and opening != "I " and self.stress[0] != "{"
            text = self.stress.format(text=text[0].lower() + text[1:]) if movable else inside
        text = text[0].upper() + text[1:]
        if self.voice.startswith("told"):
            return text
        speaker = self.speaker if situation.person == USER else situation.person
        return f"{speaker}: {text}" if speaker else text

    def _importance(self, situation: Situation) -> float:
        graded = situation.money_importance if self.kind.graded_by_money else self.kind.importance
        if self.voice.endswith("_not"):
            graded = max(min(graded, _LEAST_WHEN_DENIED), graded - _LESS_WHEN_DENIED)
        return round(min(1.0, max(0.0, graded + self.change)), 2)


def draw_wording(
    source: random.Random,
    kind: Kind,
    asked: frozenset[str],
    stresses: tuple[Stress, ...],
) -> Wording:
    """Draw a sentence of that kind; one with everything that is asked, where there is one."""
    said, told = _holding(kind.said, asked), _holding(kind.told, asked)
    if not said and not told:
        said, told = kind.said, kind.told
    use_said = not told or (bool(said) and source.random() < 1 / 2)
    speaker = "user" if source.random() < _SHOWN_SPEAKER_SHARE else ""
    wording = Wording(
        kind,
        "said" if use_said else "told",
        source.choice(said if use_said else told),
        speaker=speaker,
    )
    if stresses and source.random() < _STRESSED_SHARE:
        return stressed(source, wording, stresses)
    return wording


def stressed(source: random.Random, wording: Wording, stresses: tuple[Stress, ...]) -> Wording:
    """Put words for importance around it."""
    stress = source.choice(stresses)
    return replace(wording, stress=source.choice(stress.words), change=stress.change)


def opposite(source: random.Random, wording: Wording) -> Wording:
    """Deny it, or say that it is no longer so, in the same voice; of a denial, claim it."""
    voices: dict[Voice, tuple[Voice, tuple[Template, ...]]] = {
        "said": ("said_not", wording.kind.said_not),
        "told": ("told_not", wording.kind.told_not),
        "said_not": ("said", wording.kind.said),
        "told_not": ("told", wording.kind.told),
    }
    voice, candidates = voices[wording.voice]
    return replace(wording, voice=voice, template=source.choice(candidates))


def _holding(candidates: tuple[Template, ...], asked: frozenset[str]) -> tuple[Template, ...]:
    return tuple(each for each in candidates if asked <= each.slots)
