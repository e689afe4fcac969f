"""What is asked of a group: its own questions, some of them bound to a dialogue or a time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from ekphory.models.rerank_input import RerankPassage, RerankQuery
from ekphory.training.question_groups import Question, QuestionGroup
from ekphory.training.reranker.context_questions import (
    ContextQuestion,
    elliptical_question,
    pronoun_question,
    question_about_another,
    question_after_unrelated,
)
from ekphory.training.reranker.dates import GRAINS, draw_other_date, name_time
from ekphory.training.reranker.examples import CandidateKind

CONTEXT_SHARE = 0.28
TIMED_SHARE = 0.12
SWAPPED_SHARE = 0.15
_NAME = re.compile(r"\w+(?: \w+){0,2}")
_TIMED = ("{time}, {question}", "{rest} {time}?", "Going by what was said {time}: {question}")
# "Grog gives the sapphire to Kima" is a statement that is searched, no question to be rewritten.
_QUESTION = re.compile(r"^[A-Z].*\?$")
_ASKS_FOR_TIME = re.compile(r"^(When|How long|How many (days|weeks|months|years)|(In|On) wh)", re.I)


@dataclass(frozen=True, slots=True)
class Decoy:
    """A passage that was made to be wrong."""

    passage: RerankPassage
    kind: CandidateKind


@dataclass(frozen=True, slots=True)
class Asked:
    """One question put to a group's passages.

    Attributes:
        query: The question.
        positives: Rows of the passages that answer.
        decoys: Passages made to be wrong for this question.
        speaker: Whom a pronoun in it means, so that the others' turns are hard; None for none.
    """

    query: RerankQuery
    positives: tuple[int, ...]
    decoys: tuple[Decoy, ...] = ()
    speaker: str | None = None


def draw_questions(
    group: QuestionGroup, passages: Sequence[RerankPassage], random: Random
) -> list[Asked]:
    """Give each question of the group once, in one of the forms that fit it."""
    return [_Asker(group, passages, random).ask(question) for question in group.questions]


def speaker_of(text: str) -> str | None:
    """Give the name of up to three words before `: `; None where there is none."""
    name, colon, _ = text.partition(": ")
    return name if colon and _NAME.fullmatch(name) else None


@dataclass(frozen=True, slots=True)
class _Asker:
    group: QuestionGroup
    passages: Sequence[RerankPassage]
    random: Random

    def ask(self, question: Question) -> Asked:
        draw = self.random.random()
        asked: Asked | None = None
        if _QUESTION.match(question.text):
            if draw < CONTEXT_SHARE:
                asked = self.with_context(question)
            elif draw < CONTEXT_SHARE + TIMED_SHARE:
                asked = self.with_time(question)
        return asked or self.plain(question)

    def plain(self, question: Question) -> Asked:
        query = RerankQuery(question.text, now=self.now())
        decoys = self.swapped(question) if self.random.random() < SWAPPED_SHARE else ()
        return Asked(query, question.positives, decoys)

    def with_time(self, question: Question) -> Asked | None:
        """Name the day, month or year of the answer; the same words at another time are wrong."""
        dates = {self.passages[row].at for row in question.positives}
        at = dates.pop()
        if at is None or dates or _ASKS_FOR_TIME.match(question.text):
            return None
        named = name_time(at, self.random.choice(GRAINS))
        text = self.random.choice(_TIMED).format(
            time=named.words,
            question=question.text[0].lower() + question.text[1:],
            rest=question.text.rstrip("?"),
        )
        answer = self.passages[self.random.choice(question.positives)]
        decoys = tuple(
            Decoy(
                RerankPassage(
                    answer.text, answer.before, answer.after, draw_other_date(self.random, named)
                ),
                "temporal_interference",
            )
            for _ in range(self.random.randint(1, 2))
        )
        query = RerankQuery(text[0].upper() + text[1:], now=self.now())
        return Asked(query, question.positives, decoys)

    def with_context(self, question: Question) -> Asked | None:
        name = self.named(question.text)
        found: ContextQuestion | None = None
        kind = self.random.choice(("pronoun", "ellipsis", "another", "unrelated"))
        if kind == "unrelated":
            found = question_after_unrelated(question.text, self.random)
        elif kind == "ellipsis":
            found = elliptical_question(question.text, self.random)
        elif kind == "another" and name is not None:
            others = [other for other in self.speakers() if other != name]
            if others:
                other = self.random.choice(others)
                found = question_about_another(question.text, name, other, self.random)
        if found is None and name is not None:
            earlier = self.earlier(question, name)
            found = pronoun_question(question.text, name, earlier, self.random)
        if found is None:
            return None
        query = RerankQuery(found.text, found.context, self.now())
        speaker = name if found.text != question.text else None
        return Asked(query, question.positives, speaker=speaker)

    def swapped(self, question: Question) -> tuple[Decoy, ...]:
        """Give the answer's words, said by somebody else."""
        name = self.named(question.text)
        answer = self.passages[question.positives[0]]
        others = [other for other in self.speakers() if other not in (name, None)]
        if name is None or speaker_of(answer.text) != name or not others:
            return ()
        other = self.random.choice(others)
        if other in question.text or other in answer.text:
            return ()
        text = other + answer.text.removeprefix(name)
        return (Decoy(RerankPassage(text, at=answer.at), "entity_confusion"),)

    def earlier(self, question: Question, name: str) -> tuple[str, str] | None:
        """Give another question about the person with its answer, for half of the questions."""
        others = [
            other
            for other in self.group.questions
            if other is not question and name in other.text and _QUESTION.match(other.text)
        ]
        if not others or self.random.random() < 1 / 2:
            return None
        other = self.random.choice(others)
        return other.text, self.passages[other.positives[0]].text

    def named(self, text: str) -> str | None:
        """Give the one speaker whom the text names; None where it names none or several."""
        found = [name for name in self.speakers() if re.search(rf"\b{re.escape(name)}\b", text)]
        return found[0] if len(found) == 1 else None

    def speakers(self) -> list[str]:
        names = (speaker_of(passage.text) for passage in self.passages)
        return list(dict.fromkeys(name for name in names if name))

    def now(self) -> datetime | None:
        dates = [passage.at for passage in self.passages if passage.at is not None]
        return max(dates) + timedelta(days=self.random.randint(0, 200)) if dates else None
