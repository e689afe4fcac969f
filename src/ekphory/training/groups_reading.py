"""Question groups of reading comprehension: SQuAD, Natural Questions, PolicyQA and TimeQA.

They keep what the base weights know of written text, while conversations are learned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random

from ekphory.evaluation.baselines import bm25_scorer
from ekphory.training.hard_negatives import with_hard_negatives
from ekphory.training.question_groups import (
    GroupBuilder,
    QuestionGroup,
    TrainingPair,
    grouped_pairs,
)
from ekphory.training.training_rows import Row, clean_text, shortened

_SQUAD_PASSAGES = 60
_SQUAD_QUESTIONS = 24
_NQ_QUESTIONS = 10
_NQ_NEGATIVES = 2
_POLICY_PASSAGES = 24
_POLICY_QUESTIONS = 16
_TIME_PASSAGES = 20
_MOST_WORDS = 110


def squad_groups(rows: Sequence[Row], random: Random) -> Iterator[QuestionGroup]:
    """SQuAD's questions with the sentences around the one that answers."""
    pairs = [(clean_text(row["query"]), clean_text(row["sentence"])) for row in rows]
    yield from _windows(pairs, "squad", _SQUAD_PASSAGES, _SQUAD_QUESTIONS, random)


def policyqa_groups(rows: Sequence[Row], random: Random) -> Iterator[QuestionGroup]:
    """Questions about privacy policies, with neighbouring segments of the same policies."""
    pairs = [(row["query"], shortened(row["passage"], _MOST_WORDS)) for row in rows]
    yield from _windows(pairs, "policyqa", _POLICY_PASSAGES, _POLICY_QUESTIONS, random)


def nq_groups(rows: Sequence[Row], random: Random) -> Iterator[QuestionGroup]:
    """Natural Questions with passages of Wikipedia that share the question's words."""
    passages = [shortened(f"{row['title']}. {row['passage']}", _MOST_WORDS) for row in rows]
    pairs = [
        TrainingPair(row["query"], passage, (), "nq_gold")
        for row, passage in zip(rows, passages, strict=True)
    ]
    shuffled = random.sample(pairs, len(pairs))
    mined = with_hard_negatives(
        shuffled, passages, bm25_scorer(passages), count=_NQ_NEGATIVES, random=random
    )
    yield from grouped_pairs(mined, size=_NQ_QUESTIONS)


def timeqa_groups(rows: Sequence[Row], random: Random) -> Iterator[QuestionGroup]:
    """Questions about a time, with the other paragraphs of the same page."""
    for row in random.sample(list(rows), len(rows)):
        answering = {place for asked in row["questions"] for place in asked["paragraphs"]}
        others = [
            place
            for place, text in enumerate(row["paragraphs"])
            if place not in answering and len(text.split()) > 8
        ]
        room = max(0, _TIME_PASSAGES - len(answering))
        chosen = sorted(answering | set(random.sample(others, min(room, len(others)))))
        builder = GroupBuilder("timeqa")
        places = {
            place: builder.add_passage(shortened(clean_text(row["paragraphs"][place]), _MOST_WORDS))
            for place in chosen
        }
        for asked in row["questions"]:
            builder.add_question(asked["query"], [places[place] for place in asked["paragraphs"]])
        group = builder.build()
        if group is not None:
            yield group


def _windows(
    pairs: Sequence[tuple[str, str]], source: str, passages: int, questions: int, random: Random
) -> Iterator[QuestionGroup]:
    builders = list(_cut(pairs, source, passages))
    for builder in random.sample(builders, len(builders)):
        texts = builder.questions
        group = builder.build(random.sample(texts, min(questions, len(texts))))
        if group is not None:
            yield group


def _cut(pairs: Iterable[tuple[str, str]], source: str, passages: int) -> Iterator[GroupBuilder]:
    builder = GroupBuilder(source)
    for query, passage in pairs:
        builder.add_question(query, [builder.add_passage(passage)])
        if builder.size >= passages:
            yield builder
            builder = GroupBuilder(source)
    if builder.size > 1:
        yield builder
