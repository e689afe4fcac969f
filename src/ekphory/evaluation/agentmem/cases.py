"""What is ranked: one query, the memory that answers it, and memories that do not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ekphory.types import MemoryType, Scalar

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
