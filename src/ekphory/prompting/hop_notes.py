"""The evidence chain as lines before the memories of a block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ekphory.agent_trace.retrieval_trace import CONFIDENT, RetrievalTrace, StageResult
from ekphory.prompting.injection import find_injection
from ekphory.types import Hit

LEFT_OUT = "(left out)"


def hop_notes(trace: RetrievalTrace, hits: Sequence[Hit]) -> tuple[str, ...]:
    """Tell every hop in a line.

    What a hop found comes out of a memory: where it tries to steer a model it is left out, as such
    a memory is.

    Args:
        trace: What the agent did.
        hits: The hits of the block, whose places from 1 the lines name.
    """
    places = {hit.id: place for place, hit in enumerate(hits, start=1)}
    as_results = trace.stage_results_wanted == "memory"
    return tuple(
        hop.line if as_results and _is_sure(hop) else _note(number, hop, places)
        for number, hop in enumerate(trace.hops, start=1)
    )


def _is_sure(hop: StageResult) -> bool:
    return bool(hop.answer) and hop.confidence >= CONFIDENT and not _steers(hop.answer)


def _note(number: int, hop: StageResult, places: Mapping[str, int]) -> str:
    found = LEFT_OUT if _steers(hop.answer) else hop.answer
    named = [str(places[each]) for each in hop.memory_ids if each in places]
    parts = [f"hop {number}: {hop.query}"]
    if found:
        parts.append(f"found: {found}")
    parts.append(f"confidence {hop.confidence:.2f}")
    if named:
        parts.append(f"memory {', '.join(named)}")
    return "; ".join(parts)


def _steers(answer: str) -> bool:
    return bool(answer) and find_injection(answer).rule is not None
