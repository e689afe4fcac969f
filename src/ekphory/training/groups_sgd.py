"""Question groups of the Schema-Guided Dialogues: who asked for what, when and where.

A few dialogues about different services become one conversation of the same two. One in five is a
chat of `user` and `assistant`, with questions in the first person, as a user asks their own agent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from ekphory.training.addressed_questions import reported_question
from ekphory.training.conversation_passages import Turn, turn_passages
from ekphory.training.invented_names import two_names
from ekphory.training.question_groups import GroupBuilder, QuestionGroup
from ekphory.training.sgd_wording import SERVICE_NOUNS, slot_question, with_detail
from ekphory.training.training_rows import Row
from ekphory.training.wording import reworded

SOURCE = "sgd"
DIALOGUES_PER_GROUP = 4
QUESTIONS_PER_DIALOGUE = 7
_OWN_SHARE = 0.2
_DETAIL_SHARE = 0.5
_KINDS = {("user", "INFORM"): "asked", ("system", "OFFER"): "offered", ("system", "INFORM"): "told"}
_FIRST_PERSON = (
    (r"\bdid user\b", "did I"),
    (r"\bdoes user\b", "do I"),
    (r"\bwas user\b", "was I"),
    (r"\buser's\b", "my"),
    (r"\b(to|give|find|for|tell|offer) user\b", r"\1 me"),
    (r"\buser\b", "I"),
    (r"\bassistant\b", "you"),
)


@dataclass(frozen=True, slots=True)
class _Asked:
    text: str
    turn: int


def sgd_groups(rows: Sequence[Row], random: Random) -> Iterator[QuestionGroup]:
    """Give one epoch of groups, newly shuffled, named and worded."""
    order = random.sample(range(len(rows)), len(rows))
    for start in range(0, len(order), DIALOGUES_PER_GROUP):
        dialogues = [rows[place] for place in order[start : start + DIALOGUES_PER_GROUP]]
        group = _group(dialogues, random)
        if group is not None:
            yield group


def _group(dialogues: Sequence[Row], random: Random) -> QuestionGroup | None:
    own = random.random() < _OWN_SHARE
    user, assistant = ("user", "assistant") if own else two_names(random)
    builder = GroupBuilder(SOURCE)
    for dialogue in dialogues:
        turns = [
            Turn(user if turn["speaker"] == "user" else assistant, turn["text"])
            for turn in dialogue["turns"]
        ]
        passages = turn_passages(turns, {user: assistant, assistant: user}, random)
        rows = builder.add_session(passages.texts)
        for asked in _questions(dialogue, user, assistant, random):
            text = _in_first_person(asked.text) if own else asked.text
            builder.add_question(reworded(text, random), [rows[passages.rows[asked.turn]]])
    return builder.build()


def _questions(dialogue: Row, user: str, assistant: str, random: Random) -> list[_Asked]:
    noun = SERVICE_NOUNS.get(dialogue["services"][0].split("_")[0], "booking")
    slots = list(_slots(dialogue))
    asked = [
        _Asked(_slot_text(slot, slots, noun, random), slot.turn)
        for slot in random.sample(slots, min(QUESTIONS_PER_DIALOGUE - 2, len(slots)))
    ]
    named = [_Asked(each.text.format(user=user, assistant=assistant), each.turn) for each in asked]
    answers = list(_answered(dialogue, user))
    return named + random.sample(answers, min(2, len(answers)))


@dataclass(frozen=True, slots=True)
class _Slot:
    turn: int
    kind: str
    name: str
    value: str


def _slots(dialogue: Row) -> Iterator[_Slot]:
    for place, turn in enumerate(dialogue["turns"]):
        for act, slot, values in turn["acts"]:
            kind = _KINDS.get((turn["speaker"], act))
            value = values[0] if values else ""
            if kind and slot and value.lower() not in ("", "true", "false", "dontcare"):
                yield _Slot(place, kind, slot, value.replace("{", "").replace("}", ""))


def _slot_text(slot: _Slot, slots: Sequence[_Slot], noun: str, random: Random) -> str:
    question = slot_question(slot.kind, slot.name, noun, random)
    others = [
        other.value
        for other in slots
        if other.turn == slot.turn and other.name != slot.name and other.value != slot.value
    ]
    if others and random.random() < _DETAIL_SHARE:
        return with_detail(question, random.choice(others), random)
    return question


def _answered(dialogue: Row, user: str) -> Iterator[_Asked]:
    turns = dialogue["turns"]
    for place in range(1, len(turns)):
        informs = any(act[0] == "INFORM" for act in turns[place]["acts"])
        if turns[place]["speaker"] == "user" and informs:
            question = reported_question(turns[place - 1]["text"], user)
            if question is not None:
                yield _Asked(question, place)


def _in_first_person(question: str) -> str:
    for pattern, replacement in _FIRST_PERSON:
        question = re.sub(pattern, replacement, question)
    return question
