"""`[StageResult]` lines: what a model says that each hop gave."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ekphory.agent.search_tool import Found, normalised
from ekphory.agent_trace.events import HopResolved

_LINE = re.compile(
    r"^\W*\[StageResult[^\]]*\]\s*Query:\s*(?P<query>[^|\n]+)\|\s*Answer:\s*(?P<answer>[^|\n]*)"
    r"(?:\|\s*Confidence:\s*(?P<confidence>[0-9.]+)[^|\n]*)?(?:\|\s*Reason:\s*(?P<reason>[^\n]*))?$",
    re.MULTILINE | re.IGNORECASE,
)
_INSUFFICIENT = re.compile(r"^\W*sufficient\W+no\b", re.MULTILINE | re.IGNORECASE)
_LONGEST_QUERY, _LONGEST_ANSWER, _LONGEST_REASON = 400, 400, 300
_MOST = 16


@dataclass(frozen=True, slots=True)
class FinalWords:
    """What a model ended with.

    Attributes:
        response: Its words without the lines about hops.
        sufficient: Whether it holds the evidence to be enough.
        hops: The hops in order.
    """

    response: str
    sufficient: bool
    hops: tuple[HopResolved, ...]


def read_final_words(text: str, found: Sequence[Found]) -> FinalWords:
    """Read a model's last message.

    A hop's memories are those that its query found and that name its answer, the best three; of a
    model that tells no hops, every query is one, and its evidence the best memory.
    """
    told = [_hop(place, line, found) for place, line in enumerate(_LINE.finditer(text), start=1)]
    hops = tuple(told[:_MOST]) or tuple(_untold(place, each) for place, each in _numbered(found))
    response = _LINE.sub("", text).strip()
    return FinalWords(response, not _INSUFFICIENT.search(text), hops)


def _numbered(found: Sequence[Found]) -> list[tuple[int, Found]]:
    return list(enumerate((each for each in found if each.hits), start=1))


def _hop(place: int, line: re.Match[str], found: Sequence[Found]) -> HopResolved:
    query = line["query"].strip()[:_LONGEST_QUERY]
    answer = line["answer"].strip()[:_LONGEST_ANSWER]
    return HopResolved(
        branch=1,
        hop=place,
        query=query,
        answer=answer,
        confidence=_probability(line["confidence"]),
        reason=(line["reason"] or "").strip()[:_LONGEST_REASON] or "the model says so",
        memory_ids=_stating(query, answer, found),
    )


def _untold(place: int, found: Found) -> HopResolved:
    best = found.hits[0]
    return HopResolved(
        branch=1,
        hop=place,
        query=found.query[:_LONGEST_QUERY],
        answer="",
        confidence=round(best.score, 4),
        reason="the best memory of a query",
        memory_ids=(best.id,),
    )


def _stating(query: str, answer: str, found: Sequence[Found]) -> tuple[str, ...]:
    asked = normalised(query)
    lists = [each.hits for each in found if normalised(each.query) == asked]
    hits = [hit for hits in lists or [each.hits for each in found] for hit in hits]
    stating = [hit.id for hit in hits if answer and answer.lower() in hit.memory.text.lower()]
    if not stating and lists:
        stating = [hits[0].id] if hits else []
    return tuple(dict.fromkeys(stating))[:3]


def _probability(given: str | None) -> float:
    try:
        return min(max(float(given or 0.5), 0.0), 1.0)
    except ValueError:
        return 0.5
