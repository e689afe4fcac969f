"""Examples from question groups: turns with neighbours and dates, and what a search mistakes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from ekphory.models.rerank_input import RerankPassage
from ekphory.training.question_groups import Placement, QuestionGroup
from ekphory.training.reranker.dates import draw_date, draw_session_dates
from ekphory.training.reranker.examples import Candidate, CandidateKind, RerankExample
from ekphory.training.reranker.first_stage import FirstStage, first_stage
from ekphory.training.reranker.group_questions import Asked, draw_questions, speaker_of
from ekphory.training.teacher import BaseModel

_DATED_SHARE = 0.6
_DATED_TEXT_SHARE = 0.3
_NEIGHBOUR_SHARE = 0.85
_BESIDE_ANSWER_SHARE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateCounts:
    """How many candidates compete for a question.

    Attributes:
        answers: Most of those that answer.
        hard: Decoys, turns beside an answer, and the best that the first stage finds, together.
        random: Any others.
    """

    answers: int = 3
    hard: int = 7
    random: int = 1


def group_examples(
    group: QuestionGroup, base: BaseModel, random: Random, *, counts: CandidateCounts
) -> Iterator[RerankExample]:
    """Give an example for every question of a group that something competes for.

    Args:
        group: Passages and questions.
        base: The dense half of the first stage.
        random: Decides dates, forms of questions and random candidates.
        counts: How many candidates compete.

    Raises:
        MissingExtra: bm25s is not installed.
    """
    passages = _with_surroundings(group, random)
    asked = draw_questions(group, passages, random)
    decoys = [decoy.passage.text for each in asked for decoy in each.decoys]
    texts = [*group.passages, *decoys]
    view = first_stage(texts, [each.query.text for each in asked], base)
    choice = _Choice(group, passages, view, random, counts)
    first = len(passages)
    for place, each in enumerate(asked):
        example = choice.example(place, each, first_decoy=first)
        first += len(each.decoys)
        if not all(candidate.relevant for candidate in example.candidates):
            yield example


def _with_surroundings(group: QuestionGroup, random: Random) -> list[RerankPassage]:
    placements: Sequence[Placement | None] = group.placements or [None] * len(group.passages)
    spoken = any(placement is not None for placement in placements)
    dates = draw_session_dates(placements, random)
    if not spoken:
        dates = [draw_date(random) for _ in placements]
    with_dates = random.random() < (_DATED_SHARE if spoken else _DATED_TEXT_SHARE)
    if not (with_dates or group.dated):
        dates = [None] * len(placements)
    shown = random.random() < _NEIGHBOUR_SHARE
    return [
        RerankPassage(text, place.before, place.after, at)
        if shown and place is not None
        else RerankPassage(text, at=at)
        for text, place, at in zip(group.passages, placements, dates, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Choice:
    group: QuestionGroup
    passages: Sequence[RerankPassage]
    view: FirstStage
    random: Random
    counts: CandidateCounts

    def example(self, place: int, asked: Asked, *, first_decoy: int) -> RerankExample:
        answers = self.answers(asked)
        rows: dict[int, Candidate] = {}
        for row in answers:
            rows[row] = self.candidate(place, row, self.passages[row], "answer")
        for number, decoy in enumerate(asked.decoys, start=first_decoy):
            rows[number] = self.candidate(place, number, decoy.passage, decoy.kind)
        for row in self.beside(asked):
            rows[row] = self.candidate(place, row, self.passages[row], "neighbour")
        best_answer = max(self.view.lexical[place, list(asked.positives)])
        free = self.free(place, asked, taken=rows)
        hard = max(0, self.counts.hard - (len(rows) - len(answers)))
        for row in free[:hard]:
            kind = self.mined_kind(place, row, asked, best_answer)
            rows[row] = self.candidate(place, row, self.passages[row], kind)
        rest = free[hard:]
        for row in self.random.sample(rest, min(self.counts.random, len(rest))):
            rows[row] = self.candidate(place, row, self.passages[row], "random")
        # In any order: no place in the list may tell the answer.
        candidates = self.random.sample(list(rows.values()), len(rows))
        return RerankExample(self.group.source, asked.query, tuple(candidates))

    def answers(self, asked: Asked) -> list[int]:
        most = min(self.counts.answers, len(asked.positives))
        return self.random.sample(asked.positives, most)

    def beside(self, asked: Asked) -> list[int]:
        """Give, for half of the questions, a turn beside an answer: it has it as neighbour."""
        row = self.random.choice(asked.positives)
        around = (self.passages[row].before, self.passages[row].after)
        known = {text: place for place, text in enumerate(self.group.passages) if text in around}
        found = [place for place in known.values() if place not in asked.positives]
        if not found or self.random.random() >= _BESIDE_ANSWER_SHARE:
            return []
        return [self.random.choice(found)]

    def free(self, place: int, asked: Asked, *, taken: dict[int, Candidate]) -> list[int]:
        """Give the other passages that answer nothing, best first."""
        order = np.argsort(-self.view.fused[place, : len(self.passages)], kind="stable")
        barred = {*asked.positives, *taken}
        return [int(row) for row in order if int(row) not in barred]

    def mined_kind(self, place: int, row: int, asked: Asked, best_answer: float) -> CandidateKind:
        if asked.speaker is not None and speaker_of(self.passages[row].text) != asked.speaker:
            return "coreference"
        return "lexical_overlap" if self.view.lexical[place, row] > best_answer else "retrieved"

    def candidate(
        self, place: int, row: int, passage: RerankPassage, kind: CandidateKind
    ) -> Candidate:
        lexical, dense = self.view.lexical[place, row], self.view.dense[place, row]
        judged = row >= len(self.passages) or kind == "answer"
        return Candidate(passage, kind == "answer", kind, float(lexical), float(dense), judged)
