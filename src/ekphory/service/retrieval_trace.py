"""What a search did, in the words of MemMachine's `retrieval_trace`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ekphory.results import SearchResult
from ekphory.service.episode import FoundEpisodes
from ekphory.trace import Trace

_RERANKER = "rerank"
_NAMES = frozenset(
    (
        *("trace_id", "agent", "route", "provider", "reason_code", "fallback_trigger_reason"),
        *("selected_route", "selected_agent", "selected_agent_name"),
    )
)
"""Fields that hold names, never what was said."""


def retrieval_trace(
    trace_id: str, episodes: FoundEpisodes | None, features: Sequence[SearchResult]
) -> dict[str, Any]:
    """Describe one search.

    Args:
        trace_id: Its name.
        episodes: What episodic memory gave; None where it was not searched.
        features: What the searches of semantic memory gave.
    """
    result = episodes.result if episodes is not None else None
    searches = [found.trace for found in (result, *features) if found is not None]
    described: dict[str, Any] = {
        "trace_id": trace_id,
        "agent": "MemMachineSearch",
        "selected_agent": "memmachine_search",
        "selected_agent_name": "MemMachineSearch",
        "memory_search_called": len(searches),
        "rerank_applied": any(map(_reranked, searches)),
    }
    if result is not None:
        described["abstained"] = result.abstained
        described["order"] = result.order
        if result.retrieval_trace is not None:
            described |= result.retrieval_trace.to_dict()
    described["final_episode_count"] = 0 if episodes is None else len(episodes.long_term)
    described["searches"] = [search.to_dict() for search in searches]
    return described


def without_texts(trace: Mapping[str, Any]) -> dict[str, Any]:
    """Give a trace as it is kept: names, counts and times, and nothing of what was said."""
    kept = {
        name: value
        for name, value in trace.items()
        if name in _NAMES or isinstance(value, int | float)
    }
    return kept | {"searches": trace["searches"]}


def _reranked(trace: Trace) -> bool:
    return any(_RERANKER in stage.name and stage.status == "ran" for stage in trace.stages)
