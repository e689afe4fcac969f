"""What the memories of one sample share: who, where, about what, with which numbers."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ekphory.training.memories.vocabulary import Topic, Vocabulary

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
