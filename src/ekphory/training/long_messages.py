"""Long messages: what one speaker says in several turns, put together into one.

Assistants and mails say in one message what a chat says in many turns; a model that has seen short
turns only ranks such messages badly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from ekphory.training.question_groups import Question, QuestionGroup

FEWEST_TURNS, MOST_TURNS = 2, 7
_LONGEST_NAME = 40
_LONG_WORDS = 60


def is_long(group: QuestionGroup) -> bool:
    """Tell whether the passages are long already: together their answers would be cut off."""
    words = sum(len(passage.split()) for passage in group.passages)
    return words >= _LONG_WORDS * len(group.passages)


def with_long_messages(group: QuestionGroup, random: Random) -> QuestionGroup:
    """Put runs of a speaker's passages together; questions keep all passages that answer them.

    Args:
        group: Its passages in the order in which they were said, `speaker: text` or `text`.
        random: Decides how many passages each message takes.
    """
    messages: list[_Message] = []
    unfinished: dict[str, _Message] = {}
    for row, passage in enumerate(group.passages):
        speaker, text = _speaker_and_text(passage)
        message = unfinished.get(speaker)
        if message is None:
            message = _Message(speaker, random.randint(FEWEST_TURNS, MOST_TURNS))
            unfinished[speaker] = message
            messages.append(message)
        message.rows.append(row)
        message.texts.append(text)
        if len(message.rows) == message.size:
            del unfinished[speaker]
    places = {row: place for place, message in enumerate(messages) for row in message.rows}
    return QuestionGroup(
        group.source,
        tuple(message.passage for message in messages),
        tuple(
            Question(question.text, _moved(question.positives, places))
            for question in group.questions
        ),
    )


@dataclass(slots=True)
class _Message:
    speaker: str
    size: int
    rows: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    @property
    def passage(self) -> str:
        text = " ".join(self.texts)
        return f"{self.speaker}: {text}" if self.speaker else text


def _speaker_and_text(passage: str) -> tuple[str, str]:
    speaker, colon, text = passage.partition(": ")
    named = bool(colon) and len(speaker) <= _LONGEST_NAME and "." not in speaker
    return (speaker, text) if named else ("", passage)


def _moved(rows: Sequence[int], places: dict[int, int]) -> tuple[int, ...]:
    return tuple(sorted({places[row] for row in rows}))
