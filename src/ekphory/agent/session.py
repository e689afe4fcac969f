"""Searching with the agent: one session, then the hits of all its searches as one result."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ekphory.agent.budget import Budget
from ekphory.agent.choosing import provider_for
from ekphory.agent.evidence_reranking import reranked
from ekphory.agent.faults import SessionFault
from ekphory.agent.merging import merged
from ekphory.agent.provider import Outcome, SessionProvider
from ekphory.agent.search_tool import LONGEST_QUERY, QueryRefused, SearchTool
from ekphory.agent.settings import AgentOptions, AgentSettings
from ekphory.agent_trace.event_log import EventLog
from ekphory.agent_trace.events import FellBack, HopResolved, SessionEnded, SessionStarted
from ekphory.agent_trace.retrieval_trace import RetrievalTrace
from ekphory.engine import Engine
from ekphory.models.rerank_input import RerankQuery
from ekphory.models.reranker import RerankingModel
from ekphory.results import SearchResult
from ekphory.retrieval.resources import NO_OPTIONAL_MODELS, OptionalModels
from ekphory.scope import Scope
from ekphory.searching import Question, search
from ekphory.types import Hit

_log = logging.getLogger("ekphory.agent")
HOP_HITS = 20
"""How many hits a hop looks at."""


@dataclass(slots=True)
class Searches:
    """Searches of one session: the question as it was put, and other queries in its place.

    Attributes:
        engine, scope, question, models: As `searching.search` takes them.
        hop_models: Models of the other queries.
    """

    engine: Engine
    scope: Scope
    question: Question
    models: OptionalModels
    hop_models: OptionalModels = NO_OPTIONAL_MODELS
    _plain: SearchResult | None = None

    def plain(self) -> SearchResult:
        """Give what plain search gives; it is searched once."""
        if self._plain is None:
            self._plain = search(self.engine, self.scope, self.question, models=self.models)
        return self._plain

    def hop(self, query: str) -> Sequence[Hit]:
        """Search another query in the question's place, without a least probability."""
        if query == self.question.query and self.question.min_score is None:
            return self.plain().hits
        asked = replace(self.question, query=query, k=HOP_HITS, min_score=None, context=())
        return search(self.engine, self.scope, asked, models=self.hop_models).hits


def agent_search(searches: Searches, options: AgentOptions) -> SearchResult:
    """Hold a session and give its result; whatever happens, at least what plain search gives.

    Raises:
        InvalidInput: The configuration cannot be used.
        MissingExtra: The provider's SDK is not installed.
        EkphoryError: Plain search itself failed.
        SessionCancelled: Nobody waits for the result any more.
    """
    settings = options.settings or _configured()
    provider = provider_for(settings, reranker=searches.models.reranker)
    if settings.provider != "local":
        # The local provider reranks evidence itself, given the chain; a model gets the best search.
        searches.hop_models = searches.models
    question = searches.question
    log = EventLog(options.on_event)
    budget = Budget(
        most_calls=settings.agent_session_max_combined_calls,
        seconds=settings.agent_session_timeout_seconds,
    )
    log.add(
        SessionStarted(
            session_id=secrets.token_hex(8),
            provider=provider.name,
            query=question.query,
            most_calls=budget.most_calls,
            timeout_seconds=budget.seconds,
        )
    )
    tool = SearchTool(searches.hop, budget, log)
    completed, outcome = _held(provider, question.query, tool, log)
    plain = searches.plain()
    reranker = settings.reranker or searches.models.reranker
    hits, rerank_applied = _ordered(searches, tool, log, reranker)
    log.add(
        SessionEnded(
            completed=completed,
            response=outcome.response,
            sufficient=outcome.sufficient,
            confidence=outcome.confidence,
            memories=len(hits),
            rerank_applied=rerank_applied,
        )
    )
    trace = RetrievalTrace(tuple(log.events), options.stage_results)
    abstained = plain.abstained and not hits
    same = [hit.id for hit in hits] == [hit.id for hit in plain.hits]
    order = plain.order if same else "chain"
    return SearchResult(hits, plain.trace, abstained, retrieval_trace=trace, order=order)


def _configured() -> AgentSettings:
    # Slow to load, as it knows every kind of model.
    from ekphory.agent.configuration.reading import read_agent_settings

    return read_agent_settings()


def _held(
    provider: SessionProvider, query: str, tool: SearchTool, log: EventLog
) -> tuple[bool, Outcome]:
    """Hold the session; says whether it ended as it should, and how."""
    if not query.strip():
        return True, Outcome("Nothing was asked; these are the newest memories.", True, None)
    if len(query) > LONGEST_QUERY:
        problem = f"the query is longer than {LONGEST_QUERY:,} characters"
        return _fallen_back(provider, SessionFault("invalid_tool_call", problem), log)
    try:
        return True, provider.run(query, tool, log)
    except QueryRefused as refusal:
        return _fallen_back(provider, SessionFault("invalid_tool_call", str(refusal)), log)
    except SessionFault as fault:
        return _fallen_back(provider, fault, log)


def _fallen_back(
    provider: SessionProvider, fault: SessionFault, log: EventLog
) -> tuple[bool, Outcome]:
    """Tell why plain search answers."""
    log.add(FellBack(reason=fault.reason, problem=fault.problem))
    _log.warning(
        "agent session (%s) fell back to plain search: %s: %s",
        provider.name,
        fault.reason,
        fault.problem,
    )
    return False, Outcome(f"Fell back to plain search: {fault.reason}.", False, None)


def _ordered(
    searches: Searches, tool: SearchTool, log: EventLog, reranker: RerankingModel | None
) -> tuple[tuple[Hit, ...], bool]:
    """Give the final hits, and whether a reranker ordered them."""
    plain, question = searches.plain(), searches.question
    if all(found.query == question.query for found in tool.found):
        return plain.hits, False
    merged_hits = merged(plain.hits, tool.found, log.events)
    query = RerankQuery(question.query, context=_chain(log), now=question.now)
    hits, rerank_applied = reranked(merged_hits, query, reranker)
    if question.min_score is not None:
        hits = [hit for hit in hits if hit.score >= question.min_score]
    return tuple(hits[: question.k]), rerank_applied


def _chain(log: EventLog) -> tuple[str, ...]:
    hops = (event.body for event in log.events if isinstance(event.body, HopResolved))
    return tuple(f"{hop.query}: {hop.answer}" for hop in hops if hop.answer)
