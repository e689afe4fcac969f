"""The provider without a language model: follows a question where one lookup is not enough.

What the rules of `question.py` read as a path of relations is followed name by name; where the gate
says that several memories are needed, the evidence itself is followed, as `evidence.py` says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ekphory.agent import evidence
from ekphory.agent.evidence import LOOK_AGAIN, HopWeights, Trail
from ekphory.agent.local_chain import Follower, Link, Thread, strip_brackets
from ekphory.agent.provider import SearchTool, SessionOutcome, tell_thread
from ekphory.agent.question import QuestionReading, meaning_words, read_question
from ekphory.agent_trace import BRANCH, BranchStarted, EventLog, HopResolved, Route, RouteChosen
from ekphory.models.reranker import TINY_RERANKER, RerankingModel, bundled_name, bundled_reranker
from ekphory.retrieval.lexical import passage_terms, query_terms
from ekphory.retrieval.query import is_question
from ekphory.types import Hit

_REASONS = {
    "single": "one lookup answers it",
    "answered": "one memory holds all that is asked for",
    "parallel": "several things are looked up beside each other",
    "chain": "something is described through something else",
    "several": "several memories are needed, one after the other or together",
}
_SURE = 0.5
_READ = 3
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n")


@dataclass(frozen=True, slots=True)
class LocalProvider:
    """Decides by rules over the question and by what was fitted on written questions.

    Attributes:
        reranker: Weighs evidence of a path, given the chain; None for none.
        weights: What was fitted; None for what comes with ekphory.
    """

    name = "local"

    reranker: RerankingModel | None = None
    weights: HopWeights | None = None

    def run(self, question: str, tool: SearchTool, log: EventLog) -> SessionOutcome:
        """Look the question up, and follow it where that is not enough.

        Raises:
            SessionFault: No call or no time is left, or a search failed.
        """
        reading = read_question(question)
        first = tool(question)
        if reading.kind != "single" and first:
            return self._follow_path(question, reading, first, tool, log)
        weights = self.weights or evidence.read_weights()
        # The gate was learned from questions; a statement is looked up and no more.
        may_follow = len(first) > 1 and is_question(question)
        likely = evidence.needs_several(question, first, weights) if may_follow else 0.0
        if likely < min(LOOK_AGAIN, weights.follow):
            return _end_after_one_lookup(first, log, "single")
        # The weights were fitted with the smallest reranker, which stands for any bundled one.
        is_read = self.reranker is not None and bundled_name(self.reranker) is not None
        reader = bundled_reranker(TINY_RERANKER) if is_read else None
        more = first if reader is None else tool.read_more(question, first)
        if more is not first:
            likely = evidence.needs_several(question, more, weights)
        # What was found may have been forgotten since.
        if likely < weights.follow or not more:
            return _end_after_one_lookup(more, log, "single")
        return _follow_evidence(Trail(question, tool, more, reader), weights, log)

    def _follow_path(
        self,
        question: str,
        reading: QuestionReading,
        first: Sequence[Hit],
        tool: SearchTool,
        log: EventLog,
    ) -> SessionOutcome:
        if reading.kind == "chain" and _is_answered(question, first):
            return _end_after_one_lookup(first, log, "answered")
        why, count = reading.kind, len(reading.branches)
        log.add(_choose_route("coq", why, branches=count))
        known = meaning_words(strip_brackets(question))
        threads = []
        for place, branch in enumerate(reading.branches):
            most_calls = max(1, tool.budget.calls_left // (count - place))
            follower = Follower(branch, tool, first, known, most_calls, self.reranker)
            threads.append(_follow_and_tell(place + 1, follower, log))
        confidence = min(thread.confidence if thread else 0.0 for thread in threads)
        answers = ", ".join(thread.entity for thread in threads if thread and thread.entity)
        told = f"Followed to {answers}." if answers else "Nothing to follow was found."
        return SessionOutcome(told, confidence >= _SURE, confidence)


def _choose_route(route: Route, why: str, *, branches: int = 1) -> RouteChosen:
    return RouteChosen(route=route, reason_code=why, reason_note=_REASONS[why], branches=branches)


def _is_answered(question: str, first: Sequence[Hit]) -> bool:
    """Whether one sentence has every word that is searched for: nothing is left to look up."""
    asked = set(query_terms(question).tolist())
    for memory in (hit.memory for hit in first[:_READ]):
        # Each sentence counts with who says it; a turn of a dialogue is one.
        parts = [memory.text] if memory.producer else _SENTENCE_END.split(memory.text)
        if any(asked <= set(passage_terms(memory.index_prefix + part).tolist()) for part in parts):
            return True
    return False


def _end_after_one_lookup(first: Sequence[Hit], log: EventLog, why: str) -> SessionOutcome:
    log.add(_choose_route("memmachine_search", why))
    confidence = first[0].score if first else 0.0
    return SessionOutcome("One lookup.", confidence >= _SURE, confidence)


def _follow_and_tell(number: int, follower: Follower, log: EventLog) -> Thread | None:
    """Follow one thread and tell its hops, also where it cannot be followed to its end."""
    query = follower.branch.asked_of(follower.branch.anchor)
    log.add(BranchStarted(branch=number, query=query), actor=BRANCH)
    try:
        follower.follow()
    finally:
        thread = follower.best
        links = thread.links if thread is not None else ()
        hops = [_make_hop(number, place, link) for place, link in enumerate(links, start=1)]
        is_resolved = bool(follower.ended and links)
        tell_thread(
            log, query, hops, branch=number, is_resolved=is_resolved, retries=follower.retries
        )
    return thread


def _make_hop(branch: int, place: int, link: Link) -> HopResolved:
    return HopResolved(
        branch=branch,
        hop=place,
        query=link.query,
        answer=link.answer,
        confidence=round(link.confidence, 4),
        reason="named beside the relation" if link.answer else "about what was found",
        memory_ids=(link.hit.id,),
    )


def _follow_evidence(trail: Trail, weights: HopWeights, log: EventLog) -> SessionOutcome:
    log.add(_choose_route("coq", "several"))
    log.add(BranchStarted(branch=1, query=trail.question), actor=BRANCH)
    sure = [trail.plain[0].score]
    try:
        ranking = evidence.follow(trail, weights, sure)
    finally:
        _tell(trail, sure, log)
    confidence = round(evidence.chain_probability(sure, evidence.chain_weights(trail, weights)), 4)
    told = f"Followed over {len(sure)} {'memory' if len(sure) == 1 else 'memories'}."
    return SessionOutcome(told, confidence >= _SURE, confidence, ranking)


def _tell(trail: Trail, sure: Sequence[float], log: EventLog) -> None:
    """Tell the hops, also where the session could not go on."""
    query, chain, hops = trail.question, trail.chain[: len(sure)], []
    for place, (memory_id, likely) in enumerate(zip(chain, sure, strict=True)):
        following = chain[place + 1 : place + 2]
        answer = trail.link_between(memory_id, following[0]) if following else ""
        hops.append(
            HopResolved(
                branch=1,
                hop=place + 1,
                query=query,
                answer=answer,
                confidence=round(likely, 4),
                reason="leads on" if answer else "belongs to what is asked",
                memory_ids=(memory_id,),
            )
        )
        query = answer or trail.question
    tell_thread(log, trail.question, hops, is_resolved=len(chain) > 1)
