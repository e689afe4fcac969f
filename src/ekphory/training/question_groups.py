"""Questions with the passages that compete for them: what the embedder is trained on.

A group is a small collection, such as one conversation: all its questions are asked of all its
passages, as a search asks them, so every passage is encoded once for many questions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from ekphory.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Question:
    """One question put to the passages of its group.

    Attributes:
        text: The question.
        positives: Rows of the passages that answer it; at least one.
    """

    text: str
    positives: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a turn stands.

    Attributes:
        session: Which conversation of the group, from 0.
        before, after: The turns around it, as passages; None where the conversation ends.
        at: When it was said; None where nobody knows.
    """

    session: int
    before: str | None = None
    after: str | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class QuestionGroup:
    """Passages and the questions that are asked of all of them.

    Attributes:
        source: Name of the data that it was made from.
        passages: What is searched; of a conversation `speaker: text`, one turn each.
        questions: What is asked; at least one.
        placements: For each passage where it stands; None for what is no turn.
    """

    source: str
    passages: tuple[str, ...]
    questions: tuple[Question, ...]
    placements: tuple[Placement | None, ...] = ()

    @property
    def dated(self) -> bool:
        """Whether its turns have dates of their own, to which what is said refers."""
        return any(place is not None and place.at is not None for place in self.placements)


@dataclass(frozen=True, slots=True)
class TrainingPair:
    """A question, a passage that answers it, and passages that do not.

    Attributes:
        query: The question.
        passage: The answer.
        negatives: Passages chosen to be hard; may be empty.
        source: Name of the data that it was made from.
    """

    query: str
    passage: str
    negatives: tuple[str, ...]
    source: str


class GroupBuilder:
    """Collects one group; equal questions become one with the answers of all."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._passages: dict[str, int] = {}
        self._placements: list[Placement | None] = []
        self._answers: dict[str, set[int]] = {}

    @property
    def size(self) -> int:
        """Number of passages so far."""
        return len(self._passages)

    def add_passage(self, text: str, placement: Placement | None = None) -> int:
        """Add a passage, once; returns its row. Its first place counts."""
        if text not in self._passages:
            self._passages[text] = len(self._passages)
            self._placements.append(placement)
        return self._passages[text]

    def add_session(self, texts: Sequence[str], *, at: datetime | None = None) -> list[int]:
        """Add the turns of one more conversation, in order; returns their rows."""
        session = 1 + max((place.session for place in self._placements if place), default=-1)
        placements = placed_turns(texts, session=session, at=at)
        return [
            self.add_passage(text, placement)
            for text, placement in zip(texts, placements, strict=True)
        ]

    def add_question(self, text: str, positives: Iterable[int]) -> None:
        """Add a question, or further answers to it."""
        self._answers.setdefault(text, set()).update(positives)

    def build(self, texts: Iterable[str] | None = None) -> QuestionGroup | None:
        """Give the group, with these questions of it only; None without a question.

        Raises:
            InvalidInput: A question has no answer.
        """
        chosen = list(self._answers) if texts is None else list(texts)
        questions = tuple(Question(text, self._rows(text)) for text in chosen)
        if not questions:
            return None
        return QuestionGroup(
            self._source, tuple(self._passages), questions, tuple(self._placements)
        )

    @property
    def questions(self) -> list[str]:
        """The texts of the questions so far."""
        return list(self._answers)

    def _rows(self, text: str) -> tuple[int, ...]:
        rows = tuple(sorted(self._answers[text]))
        if not rows:
            raise InvalidInput("positives", text, "no passage answers this", "Name one or more.")
        return rows


def placed_turns(
    texts: Sequence[str], *, session: int, at: datetime | None = None
) -> list[Placement]:
    """Place the turns of one conversation, which are given in order."""
    before, after = [None, *texts[:-1]], [*texts[1:], None]
    return [Placement(session, *around, at) for around in zip(before, after, strict=True)]


def grouped_pairs(pairs: Iterable[TrainingPair], *, size: int) -> Iterator[QuestionGroup]:
    """Put `size` pairs at a time into one group, whose passages are all theirs."""
    rest = iter(pairs)
    while batch := list(islice(rest, size)):
        builder = GroupBuilder(batch[0].source)
        for pair in batch:
            row = builder.add_passage(pair.passage)
            for negative in pair.negatives:
                builder.add_passage(negative)
            builder.add_question(pair.query, [row])
        group = builder.build()
        if group is not None:
            yield group
