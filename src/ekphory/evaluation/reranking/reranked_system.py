"""A contender behind the evaluation's door: what it searches is the fixed candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ekphory.evaluation.datasets import EvaluationQuery, Passage
from ekphory.evaluation.reranking.scored_lists import Judge, ScoredList
from ekphory.evaluation.retriever import Retriever, Scored, Setting


@dataclass(slots=True)
class RerankedSystem:
    """A retriever factory that orders the candidates of each question anew.

    Attributes:
        judge: The contender and the candidates.
        first_stage_share: How much the first stage's order weighs beside the reranker.
        scored: What it has scored so far, by question.
    """

    judge: Judge
    first_stage_share: float = 0.0
    scored: dict[tuple[str, str], ScoredList] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The contender's name."""
        return self.judge.contender.name

    @property
    def configuration(self) -> Mapping[str, Setting]:
        """The reranker, and what the candidates were made from."""
        identity = self.judge.candidates.identity
        return {
            "reranker": self.judge.contender.name,
            "first_stage_share": self.first_stage_share,
            "candidates": identity.top,
            "embedder": identity.embedder,
            "first_stage": identity.first_stage,
        }

    def retriever(self, _pool: str, _passages: Sequence[Passage], /) -> Retriever:
        """Give the retriever of a pool; there is nothing to index."""
        by_key = {found.key: found for found in self.judge.candidates.own}

        def search(query: EvaluationQuery, k: int, /) -> list[Scored]:
            scored = self.scored[query.key] = self.judge.score(by_key[query.key])
            order = scored.order(first_stage_share=self.first_stage_share)[:k]
            ids = scored.found.ids
            return [(ids[place], float(scored.probabilities[place])) for place in order]

        return search
