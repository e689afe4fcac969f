"""Questions with the passages that compete for them: what the embedder is trained on."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ekphory.errors import InvalidInput
from ekphory_lab.evaluation.systems import bm25_scorer, z_scored_mean

WORDS: dict[str, Any] = tomllib.loads(
    (Path(__file__).parent / "words.toml").read_text(encoding="utf-8")
)
"""Words that training data are made with."""

# A group is a small collection, such as one conversation: all its questions are asked of all its
# passages, as a search asks them, so every passage is encoded once for many questions.


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
        placements: For each passage where it stands; None for what is not a turn.
    """

    source: str
    passages: tuple[str, ...]
    questions: tuple[Question, ...]
    placements: tuple[Placement | None, ...] = ()

    @property
    def dated(self) -> bool:
        """Whether its turns have dates of their own, to which what is said refers."""
        return any(place is not None and place.at is not None for place in self.placements)


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
        """Add a passage, once, and return its row. Its first place counts."""
        if text not in self._passages:
            self._passages[text] = len(self._passages)
            self._placements.append(placement)
        return self._passages[text]

    def add_session(self, texts: Sequence[str], *, at: datetime | None = None) -> list[int]:
        """Add the turns of one more conversation, in order, and return their rows."""
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
        """Return the group, with these questions of it only; None without a question.

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
            raise InvalidInput(
                "positives", text, "must have a passage that answers it", "Name one or more."
            )
        return rows


def placed_turns(
    texts: Sequence[str], *, session: int, at: datetime | None = None
) -> list[Placement]:
    """Place the turns of one conversation, which are given in order."""
    before, after = [None, *texts[:-1]], [*texts[1:], None]
    return [Placement(session, *around, at) for around in zip(before, after, strict=True)]


_BY_WORD: dict[str, list[str]] = {word: group for group in WORDS["synonyms"] for word in group}
_KNOWN = re.compile(
    r"\b(?:" + "|".join(sorted(map(re.escape, _BY_WORD), key=len, reverse=True)) + r")\b"
)


def reworded(text: str, random: Random, *, share: float = 0.4) -> str:
    """Replace each word that has synonyms by one of them, with probability `share`."""

    def replaced(match: re.Match[str]) -> str:
        if random.random() >= share:
            return match[0]
        return random.choice([word for word in _BY_WORD[match[0]] if word != match[0]])

    return _KNOWN.sub(replaced, text)


# Turns a question that is put to somebody into the question of a third person about them.

_CONTEXT_WORDS = re.compile(r"\b(?:it|that|this|them|those|these|else|too|one|there|me|i)\b", re.I)
_YOU = re.compile(r"\b(?:you|your)\b", re.I)
_THIRD_PERSON = [(re.compile(asked, re.I), told) for asked, told in WORDS["third_person"]]
_LAST_SENTENCE = re.compile(r"(?:^|[.!?,]\s+)((?:so|and|but|well|oh)[, ]+)?([^.!?]*\?)\s*$", re.I)
_LEAST_WORDS = 4
_ANSWERS_NOTHING = re.compile(r"what about|how about|how are you|do you mean|you know", re.I)


def reported_question(turn: str, name: str) -> str | None:
    """Return the turn's closing question as one about `name`, to whom it was put.

    >>> reported_question("Nice! What do you do for fun?", "Ada")
    'What does Ada do for fun?'

    Returns:
        None where the turn ends with no question, or with one that only its context explains.
    """
    match = _LAST_SENTENCE.search(turn.replace("\u2019", "'"))
    question = match[2].strip() if match else ""
    if len(question.split()) < _LEAST_WORDS or _CONTEXT_WORDS.search(question):
        return None
    if not _YOU.search(question) or _ANSWERS_NOTHING.search(question):
        return None
    for pattern, wording in _THIRD_PERSON:
        question = pattern.sub(wording.format(name), question)
    return question[0].upper() + question[1:]


# The teacher: the z-scored mean of BM25 and the base model, which ranks better than either.
#
# On conversations BM25 finds what a small dense model misses. Following the mean of the two inside
# each group teaches the dense model the weight of exact words without giving up its own meaning.

FloatMatrix = NDArray[np.float32]


class BaseModel(Protocol):
    """The dense half of the teacher."""

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        """Embed passages; shape (len(texts), dimension), rows of length 1."""

    def encode_query(self, texts: Sequence[str]) -> FloatMatrix:
        """Embed questions likewise, with what the model puts before them."""


@dataclass(frozen=True, slots=True)
class TeacherView:
    """What the teacher says of one group.

    Attributes:
        scores: In standard deviations over the group, shape (questions, passages).
        passages: The base model's vectors of the passages, rows of length 1.
        questions: The base model's vectors of the questions, rows of length 1.
    """

    scores: FloatMatrix
    passages: FloatMatrix
    questions: FloatMatrix


def teacher_view(group: QuestionGroup, base: BaseModel) -> TeacherView:
    """Score all passages of a group for each of its questions.

    Raises:
        MissingExtra: bm25s is not installed.
    """
    lexical = bm25_scorer(group.passages)
    texts = [question.text for question in group.questions]
    passages = np.asarray(base.encode(group.passages), np.float32)
    questions = np.asarray(base.encode_query(texts), np.float32)
    dense = questions @ passages.T
    rows = [
        z_scored_mean(lexical(text), dense[place].astype(np.float64))
        for place, text in enumerate(texts)
    ]
    return TeacherView(np.asarray(rows, np.float32), passages, questions)
