"""What a reranker is trained on: a question with the passages that compete for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from ekphory.models.rerank_input import RerankPassage, RerankQuery

HardCase = Literal[
    "lexical_overlap",
    "inverse",
    "temporal_interference",
    "coreference",
    "causal_reversal",
    "entity_confusion",
    "numerical",
    "granularity",
    "multi_hop",
]
"""What makes a wrong passage hard to tell from a right one; MemReranker names these nine."""
HARD_CASES: tuple[HardCase, ...] = get_args(HardCase)

CandidateKind: TypeAlias = HardCase | Literal["answer", "retrieved", "neighbour", "random"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage that competes.

    Attributes:
        passage: What the reranker reads.
        relevant: Whether it answers the question.
        kind: Why it is here: `answer`; a hard case; `retrieved` by the first stage; `neighbour`,
            the turn beside an answer; `random`.
        lexical: Its BM25 score among the passages that it was found in; 0 without a shared word.
        dense: Its cosine with the question.
        judged: False where nobody has looked: what a first stage finds may answer all the same.
    """

    passage: RerankPassage
    relevant: bool
    kind: CandidateKind
    lexical: float
    dense: float
    judged: bool


@dataclass(frozen=True, slots=True)
class RerankExample:
    """A question with its candidates.

    Attributes:
        source: Name of the data that it was made from.
        query: What is asked.
        candidates: At least one relevant and one irrelevant.
        labels: A soft label in [0, 1] for each candidate; empty as long as no teacher has spoken.
    """

    source: str
    query: RerankQuery
    candidates: tuple[Candidate, ...]
    labels: tuple[float, ...] = ()
