"""Follows a question without a known path: from a memory that holds some of its words to the rest.

"What breed is the dog of the woman who cuts my hair?" leads to whoever a memory names beside the
hair, and on with the words that this memory leaves open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ekphory.agent.local.confidence import ENOUGH
from ekphory.agent.local.following import BEAM, judged
from ekphory.agent.local.leads import Lead, leads
from ekphory.agent.local.rating import aboutness, rated
from ekphory.agent.local.thread import Link, Thread
from ekphory.agent.question.relations import Relation
from ekphory.agent.question.words import words_in
from ekphory.agent.search_tool import QueryRefused, SearchTool
from ekphory.agent_trace.events import BRANCH
from ekphory.models.reranker import RerankingModel
from ekphory.retrieval.terms import passage_terms, query_terms
from ekphory.types import Hit

_READ = 5
"""How many memories of the first lookup may begin a chain."""


@dataclass(slots=True)
class OpenFollower:
    """Follows an open chain, one name far.

    Attributes:
        question: What is asked.
        tool: What searches.
        first: What the question's own lookup found.
        known: Words of the question, which name nothing new.
        reranker: Weighs evidence given the chain; None for none.
        ended: The threads that were followed to their end.
        retries: How often another lead was tried.
    """

    question: str
    tool: SearchTool
    first: Sequence[Hit]
    known: frozenset[str]
    reranker: RerankingModel | None = None
    ended: list[Thread] = field(default_factory=list)
    retries: int = 0

    @property
    def best(self) -> Thread | None:
        """The likeliest thread; None where there is none."""
        return max(self.ended, key=lambda thread: thread.confidence, default=None)

    def follow(self) -> None:
        """Follow the leads of the first lookup, until one is sure enough.

        Raises:
            SessionFault: No call or no time is left; what was found so far is in `best`.
        """
        words = [word for word in dict.fromkeys(words_in(self.question)) if _terms(word)]
        if not words:
            return
        found = leads(
            rated(self.first[:_READ], self.question, chain=(), reranker=self.reranker),
            entity=" ".join(words),
            relation=Relation("", tuple(words)),
            known=self.known,
        )
        for place, lead in enumerate(found[:BEAM]):
            left = _left(words, lead.hit)
            if not left:
                return
            self.retries += bool(self.ended)
            self._finish(lead, found[place + 1 :], left)
            if self.best is not None and self.best.confidence >= ENOUGH:
                return

    def _finish(self, lead: Lead, others: Sequence[Lead], left: Sequence[str]) -> None:
        margin = lead.score / max(others[0].score, 1e-6) if others else 1.0
        thread = Thread("").then(Link(self.question, lead.name, lead.hit, lead.score, margin))
        query = f"{lead.name} {' '.join(left)}"
        try:
            hits = self.tool(query, actor=BRANCH)
        except QueryRefused:
            hits = ()
        evidence = [
            (self._fit(each.hit, lead.name, left) * each.weight, each.hit)
            for each in rated(hits, query, chain=thread.chain, reranker=self.reranker)
            if each.hit.id != lead.hit.id
        ]
        if evidence:
            fit, hit = max(evidence, key=lambda pair: pair[0])
            thread = thread.then(Link(query, "", hit, fit, support=hit.score))
        self.ended.append(judged(thread))

    @staticmethod
    def _fit(hit: Hit, name: str, left: Sequence[str]) -> float:
        """How far a memory is about the name, and holds what is left to be found."""
        held = 1 - len(_left(left, hit)) / len(left)
        return aboutness(hit.memory.indexed_text, name) * (0.5 + 0.5 * held)


def _left(words: Sequence[str], hit: Hit) -> list[str]:
    """Give the words that a memory does not hold, also not in another form."""
    held = set(passage_terms(hit.memory.indexed_text).tolist())
    return [word for word in words if not _terms(word) <= held]


def _terms(word: str) -> set[int]:
    return set(query_terms(word).tolist())
