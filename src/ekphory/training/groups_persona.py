"""Question groups of Synthetic-Persona-Chat: two people tell each other about themselves.

Several chats become one long conversation of two invented people. Three kinds of questions: what a
turn says of its speaker, what a turn answers that the other asked, and what a persona's fact says
that a turn shows in other words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from random import Random

from ekphory.training.addressed_questions import reported_question
from ekphory.training.conversation_passages import Turn, turn_passages
from ekphory.training.invented_names import two_names
from ekphory.training.question_groups import GroupBuilder, QuestionGroup
from ekphory.training.statement_questions import statement_questions
from ekphory.training.training_rows import Row
from ekphory.training.wording import reworded

SOURCE = "synthetic_persona_chat"
CHATS_PER_GROUP = 4
QUESTIONS_PER_GROUP = 36
_LEAST_SHARED = 0.5
_PLACEHOLDER = re.compile(r"\[[^\]]*\]|\buser [12]\b", re.I)
_STOP_WORDS = frozenset(
    """i my a an the to of in on at for with is am are was be have has had do does and or but it
    that this very really as so too also me you your""".split()
)


def persona_groups(rows: Sequence[Row], random: Random) -> Iterator[QuestionGroup]:
    """Give one epoch of groups, newly shuffled, named and worded."""
    order = random.sample(range(len(rows)), len(rows))
    for start in range(0, len(order), CHATS_PER_GROUP):
        chats = [rows[place] for place in order[start : start + CHATS_PER_GROUP]]
        group = _group(chats, random)
        if group is not None:
            yield group


def _group(chats: Sequence[Row], random: Random) -> QuestionGroup | None:
    names = two_names(random)
    builder = GroupBuilder(SOURCE)
    for chat in chats:
        _add_chat(builder, chat, names, random)
    questions = builder.questions
    if len(questions) > QUESTIONS_PER_GROUP:
        questions = random.sample(questions, QUESTIONS_PER_GROUP)
    return builder.build(questions)


def _add_chat(builder: GroupBuilder, chat: Row, names: tuple[str, str], random: Random) -> None:
    by_speaker = {"User 1": names[0], "User 2": names[1]}
    # A few turns have a heading of a list for their speaker.
    turns = [_named(turn, by_speaker) for turn in chat["turns"] if turn["speaker"] in by_speaker]
    if not turns:
        return
    others = {names[0]: names[1], names[1]: names[0]}
    passages = turn_passages(turns, others, random)
    rows = builder.add_session(passages.texts)
    for text, place in _questions(chat, turns, names, random):
        asked = reworded(text, random)
        builder.add_question(asked, [rows[passages.rows[place]]])


def _named(turn: Row, by_speaker: dict[str, str]) -> Turn:
    name = by_speaker[turn["speaker"]]
    return Turn(name, _PLACEHOLDER.sub(name, turn["text"]))


def _questions(
    chat: Row, turns: Sequence[Turn], names: tuple[str, str], random: Random
) -> Iterator[tuple[str, int]]:
    for place, turn in enumerate(turns):
        about_turn = statement_questions(turn.text, turn.speaker, random)
        for question in random.sample(about_turn, min(2, len(about_turn))):
            yield question, place
        if place and turns[place - 1].speaker != turn.speaker and len(turn.text.split()) > 2:
            answered = reported_question(turns[place - 1].text, turn.speaker)
            if answered is not None:
                yield answered, place
    for name, facts in zip(names, chat["personas"], strict=True):
        yield from _fact_questions(facts, name, turns, random)


def _fact_questions(
    facts: Sequence[str], name: str, turns: Sequence[Turn], random: Random
) -> Iterator[tuple[str, int]]:
    for fact in facts:
        place = _turn_that_shows(fact, name, turns)
        questions = statement_questions(fact, name, random)
        if place is not None:
            for question in random.sample(questions, min(2, len(questions))):
                yield question, place


def _turn_that_shows(fact: str, name: str, turns: Sequence[Turn]) -> int | None:
    wanted = _content(fact)
    shared = [
        len(wanted & _content(turn.text)) / max(1, len(wanted)) if turn.speaker == name else 0.0
        for turn in turns
    ]
    best = max(range(len(turns)), key=shared.__getitem__)
    return best if shared[best] >= _LEAST_SHARED else None


def _content(text: str) -> frozenset[str]:
    words = re.findall(r"[a-z]+", text.lower())
    return frozenset(word.rstrip("s") for word in words if word not in _STOP_WORDS)
