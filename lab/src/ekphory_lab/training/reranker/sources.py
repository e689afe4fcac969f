"""Examples from question groups: turns with neighbours and dates, and what is asked of them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from itertools import cycle, islice
from random import Random
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ekphory.models.reranker import RerankPassage, RerankQuery
from ekphory.types import format_date
from ekphory_lab.evaluation.systems import bm25_scorer, z_scored_mean
from ekphory_lab.training.memories import GeneratedMemory, MemorySample, NegativeKind, generate
from ekphory_lab.training.memory_words import templates
from ekphory_lab.training.question_groups import (
    WORDS,
    BaseModel,
    Placement,
    Question,
    QuestionGroup,
)
from ekphory_lab.training.reranker.examples import Candidate, CandidateKind, HardCase, RerankExample
from ekphory_lab.training.texts import FIRST_NAMES

# Invented dates for conversations, and words that name one of them.

_EARLIEST = datetime(2017, 1, 1, tzinfo=UTC)
_SPAN_DAYS = 9 * 365
_MOST_GAP_DAYS = 45
_MINUTES_OF_A_DAY = 24 * 60

Grain = Literal["day", "month", "year"]
GRAINS: tuple[Grain, ...] = ("day", "month", "year")


@dataclass(frozen=True, slots=True)
class NamedTime:
    """A day, month or year in words.

    Attributes:
        words: Such as `on 8 May 2023` or `in May 2023`.
        grain: How much of a date has to agree.
        day: A moment inside it.
    """

    words: str
    grain: Grain
    day: datetime

    def covers(self, at: datetime) -> bool:
        """Whether that moment is inside."""
        return _part(at, self.grain) == _part(self.day, self.grain)


def name_time(at: datetime, grain: Grain) -> NamedTime:
    """Put a moment's day, month or year into words."""
    day = format_date(at)
    words = {"day": f"on {day}", "month": f"in {day.partition(' ')[2]}", "year": f"in {at.year}"}
    return NamedTime(words[grain], grain, at)


def name_time_apart(at: datetime, others: Sequence[datetime]) -> NamedTime | None:
    """Name the widest time around `at` that holds none of `others`; None where even a day does."""
    for grain in reversed(GRAINS):
        named = name_time(at, grain)
        if not any(named.covers(other) for other in others):
            return named
    return None


def draw_date(random: Random) -> datetime:
    """Draw a moment of the last years."""
    minutes = random.randrange(_SPAN_DAYS * _MINUTES_OF_A_DAY)
    return _EARLIEST + timedelta(minutes=minutes)


def draw_other_date(random: Random, named: NamedTime) -> datetime:
    """Draw a moment outside of a time, and not far from it."""
    while True:
        shift = random.choice((-1, 1)) * random.randint(1, 500)
        other = named.day + timedelta(days=shift)
        if not named.covers(other):
            return other


def draw_session_dates(
    placements: Sequence[Placement | None], random: Random
) -> list[datetime | None]:
    """Assign a date to each turn without one: a day for each conversation, later for later ones."""
    sessions = sorted({place.session for place in placements if place is not None})
    at = draw_date(random)
    days = {}
    for session in sessions:
        days[session] = at
        at += timedelta(days=random.randint(1, _MOST_GAP_DAYS), minutes=random.randrange(600))
    return [None if place is None else place.at or days[place.session] for place in placements]


def _part(at: datetime, grain: Grain) -> tuple[int, ...]:
    parts = {"day": (at.year, at.month, at.day), "month": (at.year, at.month), "year": (at.year,)}
    return parts[grain]


# Questions that only the dialogue before them explains: pronouns, ellipses, "and what about …?".
#
# Each rewriting takes a whole question, hides a part of it, and puts that part into the context.

_AUXILIARIES = "did|does|do|is|are|was|were|has|have|had|can|could|will|would|should|may|might|must"
_ELLIPTICAL = re.compile(
    rf"^(?P<ask>When|Where|Why|How long) (?P<rest>(?P<auxiliary>{_AUXILIARIES}) .+)\?$"
)
_DIALOGUES = WORDS["dialogues"]
_PERSONS = (("he", "his", "him"), ("she", "her", "her"))


def pronoun_question(
    question: str, name: str, earlier: tuple[str, str] | None, random: Random
) -> RerankQuery | None:
    """Say he or she for `name`, who is the subject or owner in the question.

    Args:
        question: Names the person.
        name: The person.
        earlier: Another question about them and a passage that answers it; None for none.
        random: Chooses pronoun and wording.

    Returns:
        None where the question does not name the person in such a place.
    """
    subject, possessive, _ = random.choice(_fitting_persons(question))
    found = re.compile(rf"(?<=\b)(?P<owner>{re.escape(name)}'s)|(?P<who>{re.escape(name)})\b")
    match = found.search(question)
    if match is None:
        return None
    if match["who"] and not re.search(rf"\b(?:{_AUXILIARIES}) $", question[: match.start()], re.I):
        return None
    pronoun = possessive if match["owner"] else subject
    text = question[: match.start()] + pronoun + question[match.end() :]
    if re.search(rf"\b{re.escape(name)}\b", text):
        return None
    return RerankQuery(_capitalised(text), _told(_introduction(name, earlier, random), random))


def elliptical_question(question: str, random: Random) -> RerankQuery | None:
    """Ask "When was that?" after the rest of a question that begins with such a word.

    >>> elliptical_question("When did Ada go hiking?", Random(1)).context[0]
    'user: Did Ada go hiking?'

    Returns:
        None where the question begins with another word.
    """
    match = _ELLIPTICAL.match(question)
    if match is None:
        return None
    confirmed = (_capitalised(match["rest"]) + "?", random.choice(_DIALOGUES["confirmed"]))
    return RerankQuery(
        random.choice(_DIALOGUES["short_questions"][match["ask"]]), _told(confirmed, random)
    )


def question_about_another(
    question: str, name: str, other: str, random: Random
) -> RerankQuery | None:
    """Ask "And Ada?" after the same question about somebody else.

    Returns:
        None where the question does not name the person, or names both.
    """
    if not re.search(rf"\b{re.escape(name)}\b", question) or other in question:
        return None
    asked = re.sub(rf"\b{re.escape(name)}\b", other, question)
    said = (asked, random.choice(("Let me see.", "I found something on that.", "Yes, I know.")))
    return RerankQuery(
        random.choice(_DIALOGUES["about_others"]).format(name=name), _told(said, random)
    )


def question_after_unrelated(question: str, random: Random) -> RerankQuery:
    """Put a dialogue before the question that has nothing to do with it."""
    return RerankQuery(question, _told(random.choice(_DIALOGUES["unrelated"]), random))


def _fitting_persons(question: str) -> list[tuple[str, str, str]]:
    """Return the persons whose possessive the question does not contradict."""
    other = {"his": "her", "her": "his"}
    words = set(re.findall(r"[a-z]+", question.lower()))
    fitting = [person for person in _PERSONS if other[person[1]] not in words]
    return fitting or list(_PERSONS)


def _introduction(name: str, earlier: tuple[str, str] | None, random: Random) -> tuple[str, ...]:
    if earlier is not None:
        return earlier
    return random.choice(_DIALOGUES["openings"]).format(name=name), random.choice(
        _DIALOGUES["replies"]
    ).format(name=name)


def _told(turns: tuple[str, ...], random: Random) -> tuple[str, ...]:
    roles = random.choice(_DIALOGUES["roles"])
    return tuple(roles[place % 2] + turn for place, turn in enumerate(turns))


def _capitalised(text: str) -> str:
    return text[0].upper() + text[1:]


# What is asked of a group: its own questions, some of them bound to a dialogue or a time.

CONTEXT_SHARE = 0.28
TIMED_SHARE = 0.12
SWAPPED_SHARE = 0.15
_NAME = re.compile(r"\w+(?: \w+){0,2}")
_TIMED = ("{time}, {question}", "{rest} {time}?", "Going by what was said {time}: {question}")
# "Grog gives the sapphire to Kima" is a statement that is searched, no question to be rewritten.
_QUESTION = re.compile(r"^[A-Z].*\?$")
_ASKS_FOR_TIME = re.compile(r"^(When|How long|How many (days|weeks|months|years)|(In|On) wh)", re.I)


Decoy = tuple[RerankPassage, CandidateKind]
"""A passage that was made to be wrong, and how."""


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


def speaker_of(text: str) -> str | None:
    """Return the name of up to three words before `: `; None where there is none."""
    name, colon, _ = text.partition(": ")
    return name if colon and _NAME.fullmatch(name) else None


@dataclass(frozen=True, slots=True)
class _Asker:
    """Puts each question of a group in one of the forms that fit it."""

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
        wrong = range(self.random.randint(1, 2))
        others = [draw_other_date(self.random, named) for _ in wrong]
        decoys: list[Decoy] = [
            (replace(answer, at=other), "temporal_interference") for other in others
        ]
        query = RerankQuery(_capitalised(text), now=self.now())
        return Asked(query, question.positives, tuple(decoys))

    def with_context(self, question: Question) -> Asked | None:
        name = self.named(question.text)
        found: RerankQuery | None = None
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
        query = replace(found, now=self.now())
        speaker = name if found.text != question.text else None
        return Asked(query, question.positives, speaker=speaker)

    def swapped(self, question: Question) -> tuple[Decoy, ...]:
        """Return the answer's words, said by somebody else."""
        name = self.named(question.text)
        answer = self.passages[question.positives[0]]
        others = [other for other in self.speakers() if other not in (name, None)]
        if name is None or speaker_of(answer.text) != name or not others:
            return ()
        other = self.random.choice(others)
        if other in question.text or other in answer.text:
            return ()
        text = other + answer.text.removeprefix(name)
        return ((RerankPassage(text, at=answer.at), "entity_confusion"),)

    def earlier(self, question: Question, name: str) -> tuple[str, str] | None:
        """Return another question about the person with its answer, for half of the questions."""
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
        """Return the one speaker whom the text names; None where it names none or several."""
        found = [name for name in self.speakers() if re.search(rf"\b{re.escape(name)}\b", text)]
        return found[0] if len(found) == 1 else None

    def speakers(self) -> list[str]:
        names = (speaker_of(passage.text) for passage in self.passages)
        return list(dict.fromkeys(name for name in names if name))

    def now(self) -> datetime | None:
        dates = [passage.at for passage in self.passages if passage.at is not None]
        return max(dates) + timedelta(days=self.random.randint(0, 200)) if dates else None


# What the first stage of a search says of questions and passages: BM25, cosine and their mean.

FloatMatrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FirstStage:
    """Scores of shape (questions, passages).

    Attributes:
        lexical: BM25; 0 where no word is shared.
        dense: Cosine.
        fused: Mean of the two, each z-scored over the passages.
    """

    lexical: FloatMatrix
    dense: FloatMatrix
    fused: FloatMatrix

    def candidate(
        self, place: int, row: int, passage: RerankPassage, kind: CandidateKind, *, judged: bool
    ) -> Candidate:
        """Return a passage as candidate of a question, by their places."""
        lexical, dense = float(self.lexical[place, row]), float(self.dense[place, row])
        return Candidate(passage, kind == "answer", kind, lexical, dense, judged)


def first_stage(passages: Sequence[str], questions: Sequence[str], base: BaseModel) -> FirstStage:
    """Score all passages for every question, as a search in a store that holds only them.

    Raises:
        MissingExtra: bm25s is not installed.
    """
    scorer = bm25_scorer(passages)
    lexical = np.stack([np.nan_to_num(scorer(text), nan=0.0) for text in questions])
    dense = np.asarray(base.encode(questions) @ base.encode(passages).T, np.float64)
    rows = [z_scored_mean(*arms) for arms in zip(lexical, dense, strict=True)]
    return FirstStage(lexical, dense, np.stack(rows))


# Examples from question groups: turns with neighbours and dates, and what a search mistakes.

_DATED_SHARE = 0.6
_DATED_TEXT_SHARE = 0.3
_NEIGHBOUR_SHARE = 0.85
_NEAR = (-2, -1, 1, 2)
"""How far from an answer a turn is near it: there it is announced, asked for or commented."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateCounts:
    """How many candidates compete for a question.

    Attributes:
        answers: Most of those that answer.
        hard: Decoys, turns beside an answer, and the best that the first stage finds, together.
        near: Most turns near an answer.
        random: Any others.
    """

    answers: int = 3
    hard: int = 7
    near: int = 1
    random: int = 1


def group_examples(
    group: QuestionGroup, base: BaseModel, random: Random, *, counts: CandidateCounts
) -> Iterator[RerankExample]:
    """Return an example for every question of a group that something competes for.

    Args:
        group: Passages and questions.
        base: The dense half of the first stage.
        random: Decides dates, forms of questions and random candidates.
        counts: How many candidates compete.

    Raises:
        MissingExtra: bm25s is not installed.
    """
    passages = _with_surroundings(group, random)
    asker = _Asker(group, passages, random)
    asked = [asker.ask(question) for question in group.questions]
    decoys = [passage.text for each in asked for passage, _ in each.decoys]
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


def _shuffled_example(
    source: str, query: RerankQuery, candidates: Sequence[Candidate], random: Random
) -> RerankExample:
    # In any order: no place in the list may tell the answer.
    return RerankExample(source, query, tuple(random.sample(candidates, len(candidates))))


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
        for number, (passage, kind) in enumerate(asked.decoys, start=first_decoy):
            rows[number] = self.candidate(place, number, passage, kind)
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
        source, candidates = self.group.source, list(rows.values())
        return _shuffled_example(source, asked.query, candidates, self.random)

    def answers(self, asked: Asked) -> list[int]:
        most = min(self.counts.answers, len(asked.positives))
        return self.random.sample(asked.positives, most)

    def beside(self, asked: Asked) -> list[int]:
        """Return up to so many turns near an answer, which often announce it or ask for it."""
        found = sorted(
            {
                row + step
                for row in asked.positives
                for step in _NEAR
                if self.is_same_session(row, row + step)
            }
            - set(asked.positives)
        )
        wanted = self.random.randint(0, self.counts.near)
        return self.random.sample(found, min(wanted, len(found)))

    def is_same_session(self, row: int, other: int) -> bool:
        placements = self.group.placements
        if not 0 <= other < len(placements):
            return False
        places = placements[row], placements[other]
        return all(places) and len({place.session for place in places if place}) == 1

    def free(self, place: int, asked: Asked, *, taken: dict[int, Candidate]) -> list[int]:
        """Return the other passages that answer nothing, best first."""
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
        judged = row >= len(self.passages) or kind == "answer"
        return self.view.candidate(place, row, passage, kind, judged=judged)


# Examples from generated memories: denials, numbers, entities, times, nearly the same words.
#
# A query's words for a time ("last spring") become a date, since a reranker reads dates and no
# ages.

MEMORIES_SOURCE = "memories"
_TOGETHER = 12
_SAMPLES = 200_000

HARD_CASE_OF: Mapping[NegativeKind, HardCase] = {
    "temporal": "temporal_interference",
    "type_confusion": "lexical_overlap",
    "topic_drift": "lexical_overlap",
    "entity_confusion": "entity_confusion",
    "negation": "inverse",
    "number": "numerical",
    "near_duplicate": "lexical_overlap",
}


def memory_examples(base: BaseModel, *, seed: int) -> Iterator[RerankExample]:
    """Return examples of the training half, many but not without end.

    Args:
        base: The dense half of the first stage.
        seed: Decides everything.

    Raises:
        MissingExtra: bm25s is not installed.
    """
    random = Random(f"{seed}:{MEMORIES_SOURCE}")  # noqa: S311  no secret
    samples = generate("train", seed=seed, count=_SAMPLES)
    while batch := list(islice(samples, _TOGETHER)):
        yield from _examples(batch, base, random)


def _examples(
    samples: Sequence[MemorySample], base: BaseModel, random: Random
) -> Iterator[RerankExample]:
    memories = [memory for sample in samples for memory in sample.memories]
    dated = [dated_query(sample, draw_date(random)) for sample in samples]
    view = first_stage([memory.text for memory in memories], [query.text for query in dated], base)
    first = 0
    for place, (sample, query) in enumerate(zip(samples, dated, strict=True)):
        kinds: list[CandidateKind] = ["answer"]
        kinds += [HARD_CASE_OF[negative.kind] for negative in sample.negatives]
        own = range(first, first + len(kinds))
        first += len(kinds)
        other = random.choice([row for row in range(len(memories)) if row not in own])
        rows = [*zip(own, kinds, strict=True), (other, "random")]
        passages = {row: _passage(memories[row], query.now) for row, _ in rows}
        candidates = [
            view.candidate(place, row, passages[row], kind, judged=kind != "random")
            for row, kind in rows
        ]
        yield _shuffled_example(MEMORIES_SOURCE, query, candidates, random)


def dated_query(sample: MemorySample, now: datetime) -> RerankQuery:
    """Put the date that is meant in the place of the sample's longest words for a time.

    It is the widest of year, month and day that holds the answer and no `temporal` negative.
    """
    known = (words for phrase in templates("train").times for words in phrase.words)
    words = max((each for each in known if f" {each}" in sample.query), key=len, default=None)
    if words is None:
        return RerankQuery(sample.query, now=now)
    at = _at(sample.positive, now)
    others = [_at(each.memory, now) for each in sample.negatives if each.kind == "temporal"]
    named = name_time_apart(at, others) or name_time(at, "day")
    return RerankQuery(sample.query.replace(f" {words}", f" {named.words}"), now=now)


def _passage(memory: GeneratedMemory, now: datetime | None) -> RerankPassage:
    at = None if now is None else _at(memory, now)
    return RerankPassage(memory.text, at=at, type=memory.type)


def _at(memory: GeneratedMemory, now: datetime) -> datetime:
    return now - timedelta(days=memory.days_ago)


# Generated examples of what no other source has: causal reversal, granularity, multi-hop.
#
# The words are in `hard_case_words.toml`. Every example has the sentences of three people.

HARD_CASES_SOURCE = "hard_cases"
_DATED_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class HardCaseText:
    """One question with what is said.

    Attributes:
        question: What is asked.
        said: `speaker: text` with what it is.
    """

    question: str
    said: tuple[tuple[str, CandidateKind], ...]


def hard_case_examples(base: BaseModel, *, seed: int) -> Iterator[RerankExample]:
    """Return examples without end, the three kinds in turn.

    Args:
        base: The dense half of the first stage.
        seed: Decides everything.

    Raises:
        MissingExtra: bm25s is not installed.
    """
    random = Random(f"{seed}:{HARD_CASES_SOURCE}")  # noqa: S311  no secret
    texts = (make(random) for make in cycle((causal_reversal, granularity, multi_hop)))
    while True:
        yield from _hard_case_examples(list(islice(texts, _TOGETHER)), base, random)


def causal_reversal(random: Random) -> HardCaseText:
    """Make cause and effect, and the same the other way round."""
    words = _words()
    name, other = random.sample(FIRST_NAMES, 2)
    effect, cause, third = (text.split(" > ") for text in random.sample(words["causes"], 3))
    sentence = random.choice(words["cause_sentences"])
    if random.random() < 2 / 3:
        known = effect
        question = random.choice(words["cause_questions"]).format(
            name=name, effect=effect[1].format(their="their")
        )
        beside = sentence.format(effect=third[0], cause=effect[0])
    else:
        known = cause
        question = random.choice(words["effect_questions"]).format(
            name=name, cause=cause[0].replace(" my ", " their ")
        )
        beside = sentence.format(effect=cause[0], cause=third[0])
    incomplete = random.choice(words["cause_incomplete"]).format(known=known[0])
    said: tuple[tuple[str, CandidateKind], ...] = (
        (f"{name}: {sentence.format(effect=effect[0], cause=cause[0])}", "answer"),
        (f"{name}: {sentence.format(effect=cause[0], cause=effect[0])}", "causal_reversal"),
        (f"{name}: {beside}", "causal_reversal"),
        (f"{other}: {sentence.format(effect=effect[0], cause=third[0])}", "entity_confusion"),
        (f"{name}: {incomplete}", "lexical_overlap"),
        (f"{other}: {question}", "lexical_overlap"),
    )
    return HardCaseText(question, said)


def granularity(random: Random) -> HardCaseText:
    """Make the fine answer beside coarser ones, and beside the fine one of somebody else."""
    grain = random.choice(_words()["grains"])
    name, other = random.sample(FIRST_NAMES, 2)
    first, second = (text.split(" > ") for text in random.sample(grain["values"], 2))
    sentences = random.sample(grain["sentences"], len(grain["sentences"]))
    said: list[tuple[str, CandidateKind]] = [
        (f"{name}: {_capitalised(sentences[0].format(x=first[0]))}", "answer"),
        (f"{name}: {_capitalised(sentences[0].format(x=first[1]))}", "granularity"),
        (f"{name}: {_capitalised(sentences[1].format(x=first[1]))}", "granularity"),
        (f"{other}: {_capitalised(sentences[0].format(x=second[0]))}", "entity_confusion"),
        (f"{other}: {_capitalised(sentences[1].format(x=second[1]))}", "entity_confusion"),
    ]
    return HardCaseText(random.choice(grain["questions"]).format(name=name), tuple(said))


def multi_hop(random: Random) -> HardCaseText:
    """Make who somebody is and what that person says, beside the same of others."""
    words = _words()
    name, other, third = random.sample(FIRST_NAMES, 3)
    relation, second = random.sample(words["relations"], 2)
    fact = random.choice(words["facts"])
    values = random.sample(fact["values"], 3)
    bridge = random.choice(words["bridges"])
    sentence = random.choice(fact["sentences"])

    def states(who: str, value: str) -> str:
        return f"{who}: {_capitalised(sentence.format(x=value))}"

    def knows(who: str, relation: str, whom: str) -> str:
        return f"{who}: {_capitalised(bridge.format(relation=relation, other=whom))}"

    said: tuple[tuple[str, CandidateKind], ...] = (
        (knows(name, relation, other), "answer"),
        (states(other, values[0]), "answer"),
        (states(third, values[1]), "multi_hop"),
        (states(name, values[2]), "multi_hop"),
        (knows(name, second, third), "multi_hop"),
        (knows(third, relation, name), "multi_hop"),
    )
    question = random.choice(fact["questions"]).format(name=name, relation=relation)
    return HardCaseText(question, said)


def _hard_case_examples(
    texts: Sequence[HardCaseText], base: BaseModel, random: Random
) -> Iterator[RerankExample]:
    said = [passage for text in texts for passage, _ in text.said]
    view = first_stage(said, [text.question for text in texts], base)
    first = 0
    for place, text in enumerate(texts):
        at = draw_date(random) if random.random() < _DATED_SHARE else None
        own = range(first, first + len(text.said))
        first += len(text.said)
        strange = random.sample([row for row in range(len(said)) if row not in own], 3)
        kinds: list[CandidateKind] = [kind for _, kind in text.said]
        kinds += ["random"] * len(strange)
        candidates = [
            view.candidate(place, row, RerankPassage(said[row], at=at), kind, judged=True)
            for row, kind in zip([*own, *strange], kinds, strict=True)
        ]
        query = RerankQuery(text.question, now=at)
        yield _shuffled_example(HARD_CASES_SOURCE, query, candidates, random)


@cache
def _words() -> Mapping[str, Any]:
    file = files("ekphory_lab.training.reranker").joinpath("hard_case_words.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))
