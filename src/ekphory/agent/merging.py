"""The hits of all searches of a session as one list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain

from ekphory.agent.search_tool import Found
from ekphory.agent_trace.events import AgentEvent, HopResolved
from ekphory.types import Hit

FIRST = 0.5
"""Rating from which the evidence of a hop stands before what plain search found."""
_UNTOLD = 0.3
"""Trust in a query of which no hop came, such as that of a lead which was given up."""


def merged(plain: Sequence[Hit], found: Sequence[Found], events: Iterable[AgentEvent]) -> list[Hit]:
    """Put the hits of plain search and of all calls into one list, each memory once.

    The evidence of the chain comes first, hop by hop, where the hop is rated at least `FIRST`.
    The others follow by the probability that search gave them, of a hop's query times the ratings
    of its chain; those of plain search keep their order. A hit's score is the probability that
    plain search gave it; one that only a hop found has at most the lowest of those. How sure its
    hop is stands in `scores["hop"]`: it is a rating, not a probability.
    """
    hops = _hops(events)
    best = {hit.id: hit for hit in plain}
    least = min((hit.score for hit in plain), default=1.0)
    for hit in chain.from_iterable(each.hits for each in found):
        if hit.id not in best:
            best[hit.id] = replace(hit, score=min(hit.score, least))
    confidence: dict[str, float] = {}
    for hop in hops:
        for memory_id in hop.memory_ids:
            if memory_id in best:
                confidence[memory_id] = max(confidence.get(memory_id, 0.0), hop.confidence)
    first = [memory_id for memory_id, likely in confidence.items() if likely >= FIRST]
    order = dict.fromkeys((*first, *_likeliest(plain, found, hops)))
    return [_with_confidence(best[memory_id], confidence.get(memory_id)) for memory_id in order]


def _likeliest(
    plain: Sequence[Hit], found: Sequence[Found], hops: Sequence[HopResolved]
) -> list[str]:
    """Give all ids, the likeliest first."""
    worth: dict[str, float] = {}
    least = 1.0
    for hit in plain:
        # Plain search orders by more than the score: nobody may overtake within its list.
        least = min(least, hit.score)
        worth[hit.id] = least
    sure = {hop.branch: 1.0 for hop in hops}
    for hop in hops:
        sure[hop.branch] *= hop.confidence
    trust = {hop.query: sure[hop.branch] for hop in hops}
    for each in found:
        for hit in each.hits:
            value = hit.score * trust.get(each.query, _UNTOLD)
            worth[hit.id] = max(worth.get(hit.id, 0.0), value)
    return sorted(worth, key=lambda memory_id: -worth[memory_id])


def _hops(events: Iterable[AgentEvent]) -> list[HopResolved]:
    """Give the hops of all threads, the first hops before the second."""
    hops = [event.body for event in events if isinstance(event.body, HopResolved)]
    return sorted(hops, key=lambda hop: (hop.hop, hop.branch))


def _with_confidence(hit: Hit, confidence: float | None) -> Hit:
    if confidence is None:
        return hit
    return replace(hit, scores={**hit.scores, "hop": confidence})
