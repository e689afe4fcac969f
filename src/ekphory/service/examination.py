"""Searching with any preset, and telling all of it: every stage, every score, every hop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ekphory.agent_trace.events import HopResolved, ToolReturned
from ekphory.filters.tree import Field, In
from ekphory.memory import Memory
from ekphory.moments import now_utc
from ekphory.results import SearchResult
from ekphory.retrieval.presets import preset
from ekphory.service.handles import Handles
from ekphory.service.place import Place
from ekphory.service.reasons import Reason, reasons
from ekphory.service.uids import Uids
from ekphory.service.waterfall import WaterfallRow, waterfall
from ekphory.service.wire_names import StoredNames, read_filter
from ekphory.types import MemoryRecord, TimeUse

_SHOWN_OF_A_SEARCH = 5
"""So many of what one of the agent's searches found are told whole."""
_MOST_OTHERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A question, and how it is to be searched.

    Attributes:
        query: The question; empty for the newest.
        preset: Name of a preset; None for the service's.
        limit: How many hits.
        pools: Only these; None for all.
        filter: A condition in the filter grammar; blank for none.
        min_score: Only hits of at least this probability.
        now: The moment it is asked; None for the current one.
        time: What a time in the query's words does.
        agent_mode: Whether the retrieval agent follows the question.
    """

    query: str
    preset: str | None = None
    limit: int = 10
    pools: tuple[str, ...] | None = None
    filter: str = ""
    min_score: float | None = None
    now: datetime | None = None
    time: TimeUse = "boost"
    agent_mode: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What a search gave, and all that it did.

    Attributes:
        now: The moment that it was asked for.
        preset: The preset that it was made with.
        result: What the search gave.
        reasons: Why each hit is there.
        rows: All stages.
        others: Memories that the agent found on its way and that are no hits.
    """

    now: datetime
    preset: str
    result: SearchResult
    reasons: Sequence[tuple[Reason, ...]]
    rows: tuple[WaterfallRow, ...]
    others: tuple[MemoryRecord, ...]


class Examination:
    """Searches a project's memories, and leaves no trace of it."""

    def __init__(self, handles: Handles, uids: Uids) -> None:
        self._handles = handles
        self._uids = uids

    def search(self, place: Place, probe: Probe) -> Examined:
        """Answer a question and tell how.

        Raises:
            InvalidInput: The question cannot be used.
        """
        now = probe.now or now_utc()
        names = StoredNames(memory_id=lambda uid: self._uids.stored(place, [uid])[0])
        with self._handles.episodes(place) as memory:
            pipeline = memory.preset if probe.preset is None else preset(probe.preset)
            result = memory.search(
                probe.query,
                k=probe.limit,
                now=now,
                pools=probe.pools,
                filter=read_filter(probe.filter, names),
                min_score=probe.min_score,
                preset=pipeline,
                time=probe.time,
                agent_mode=probe.agent_mode and bool(probe.query.strip()),
            )
            others = _others(memory, result)
        return Examined(
            now=now,
            preset=pipeline.name,
            result=result,
            reasons=reasons(result),
            rows=waterfall(result.trace, pipeline),
            others=others,
        )


def _others(memory: Memory, result: SearchResult) -> tuple[MemoryRecord, ...]:
    events = () if result.retrieval_trace is None else result.retrieval_trace.events
    named: dict[str, None] = {}
    for event in events:
        if isinstance(event.body, HopResolved):
            named |= dict.fromkeys(event.body.memory_ids)
        elif isinstance(event.body, ToolReturned):
            named |= dict.fromkeys(event.body.memory_ids[:_SHOWN_OF_A_SEARCH])
    missing = [each for each in named if each not in {hit.id for hit in result}][:_MOST_OTHERS]
    if not missing:
        return ()
    return tuple(memory.list(filter=In(Field("id"), tuple(missing)), limit=_MOST_OTHERS))
