"""Draws what a sample asks: for which kind of memory, in which words, about which time."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

from ekphory.training.memories.ages import TimePhrase, draw_age, phrase_for
from ekphory.training.memories.situation import Situation
from ekphory.training.memories.templates import Kind, Queries, Template, Templates
from ekphory.types import MemoryType

Aim = Literal["kind", "type", "importance", "denial"]

# Of the positive memories: episodic, semantic and procedural ones.
_TYPES: tuple[MemoryType, ...] = ("episodic", "semantic", "procedural")
_TYPE_WEIGHTS = (40, 35, 25)
_TIMED_SHARE = 0.6
_NUMBERED_SHARE = 0.55
_MINE_SHARE = 0.25
_TYPE_SHARE = 0.12
_IMPORTANCE_SHARE = 0.3
_DENIAL_SHARE = 0.08
IMPORTANT = 0.75
"""From this importance on, a kind answers a query for what is important."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a sample asks.

    Attributes:
        kind: The kind of memory that answers.
        aim: What the words ask for: that kind, its type, what is important, or what is no longer
            so.
        template: The query's words.
        mine: Whether the user asks about herself.
        days_ago: The age of the answer.
        time: What it means by the time it names; None where it names none.
        when: The words for that time, empty or with a space before them.
    """

    kind: Kind
    aim: Aim
    template: Template
    mine: bool
    days_ago: float
    time: TimePhrase | None
    when: str

    def text(self, situation: Situation) -> str:
        """Ask about that situation."""
        return _ask(self.template, situation, self.when)

    def text_without_time(self, situation: Situation) -> str:
        """Ask about that situation, naming no time."""
        return _ask(self.template, situation, "")


def draw_question(source: random.Random, wordings: Templates) -> Question:
    """Draw a question; its answer's age is spread evenly over the buckets."""
    type_ = source.choices(_TYPES, _TYPE_WEIGHTS)[0]
    kinds = wordings.kinds[type_]
    kind = source.choices(kinds, [each.weight for each in kinds])[0]
    aim = _draw_aim(source, kind)
    days_ago = draw_age(source)
    time = phrase_for(source, wordings.times, days_ago) if _chance(source, _TIMED_SHARE) else None
    mine = _chance(source, _MINE_SHARE)
    queries = _queries_for(kind, aim, wordings)
    template = _draw_template(source, queries.mine if mine else queries.named, time)
    if "when" not in template.slots:
        time = None
    when = "" if time is None else f" {source.choice(time.words)}"
    return Question(kind, aim, template, mine, days_ago, time, when)


def _draw_aim(source: random.Random, kind: Kind) -> Aim:
    if _chance(source, _DENIAL_SHARE):
        return "denial"
    if kind.importance >= IMPORTANT and _chance(source, _IMPORTANCE_SHARE):
        return "importance"
    return "type" if _chance(source, _TYPE_SHARE) else "kind"


def _queries_for(kind: Kind, aim: Aim, wordings: Templates) -> Queries:
    if aim == "kind":
        return kind.queries
    if aim == "type":
        return wordings.generic[kind.type]
    return wordings.generic["important" if aim == "importance" else "denied"]


def _draw_template(
    source: random.Random, candidates: tuple[Template, ...], time: TimePhrase | None
) -> Template:
    if time is not None:
        candidates = tuple(each for each in candidates if "when" in each.slots) or candidates
    if _chance(source, _NUMBERED_SHARE):
        candidates = tuple(each for each in candidates if each.asked_numbers) or candidates
    return source.choice(candidates)


def _ask(template: Template, situation: Situation, when: str) -> str:
    text = template.text.format_map({**situation.slots, "when": when})
    return text[0].upper() + text[1:]


def _chance(source: random.Random, share: float) -> bool:
    return source.random() < share
