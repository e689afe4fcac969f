"""Question groups of the conversations written for training: two people, real dates, real talk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from random import Random

from ekphory.training.question_groups import GroupBuilder, QuestionGroup
from ekphory.training.training_rows import Row

SOURCE = "conversations"
# A search gets an assistant's chats with these names.
_ROLES = {"User": "user", "Assistant": "assistant"}


def conversation_groups(rows: Sequence[Row], random: Random) -> Iterator[QuestionGroup]:
    """Give one epoch of groups, one per conversation, with the dates of its sessions."""
    for row in random.sample(list(rows), len(rows)):
        group = _group(row, random)
        if group is not None:
            yield group


def _group(row: Row, random: Random) -> QuestionGroup | None:
    builder = GroupBuilder(SOURCE)
    places: list[int] = []
    for _, turns in groupby(row["turns"], key=lambda turn: int(turn["session"])):
        said = list(turns)
        texts = [f"{_ROLES.get(turn['speaker'], turn['speaker'])}: {turn['text']}" for turn in said]
        places += builder.add_session(texts, at=datetime.fromisoformat(said[0]["at"]))
    for asked in random.sample(row["questions"], len(row["questions"])):
        builder.add_question(asked["query"], [places[turn] for turn in asked["turns"]])
    return builder.build()
