"""The provider without a language model: reads the question, and follows it hop by hop."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ekphory.agent.local_chain import Follower, OpenFollower, Thread, strip_brackets
from ekphory.agent.provider import SearchTool, SessionOutcome
from ekphory.agent.question import QuestionReading, read_question
from ekphory.agent.relations import meaning_words
from ekphory.agent_trace import (
    BRANCH,
    BranchEnded,
    BranchStarted,
    EventLog,
    HopResolved,
    RouteChosen,
)
from ekphory.models.reranker import RerankingModel
from ekphory.retrieval.lexical import passage_terms, query_terms
from ekphory.types import Hit

_REASONS = {
    "single": "one lookup answers it",
    "answered": "one memory holds all that is asked for",
    "parallel": "several things are looked up beside each other",
    "chain": "something is described through something else",
    "open chain": "something is described through something else, in a way without a known path",
}
_SURE = 0.5
_READ = 3
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n")


@dataclass(frozen=True, slots=True)
class LocalProvider:
    """Decides by rules over the question and the memories found.

    Attributes:
        reranker: Weighs evidence given the chain; None for none.
    """

    name = "local"

    reranker: RerankingModel | None = None

    def run(self, question: str, tool: SearchTool, log: EventLog) -> SessionOutcome:
        """Look the question up, and follow it where that is not enough.

        Raises:
            SessionFault: No call or no time is left.
        """
        reading = read_question(question)
        first = tool(question)
        why = _find_reason_to_stop(reading, question, first)
        if why is not None:
            return _end_after_one_lookup(first, log, why)
        chosen = RouteChosen(
            route="coq",
            reason_code=reading.kind,
            reason_note=_REASONS[reading.kind],
            branches=max(1, len(reading.branches)),
        )
        log.add(chosen)
        followers = enumerate(self._list_followers(question, reading, first, tool), start=1)
        return _sum_up([_follow_and_tell(number, *one, log) for number, one in followers])

    def _list_followers(
        self, question: str, reading: QuestionReading, first: Sequence[Hit], tool: SearchTool
    ) -> Iterator[tuple[str, Follower | OpenFollower]]:
        """Return what is asked by each thread and what follows it, made when its turn comes."""
        known = meaning_words(strip_brackets(question))
        if reading.kind == "open chain":
            yield question, OpenFollower(question, tool, first, known, self.reranker)
            return
        for place, branch in enumerate(reading.branches):
            most_calls = max(1, tool.budget.calls_left // (len(reading.branches) - place))
            follower = Follower(branch, tool, first, known, most_calls, self.reranker)
            yield branch.asked_of(branch.anchor), follower


def _find_reason_to_stop(
    reading: QuestionReading, question: str, first: Sequence[Hit]
) -> str | None:
    """Say why the first lookup is enough; None where it is not."""
    if reading.kind == "single" or not first:
        return "single"
    if reading.kind == "parallel":
        return None
    asked = set(query_terms(question).tolist())
    said = (text for hit in first[:_READ] for text in _list_sentences(hit))
    # Every word that is searched for in one sentence: nothing is left to be looked up.
    return "answered" if any(asked <= set(passage_terms(text).tolist()) for text in said) else None


def _list_sentences(hit: Hit) -> list[str]:
    """Return a memory's sentences, each with who says it; a turn of a dialogue is one."""
    memory = hit.memory
    if memory.producer:
        return [memory.indexed_text]
    return [memory.index_prefix + part for part in _SENTENCE_END.split(memory.text)]


def _end_after_one_lookup(first: Sequence[Hit], log: EventLog, why: str) -> SessionOutcome:
    log.add(RouteChosen(route="memmachine_search", reason_code=why, reason_note=_REASONS[why]))
    confidence = first[0].score if first else 0.0
    return SessionOutcome("One lookup.", confidence >= _SURE, confidence)


def _follow_and_tell(
    number: int, query: str, follower: Follower | OpenFollower, log: EventLog
) -> Thread | None:
    """Follow one thread and tell its hops, also where it cannot be followed to its end."""
    log.add(BranchStarted(branch=number, query=query), actor=BRANCH)
    try:
        follower.follow()
    finally:
        thread = follower.best
        links = thread.links if thread is not None else ()
        for hop, link in enumerate(links, start=1):
            resolved = HopResolved(
                branch=number,
                hop=hop,
                query=link.query,
                answer=link.answer,
                confidence=round(link.confidence, 4),
                reason="named beside the relation" if link.answer else "about what was found",
                memory_ids=(link.hit.id,),
            )
            log.add(resolved, actor=BRANCH)
        ended = BranchEnded(
            branch=number,
            query=query,
            status="success" if follower.ended and links else "failed",
            memories=len({link.hit.id for link in links}),
            retries=follower.retries,
        )
        log.add(ended, actor=BRANCH)
    return thread


def _sum_up(threads: Sequence[Thread | None]) -> SessionOutcome:
    confidence = min((thread.confidence if thread else 0.0) for thread in threads)
    answers = ", ".join(thread.entity for thread in threads if thread and thread.entity)
    told = f"Followed to {answers}." if answers else "Nothing to follow was found."
    return SessionOutcome(told, confidence >= _SURE, confidence)
