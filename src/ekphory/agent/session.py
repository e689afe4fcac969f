"""Searching with the agent: one session, then the hits of all its searches as one list."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, islice, takewhile

import numpy as np

from ekphory import agent_trace
from ekphory.agent.configuration import current_agent_settings
from ekphory.agent.evidence import MOST_READ_FIRST
from ekphory.agent.llm_session import ModelProvider
from ekphory.agent.local_chain import score_hits
from ekphory.agent.local_provider import LocalProvider
from ekphory.agent.provider import (
    LONGEST_QUERY,
    AgentOptions,
    Budget,
    PlainSearch,
    QueryHits,
    QueryRefused,
    SearchTool,
    SessionFault,
    SessionOutcome,
    check_options,
)
from ekphory.engine import Engine
from ekphory.filters.tree import And
from ekphory.models.reranker import RerankingModel, RerankQuery
from ekphory.prompting.block import already_said
from ekphory.retrieval.fusion import blended_ranks
from ekphory.retrieval.pipeline import NO_OPTIONAL_MODELS, OptionalModels, Pipeline
from ekphory.retrieval.presets import preset
from ekphory.retrieval.stages.rerank import read_at_least
from ekphory.retrieval.stages.shape import DropKnown, PinRules
from ekphory.retrieval.stages.weigh import ListTime
from ekphory.scope import Scope
from ekphory.search import Question, SearchResult, search
from ekphory.store.protocol import CURRENT
from ekphory.types import Hit, is_pinned

# Which provider holds the sessions.

SessionProvider = LocalProvider | ModelProvider
"""Holds one session: asks the search tool, at least once, until it has enough.

What it finds out it tells the log, hop by hop, so that a session that cannot go on has kept it.
"""


# Merging.

FIRST = 0.5
"""Rating from which the evidence of a hop stands before what plain search found."""
_UNTOLD = 0.3
"""Trust in a query of which no hop came, such as that of a lead which was given up."""


def merge_hits(
    plain: Sequence[Hit],
    found: Sequence[QueryHits],
    events: Iterable[agent_trace.AgentEvent],
    *,
    least: float = 1.0,
) -> list[Hit]:
    """Put the hits of plain search and of all calls into one list, each memory once.

    The evidence of the chain comes first, hop by hop, where the hop is rated at least `FIRST`.
    The others follow by the probability that search gave them, of a hop's query times the ratings
    of its chain; those of plain search keep their order. A hit's score is the probability that
    plain search gave it; one that only a hop found has at most the lowest of those, and `least`.
    How sure its hop is stands in `scores["hop"]`: it is a rating, not a probability.
    """
    # The first hops of all threads come before the second.
    hops = [each.body for each in events if isinstance(each.body, agent_trace.HopResolved)]
    hops.sort(key=lambda hop: (hop.hop, hop.branch))
    best = {hit.id: hit for hit in plain}
    least = min((least, *(hit.score for hit in plain)))
    for hit in chain.from_iterable(each.hits for each in found):
        best.setdefault(hit.id, replace(hit, score=min(hit.score, least)))
    confidence: dict[str, float] = {}
    stated = ((memory_id, hop.confidence) for hop in hops for memory_id in hop.memory_ids)
    for memory_id, likely in stated:
        if memory_id in best:
            confidence[memory_id] = max(confidence.get(memory_id, 0.0), likely)
    first = [memory_id for memory_id, likely in confidence.items() if likely >= FIRST]
    order = dict.fromkeys((*first, *_order_by_worth(plain, found, hops)))
    for memory_id, likely in confidence.items():
        best[memory_id] = replace(best[memory_id], scores={**best[memory_id].scores, "hop": likely})
    return [best[memory_id] for memory_id in order]


def keep_first(
    plain: Sequence[Hit], merged: Sequence[Hit], events: Iterable[agent_trace.AgentEvent]
) -> list[Hit]:
    """Let the first hit of plain search stay the first, unless a single chain leads over it.

    Where several things are looked up beside each other, what it says may be of all of them.
    """
    routes = (each.body for each in events if isinstance(each.body, agent_trace.RouteChosen))
    is_parallel = any(route.branches > 1 for route in routes)
    first = [hit for hit in merged if hit.id in {each.id for each in plain[:1]}]
    if not is_parallel:
        first = [hit for hit in first if hit.scores.get("hop", 0.0) < FIRST]
    return [*first, *(hit for hit in merged if hit not in first)]


def _order_by_worth(
    plain: Sequence[Hit], found: Sequence[QueryHits], hops: Sequence[agent_trace.HopResolved]
) -> list[str]:
    """Return all ids, the likeliest first."""
    # Plain search orders by more than the score: nobody may overtake within its list.
    scores = accumulate((hit.score for hit in plain), min, initial=1.0)
    worth = {hit.id: least for hit, least in zip(plain, islice(scores, 1, None), strict=True)}
    sure = {hop.branch: 1.0 for hop in hops}
    for hop in hops:
        sure[hop.branch] *= hop.confidence
    trust = {hop.query: sure[hop.branch] for hop in hops}
    for each in found:
        for hit in each.hits:
            worth[hit.id] = max(worth.get(hit.id, 0.0), hit.score * trust.get(each.query, _UNTOLD))
    return sorted(worth, key=lambda memory_id: -worth[memory_id])


# The final order: what follows the chain is reranked for the question, given the chain.

_log = logging.getLogger("ekphory.agent")
MOST_REREAD = 10


def rerank_after_chain(
    hits: Sequence[Hit], query: RerankQuery, reranker: RerankingModel | None
) -> tuple[list[Hit], bool]:
    """Order what stands after the chain anew; the chain keeps its place and its order.

    Args:
        hits: As `merge_hits` gives them.
        query: The question, with the chain as its context.
        reranker: None leaves the order.

    Returns:
        The hits, and whether the reranker ordered them.
    """
    chosen = [place for place, hit in enumerate(hits) if hit.scores.get("hop", 0.0) >= FIRST]
    start = chosen[-1] + 1 if chosen else 0
    rest = hits[start : start + MOST_REREAD]
    if reranker is None or len(rest) < 2:
        return list(hits), False
    scores = score_hits(rest, query, reranker, otherwise="the agent's evidence keeps its order")
    if scores is None:
        return list(hits), False
    order = np.argsort(-blended_ranks(scores.astype(np.float64)), kind="stable")
    return [*hits[:start], *(rest[place] for place in order), *hits[start + MOST_REREAD :]], True


# Searching with the agent.

HOP_HITS = 50
"""How many hits a lookup of the local provider gives."""
SHOWN_HITS = 20
"""How many a language model is shown."""


@dataclass(slots=True)
class Searches:
    """Searches of one session: the question as it was put, and other queries in its place.

    Attributes:
        engine, scope, question, models: As `searching.search` takes them.
        hop_models: Models of the other queries.
        depth: How many hits those give.
    """

    engine: Engine
    scope: Scope
    question: Question
    models: OptionalModels
    hop_models: OptionalModels = NO_OPTIONAL_MODELS
    depth: int = HOP_HITS
    _plain: SearchResult | None = None
    _version: int = field(init=False)

    def __post_init__(self) -> None:
        self._version = self.engine.store.version()

    def plain(self) -> SearchResult:
        """Return what plain search gives; it is searched once."""
        if self._plain is None:
            self._plain = search(self.engine, self.scope, self.question, models=self.models)
        return self._plain

    def hop(self, query: str) -> Sequence[Hit]:
        """Search another query in the question's place, without a least probability.

        The question's own lookup is that of plain search, as deep as the others. Where its time
        filters, it filters what the others find too. A pinned rule has no better place than others.
        """
        own = query == self.question.query
        is_deep = self.question.min_score is None and self.question.k >= self.depth
        if own and is_deep and not self.pins():
            return self.plain().hits
        k = max(self.depth, self.question.k) if own else self.depth
        context = self.question.context if own else ()
        times = self.question.query if self.question.time == "filter" else None
        asked = replace(
            self.question,
            query=query,
            k=k,
            min_score=None,
            preset=self._pipeline(),
            context=context,
            times_of=times,
        )
        models = self.models if own else self.hop_models
        return search(self.engine, self.scope, asked, models=models).hits

    def deeper(self) -> PlainSearch | None:
        """Return what searches as `hop`, with more of the candidates read; None if none does."""
        pipeline = self._pipeline()
        reading = read_at_least(pipeline, MOST_READ_FIRST)
        if reading is pipeline:
            return None
        k = max(self.depth, self.question.k)
        asked = replace(self.question, k=k, min_score=None, preset=reading)
        return lambda query: (
            search(self.engine, self.scope, replace(asked, query=query), models=self.models).hits
        )

    def pins(self) -> tuple[Hit, ...]:
        """Return the pinned rules that plain search put first."""
        plain = self.plain()
        if plain.order != "pins":
            return ()
        return tuple(takewhile(lambda hit: is_pinned(hit.memory), plain.hits))

    def drop_known(self, hits: Sequence[Hit]) -> Sequence[Hit]:
        """Leave out what the dialogue before the question holds, where plain search does.

        A hop is led over such a memory nonetheless.
        """
        stages = preset(self.question.preset).stages
        dropping = next((stage for stage in stages if isinstance(stage, DropKnown)), None)
        if dropping is None:
            return hits
        texts, context = (hit.memory.text for hit in hits), self.question.context
        said = already_said(texts, context, most_shared=dropping.most_shared)
        return [hit for hit, is_known in zip(hits, said, strict=True) if not is_known]

    def drop_forgotten(self, hits: Sequence[Hit]) -> Sequence[Hit]:
        """Leave out what was forgotten while the session was held, which may take minutes."""
        store = self.engine.store
        if store.version() == self._version:
            return hits
        where, ids = And((self.scope.predicate(), CURRENT)), [hit.id for hit in hits]
        held = {each.id for each in store.present(where, ids, ())}
        return [hit for hit in hits if hit.id in held]

    def lists_time(self) -> bool:
        """Whether plain search gives all of a time in its order, with or without pinned rules."""
        listed = (each for each in self.plain().trace.stages if each.name == ListTime.name)
        return any(each.status == "ran" for each in listed)

    def _pipeline(self) -> Pipeline:
        """Return the question's pipeline without the stage that moves rules to the front."""
        pipeline = preset(self.question.preset)
        stages = [stage for stage in pipeline.stages if not isinstance(stage, PinRules)]
        if len(stages) == len(pipeline.stages):
            return pipeline
        return Pipeline(pipeline.name, stages, summary=pipeline.summary)


def agent_search(searches: Searches, given: AgentOptions | None) -> SearchResult:
    """Hold a session and give its result; whatever happens, at least what plain search gives.

    Raises:
        InvalidInput: The options or the configuration cannot be used.
        MissingExtra: The provider's SDK is not installed.
        EkphoryError: Plain search itself failed.
        SessionCancelled: Nobody waits for the result any more.
    """
    options = check_options(given)
    settings = options.settings or current_agent_settings()
    reranker = settings.reranker or searches.models.reranker
    provider: SessionProvider = LocalProvider(reranker)
    if settings.provider != "local":
        provider = ModelProvider(settings)
        # Of the few that a model is shown the best must come first.
        searches.hop_models, searches.depth = searches.models, SHOWN_HITS
    # Its own question is looked up two or three times, and reads the same first candidates.
    searches.models = replace(searches.models, known_scores={})
    question = searches.question
    log = agent_trace.EventLog(options.on_event)
    budget = Budget(
        most_calls=settings.agent_session_max_combined_calls,
        seconds=settings.agent_session_timeout_seconds,
    )
    log.add(
        agent_trace.SessionStarted(
            session_id=secrets.token_hex(8),
            provider=provider.name,
            query=question.query,
            most_calls=budget.most_calls,
            timeout_seconds=budget.seconds,
        )
    )
    tool = SearchTool(searches.hop, budget, log, searches.deeper(), now=question.now)
    completed, outcome = _hold(provider, question.query, tool, log)
    plain = searches.plain()
    if outcome.ranking is None or searches.lists_time():
        hits, rerank_applied = _order_hits(searches, tool, log, reranker)
    else:
        hits, rerank_applied = _cut(outcome.ranking, searches), False
    log.add(
        agent_trace.SessionEnded(
            completed=completed,
            response=outcome.response,
            sufficient=outcome.sufficient,
            confidence=outcome.confidence,
            memories=len(hits),
            rerank_applied=rerank_applied,
        )
    )
    trace = agent_trace.RetrievalTrace(tuple(log.events), options.stage_results)
    abstained = plain.abstained and not hits
    same = [hit.id for hit in hits] == [hit.id for hit in plain.hits]
    order = plain.order if same else "chain"
    return SearchResult(hits, plain.trace, abstained, retrieval_trace=trace, order=order)


def _hold(
    provider: SessionProvider, query: str, tool: SearchTool, log: agent_trace.EventLog
) -> tuple[bool, SessionOutcome]:
    """Hold the session; says whether it ended as it should, and how."""
    if not query.strip():
        return True, SessionOutcome("Nothing was asked; these are the newest memories.", True, None)
    try:
        if len(query) > LONGEST_QUERY:
            raise QueryRefused(f"the query is longer than {LONGEST_QUERY:,} characters")
        return True, provider.run(query, tool, log)
    except QueryRefused as refusal:
        fault = SessionFault("invalid_tool_call", str(refusal))
    except SessionFault as met:
        fault = met
    log.add(agent_trace.FellBack(reason=fault.reason, problem=fault.problem))
    _log.warning("agent session (%s) fell back to plain search: %s", provider.name, fault)
    return False, SessionOutcome(f"Fell back to plain search: {fault.reason}.", False, None)


def _order_hits(
    searches: Searches, tool: SearchTool, log: agent_trace.EventLog, reranker: RerankingModel | None
) -> tuple[tuple[Hit, ...], bool]:
    """Return the final hits, and whether a reranker ordered them."""
    plain, question = searches.plain().hits, searches.question
    if searches.lists_time() or all(found.query == question.query for found in tool.found):
        return plain, False
    pins = searches.pins()
    others = plain[len(pins) :]
    # Plain search goes on behind the hits that were wanted of it, down to these.
    own = (each.hits for each in tool.found if each.query == question.query)
    least = min((hit.score for hit in chain.from_iterable(own)), default=1.0)
    found = merge_hits(others, tool.found, log.events, least=least)
    merged_hits = keep_first(others, found, log.events)
    hops = (each.body for each in log.events if isinstance(each.body, agent_trace.HopResolved))
    chain_so_far = tuple(f"{hop.query}: {hop.answer}" for hop in hops if hop.answer)
    query = RerankQuery(question.query, context=chain_so_far, now=question.now)
    in_time = reranker if tool.budget.seconds_left else None
    hits, rerank_applied = rerank_after_chain(merged_hits, query, in_time)
    return _cut(hits, searches), rerank_applied


def _cut(found: Sequence[Hit], searches: Searches) -> tuple[Hit, ...]:
    """Return the pinned rules and the first hits that are likely enough."""
    question, pins = searches.question, {hit.id: hit for hit in searches.pins()}
    # One that is evidence too says so.
    pins |= {hit.id: replace(pins[hit.id], scores=hit.scores) for hit in found if hit.id in pins}
    others = searches.drop_known([hit for hit in found if hit.id not in pins])
    others = searches.drop_forgotten(others)
    hits = chain(pins.values(), others)
    likely = (hit for hit in hits if hit.score >= (question.min_score or 0.0))
    return tuple(islice(likely, question.k))
