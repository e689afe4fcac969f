"""Cases of AgentMem: one query, the memory that answers it, and memories that resemble it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib.resources import files
from pathlib import Path

import numpy as np

from ekphory.errors import DatasetError
from ekphory.types import MEMORY_TYPES, MemoryType, Scalar
from ekphory_lab.evaluation.datasets import Dataset, EvaluationQuery, Passage, Row, read_json_lines
from ekphory_lab.evaluation.metrics import FloatArray
from ekphory_lab.evaluation.systems import Scorer, bm25_scorer, newest_moment

# What is ranked: one query, the memory that answers it, and memories that do not.

CANDIDATES = 8
"""Candidates of a case: one that answers, and seven that do not."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One memory that is ranked.

    Attributes:
        text: What is embedded; `speaker: text` where it is known who says it.
        days_ago: Its age in days when the query is put; None where unknown.
        type: What kind of memory it is; None where unknown.
    """

    text: str
    days_ago: float | None = None
    type: MemoryType | None = None


@dataclass(frozen=True, slots=True)
class Distractor:
    """A candidate that does not answer.

    Attributes:
        kind: In what it resembles the answer.
        candidate: The memory.
    """

    kind: str
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class RankingCase:
    """One query with its candidates.

    Attributes:
        id: Unique within its set.
        query: The query's text.
        answer: The one candidate that answers.
        distractors: Seven that do not.
    """

    id: str
    query: str
    answer: Candidate
    distractors: tuple[Distractor, ...]

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """All candidates, the answer first; their order decides nothing."""
        return (self.answer, *(each.candidate for each in self.distractors))


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSet:
    """Cases of one origin.

    Attributes:
        name: Its name.
        cases: The cases.
        origin: Where they come from, as values for a report.
        missing: How many cases have no distractor of a kind, by kind; others stand there instead.
    """

    name: str
    cases: tuple[RankingCase, ...]
    origin: Mapping[str, Scalar]
    missing: Mapping[str, int] = field(default_factory=dict)


# Importance and type of texts, as labelled: by hand for real turns, by rule for generated ones.


@dataclass(frozen=True, slots=True)
class LabelledText:
    """One text.

    Attributes:
        text: What a model reads.
        importance: In [0, 1].
        type: What kind of memory it is; `unknown` where none of the three fits.
    """

    text: str
    importance: float
    type: MemoryType


LABELS = files("ekphory_lab.evaluation") / "labels" / "conversation_turns.jsonl"
"""A hundred labelled turns of conversation sets, whose texts stay with the sets.

Importance is 0, .25, .5, .75 or 1: nothing to keep, a passing remark, worth keeping, a preference
or plan that shapes what comes, health or a commitment. The type is `unknown` for greetings, thanks,
questions and mere reactions.
"""


def labelled_turns(
    datasets: Sequence[Dataset], file: Path | None = None
) -> tuple[LabelledText, ...]:
    """Return the labelled turns of these sets, in the order of the labels.

    Args:
        datasets: Whose turns.
        file: The labels; None takes those that come with ekphory-lab.

    Raises:
        DatasetError: A line does not hold a label, or a set lacks a turn that is labelled as its.
    """
    by_name = {dataset.name: dataset for dataset in datasets}
    rows = read_json_lines(file or Path(str(LABELS)))
    return tuple(
        _labelled(row, by_name[name]) for row in rows if (name := row.text("dataset")) in by_name
    )


def _labelled(row: Row, dataset: Dataset) -> LabelledText:
    importance, pool, turn_id = row.fields.get("importance"), row.text("pool"), row.text("id")
    if not isinstance(importance, int | float) or not 0 <= importance <= 1:
        raise row.error("importance", "a number from 0 to 1 is needed here")
    type_ = next((name for name in MEMORY_TYPES if name == row.text("type")), None)
    if type_ is None:
        raise row.error("type", f"one of {', '.join(MEMORY_TYPES)} is needed here")
    for turn in dataset.pools.get(pool, ()):
        if turn.id == turn_id:
            return LabelledText(turn.indexed_text, importance, type_)
    raise DatasetError(
        f"{dataset.name}: pool {pool!r} has no turn {turn_id!r}, which is labelled. "
        "Fetch the set again."
    )


# Cases from real conversations: the evidence turn against seven turns chosen by plain rules.

_APART = timedelta(days=7)
_DAY = timedelta(days=1)
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]+")
_NUMBER = re.compile(r"\d+")
_NEGATION = re.compile(
    r"\b(?:no|not|never|none|nothing|nobody|without|cannot|\w+n['’]t)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Situation:
    """One query beside its conversation.

    Attributes:
        passages: All turns, in their order.
        answer: Place of the evidence turn.
        likeness: How much each turn has in common with the evidence turn, by BM25.
    """

    passages: Sequence[Passage]
    answer: int
    likeness: FloatArray

    @property
    def evidence(self) -> Passage:
        """The evidence turn."""
        return self.passages[self.answer]


Rule = Callable[[Situation, Passage], bool]


def _adjacent(situation: Situation, turn: Passage) -> bool:
    place = situation.answer
    beside = situation.passages[max(0, place - 1) : place + 2]
    return turn in beside and turn.session == situation.evidence.session


def _another_time(situation: Situation, turn: Passage) -> bool:
    at, then = turn.at, situation.evidence.at
    return at is not None and then is not None and abs(at - then) >= _APART


def _number_or_negation(situation: Situation, turn: Passage) -> bool:
    evidence = situation.evidence.text
    numbers = set(_NUMBER.findall(turn.text))
    if numbers and numbers != set(_NUMBER.findall(evidence)):
        return True
    return bool(_NEGATION.search(turn.text)) != bool(_NEGATION.search(evidence))


RULES: Mapping[str, Rule] = {
    "adjacent_turn": _adjacent,
    "number_or_negation": _number_or_negation,
    "other_entity": lambda case, turn: bool(_names(turn) - _names(case.evidence)),
    "another_time": _another_time,
    "other_speaker": lambda case, turn: turn.speaker != case.evidence.speaker,
    "same_speaker_and_topic": lambda case, turn: turn.speaker == case.evidence.speaker,
}
"""By kind: which turns may stand for it. Among them the one most like the evidence is taken, and
each turn once. In this order, so that the kinds with few turns choose first; what is left of the
seven places goes to `lexical_overlap`, the turns that share most with the query."""

LEXICAL = "lexical_overlap"


def conversation_cases(dataset: Dataset) -> CaseSet:
    """Make one case for each query.

    The answer is the first evidence turn; no other evidence turn of the query is a candidate. A
    query whose conversation has fewer than eight such texts makes no case. The age of a turn is
    counted from when the query is put, or from the conversation's newest turn; its type is unknown.
    What `RULES` and `lexical_overlap` prefer is measured by BM25 with its words weighed over the
    conversation, so the set is harder on BM25 than on anything else.
    """
    missing: Counter[str] = Counter()
    cases = tuple(_cases(dataset, missing))
    return CaseSet(
        name=dataset.name,
        cases=cases,
        origin={
            "sha256": dataset.sha256,
            "verified": dataset.verified,
            "source": dataset.source.title,
            "licence": dataset.source.licence,
        },
        missing={kind: missing[kind] for kind in RULES},
    )


def _cases(dataset: Dataset, missing: Counter[str]) -> Iterator[RankingCase]:
    scorers: dict[str, Scorer] = {}
    for query in dataset.queries:
        passages = dataset.pools[query.pool]
        gains = dataset.qrels[query.key]
        relevant = [row for row, turn in enumerate(passages) if gains.get(turn.id, 0) > 0]
        texts = {turn.indexed_text for row, turn in enumerate(passages) if row not in relevant[1:]}
        if not relevant or len(texts) < CANDIDATES:
            continue
        if query.pool not in scorers:
            scorers[query.pool] = bm25_scorer([turn.indexed_text for turn in passages])
        yield _case(query, passages, relevant, scorers[query.pool], missing)


def _case(
    query: EvaluationQuery,
    passages: Sequence[Passage],
    relevant: Sequence[int],
    score: Scorer,
    missing: Counter[str],
) -> RankingCase:
    answer = relevant[0]
    situation = Situation(passages, answer, np.nan_to_num(score(passages[answer].text)))
    free = [row for row in range(len(passages)) if row not in relevant]
    now = query.at or newest_moment(passages)
    distractors = [
        Distractor(kind, _candidate(passages[row], now))
        for kind, row in _chosen(situation, free, np.nan_to_num(score(query.text)), missing)
    ]
    return RankingCase(
        f"{query.pool}/{query.id}",
        query.text,
        _candidate(passages[answer], now),
        tuple(distractors),
    )


def _chosen(
    situation: Situation, free: Sequence[int], overlap: FloatArray, missing: Counter[str]
) -> Iterator[tuple[str, int]]:
    texts = [turn.indexed_text for turn in situation.passages]
    taken = {situation.evidence.indexed_text}
    alike = _best_first(free, situation.likeness)
    for kind, rule in RULES.items():
        fitting = (
            row
            for row in alike
            if texts[row] not in taken and rule(situation, situation.passages[row])
        )
        if (chosen := next(fitting, None)) is None:
            missing[kind] += 1
        else:
            taken.add(texts[chosen])
            yield kind, chosen
    for row in _best_first(free, overlap):
        if len(taken) < CANDIDATES and texts[row] not in taken:
            taken.add(texts[row])
            yield LEXICAL, row


def _best_first(rows: Sequence[int], scores: FloatArray) -> list[int]:
    # Of equal ones the earlier turn.
    return sorted(rows, key=lambda row: (-scores[row], row))


def _candidate(turn: Passage, now: datetime | None) -> Candidate:
    days = (now - turn.at) / _DAY if turn.at is not None and now is not None else None
    return Candidate(turn.indexed_text, days)


def _names(turn: Passage) -> set[str]:
    return set(_NAME.findall(turn.text)) - {turn.speaker}
