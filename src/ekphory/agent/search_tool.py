"""`memmachine_search`: the one tool of a session."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ekphory.agent.budget import Budget
from ekphory.agent.faults import SessionFault
from ekphory.agent.question.words import words_in
from ekphory.agent_trace.event_log import EventLog
from ekphory.agent_trace.events import TOP_LEVEL, ToolReturned
from ekphory.errors import EkphoryError
from ekphory.types import Hit

NAME = "memmachine_search"
LONGEST_QUERY = 2000

PlainSearch = Callable[[str], Sequence[Hit]]
"""Searches the session's scope as the caller asked it to be searched, with another query."""


class QueryRefused(EkphoryError):
    """A query is not searched; the text says why."""


@dataclass(frozen=True, slots=True)
class Found:
    """What one query found.

    Attributes:
        query: The query.
        hits: Best first.
    """

    query: str
    hits: tuple[Hit, ...]


@dataclass(slots=True)
class SearchTool:
    """Searches within a budget, refuses what was searched already, and keeps all that it found.

    Attributes:
        search: What searches.
        budget: What may be spent.
        log: Where every call is told.
        found: What the calls found, in their order.
    """

    search: PlainSearch
    budget: Budget
    log: EventLog
    found: list[Found] = field(default_factory=list)
    _asked: set[str] = field(default_factory=set)

    def __call__(self, query: str, *, actor: str = TOP_LEVEL) -> tuple[Hit, ...]:
        """Search.

        Args:
            query: What to look for.
            actor: Who asks.

        Returns:
            The hits, best first.

        Raises:
            QueryRefused: It is empty, too long, or was searched already.
            SessionFault: No call or no time is left, or the search failed.
        """
        call = self.budget.spend_call()
        self.log.step = call
        refusal = self._refusal(query)
        if refusal is not None:
            self.log.add(
                ToolReturned(call=call, query=query[:200], status="refused", summary=refusal),
                actor=actor,
            )
            raise QueryRefused(refusal)
        self._asked.add(normalised(query))
        started = time.perf_counter()
        hits = self._searched(call, query, actor)
        self.found.append(Found(query, hits))
        self.log.add(
            ToolReturned(
                call=call,
                query=query,
                status="success",
                summary=f"episodes={len(hits)}",
                memory_ids=tuple(hit.id for hit in hits),
                milliseconds=(time.perf_counter() - started) * 1000,
            ),
            actor=actor,
        )
        return hits

    def was_asked(self, query: str) -> bool:
        """Whether this query, or one that differs in nothing but its writing, was searched."""
        return normalised(query) in self._asked

    def _searched(self, call: int, query: str, actor: str) -> tuple[Hit, ...]:
        try:
            return tuple(self.search(query))
        except EkphoryError as error:
            self.log.add(
                ToolReturned(call=call, query=query, status="failed", summary=str(error)),
                actor=actor,
            )
            raise SessionFault("downstream_tool_failure", str(error)) from error

    def _refusal(self, query: str) -> str | None:
        if not query.strip():
            return "the query is empty"
        if len(query) > LONGEST_QUERY:
            return f"the query is longer than {LONGEST_QUERY:,} characters"
        if self.was_asked(query):
            return "this query was searched already; ask for something else, or finish"
        return None


def normalised(query: str) -> str:
    """Give a query's words in lower case, without accents and marks."""
    return " ".join(words_in(query)) or query.strip()
