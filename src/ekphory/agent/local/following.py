"""Follows one branch of a question to what is asked: the likeliest lead first, then others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ekphory.agent.local.confidence import ENOUGH, EVIDENCE_CURVE, LINK_CURVE, LinkFeatures
from ekphory.agent.local.leads import Lead, leads, states
from ekphory.agent.local.rating import Rated, aboutness, rated
from ekphory.agent.local.thread import Link, Thread
from ekphory.agent.question.reading import Branch
from ekphory.agent.question.relations import relation
from ekphory.agent.search_tool import QueryRefused, SearchTool
from ekphory.agent_trace.events import BRANCH
from ekphory.models.reranker import RerankingModel
from ekphory.retrieval.terms import passage_terms, query_terms
from ekphory.types import Hit

BEAM = 3
"""How many leads of a step are kept."""
_WEAKEST = 0.3
"""Share of the best lead's score below which a lead is not kept."""
_NAMED = 0.4
"""From here on a memory names the anchor."""
_ASKED_SHARE = 0.4
"""How much less a memory counts that holds nothing of what is asked."""
_ABOUT = 0.9
"""From here on a memory of the first lookup is about the anchor, and its own lookup is left out."""


@dataclass(slots=True)
class Follower:
    """Follows a branch.

    Attributes:
        branch: What to follow.
        tool: What searches.
        first: What the question's own lookup found.
        known: Words of the question, which name nothing new.
        most_calls: How many searches the branch may make.
        reranker: Weighs evidence given the chain; None for none.
        ended: The threads that were followed to their end.
        retries: How often another lead was tried.
    """

    branch: Branch
    tool: SearchTool
    first: Sequence[Hit]
    known: frozenset[str]
    most_calls: int
    reranker: RerankingModel | None = None
    ended: list[Thread] = field(default_factory=list)
    retries: int = 0
    _open: list[Thread] = field(default_factory=list)
    _calls: int = 0

    def follow(self) -> None:
        """Follow the threads, until one is sure enough or the calls are spent.

        Raises:
            SessionFault: No call or no time is left; what was found so far is in `best`.
        """
        self.branch = _expanded(self.branch, self.first)
        self._open = [Thread(self.branch.anchor)]
        while self._open:
            thread = self._open[0]
            if len(thread.links) < len(self.branch.steps):
                self._grow(thread)
                continue
            self.retries += bool(self.ended)
            self._finish(thread)
            if self.best is not None and self.best.confidence >= ENOUGH:
                return
            if self._calls >= self.most_calls:
                return

    @property
    def best(self) -> Thread | None:
        """The likeliest thread that was followed to its end, else the likeliest open one."""
        if self.ended:
            return max(self.ended, key=lambda thread: thread.confidence)
        begun = (thread for thread in self._open if thread.links)
        likeliest = next(begun, None)
        return None if likeliest is None else judged(likeliest)

    def _grow(self, thread: Thread) -> None:
        step = self.branch.steps[len(thread.links)]
        query = f"{step} of {_with_kind(thread, self.branch)}"
        evidence = self._evidence(thread, query)
        found = leads(evidence, entity=thread.entity, relation=relation(step), known=self.known)
        self._open.remove(thread)
        for place, lead in enumerate(found[:BEAM]):
            if lead.score >= _WEAKEST * found[0].score:
                self._open.append(thread.then(_link(query, lead, found[place + 1 :])))
        self._open.sort(key=lambda each: -each.priority)
        del self._open[BEAM:]

    def _evidence(self, thread: Thread, query: str) -> list[Rated]:
        hits = self.first
        nearest = max(
            (aboutness(hit.memory.indexed_text, thread.entity) for hit in hits), default=0
        )
        if thread.links or nearest < _ABOUT:
            hits = self._search(query) or hits
        return rated(hits, query, chain=thread.chain, reranker=self.reranker)

    def _finish(self, thread: Thread) -> None:
        query = self.branch.asked_of(thread.entity)
        taken = {link.hit.id for link in thread.links}
        hits = self._search(query)
        self._open.remove(thread)
        found = rated(hits, query, chain=thread.chain, reranker=self.reranker)
        evidence = sorted(
            (
                (_evidence_fit(each, thread.entity, self.branch), each.hit)
                for each in found
                if each.hit.id not in taken
            ),
            key=lambda pair: -pair[0],
        )
        if not evidence:
            self.ended.append(judged(thread))
            return
        (fit, hit), *others = evidence
        margin = fit / max(others[0][0], 1e-6) if others else 1.0
        last = Link(query, "", hit, fit, margin, support=hit.score)
        self.ended.append(judged(thread.then(last)))

    def _search(self, query: str) -> Sequence[Hit]:
        self._calls += 1
        try:
            return self.tool(query, actor=BRANCH)
        except QueryRefused:
            return ()


def _evidence_fit(found: Rated, entity: str, branch: Branch) -> float:
    """How far a memory is about the entity, and holds what is asked of it."""
    text = found.hit.memory.indexed_text
    asked = set(query_terms(branch.asked_of("")).tolist())
    held = len(asked.intersection(passage_terms(text).tolist())) / len(asked) if asked else 0.0
    if branch.sought is not None and states(text, relation(branch.sought)):
        held = 1.0
    return aboutness(text, entity) * found.weight * (1 - _ASKED_SHARE + _ASKED_SHARE * held)


def _expanded(branch: Branch, first: Sequence[Hit]) -> Branch:
    """Let a relation that no memory states, as that of an aunt, go through others."""
    sought = relation(branch.sought) if branch.sought else None
    if sought is None or not sought.through:
        return branch
    word = sought.word.split()[-1]
    for hit in first[:BEAM]:
        text = hit.memory.indexed_text
        if word in text.lower() and aboutness(text, branch.anchor) >= _NAMED:
            return branch
    last = sought.through[-1]
    steps = (*branch.steps, *sought.through[:-1])
    return replace(branch, steps=steps, opening=f"{last} of ", sought=last)


def _with_kind(thread: Thread, branch: Branch) -> str:
    kind = "" if thread.links else branch.kind
    return f"{kind} {thread.entity}".strip()


def _link(query: str, lead: Lead, others: Sequence[Lead]) -> Link:
    rival = others[0].score if others else 0.0
    margin = lead.score / max(rival, 1e-6)
    return Link(query, lead.name, lead.hit, lead.score, margin)


def judged(thread: Thread) -> Thread:
    """Give every link its probability, which what was found after it decides with."""
    links: list[Link] = []
    for place, link in enumerate(thread.links):
        if link.answer:
            after = thread.links[place + 1].score if place + 1 < len(thread.links) else 0.0
            link = replace(link, support=min(after, 1.0))
        curve = LINK_CURVE if link.answer else EVIDENCE_CURVE
        features = LinkFeatures(link.score, link.margin, link.support)
        links.append(replace(link, confidence=curve.rating(features)))
    return Thread(thread.entity, tuple(links))
