"""Why a hit is there, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ekphory.results import SearchResult
from ekphory.retrieval.pinned import PINNED, RULES
from ekphory.searching import NEWEST
from ekphory.types import Hit

ReasonKind = Literal[
    "newest", "chain", "meaning", "words", "time", "weight", "reranker", "pinned", "parent"
]
_NEARLY_ONE = 0.005
"""A factor that is no further from 1 changed nothing worth telling."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that speaks for a hit.

    Attributes:
        kind: What brought it, as a word.
        sentence: The same for people.
    """

    kind: ReasonKind
    sentence: str


def reasons(result: SearchResult) -> list[tuple[Reason, ...]]:
    """Say of every hit why it is there."""
    if result.trace.preset == NEWEST:
        newest = Reason("newest", "One of the newest; nothing was asked.")
        return [(newest,) for _ in result]
    return [
        (*_chain(hit, result), *_found(hit, result.hits), *_moved(hit), *_shown(hit))
        for hit in result
    ]


def _chain(hit: Hit, result: SearchResult) -> list[Reason]:
    hops = () if result.retrieval_trace is None else result.retrieval_trace.hops
    return [
        Reason("chain", f"States hop {number}: “{hop.query}”{hop.answer and f' → {hop.answer}'}.")
        for number, hop in enumerate(hops, start=1)
        if hit.id in hop.memory_ids
    ]


def _found(hit: Hit, hits: Sequence[Hit]) -> list[Reason]:
    """Say what each arm made of it."""
    told = []
    if "cosine" in hit.scores:
        place = _place(hit, hits, "cosine")
        told.append(Reason("meaning", f"{place} by meaning: cosine {hit.scores['cosine']:.2f}."))
    share = hit.scores.get("lexical")
    if share is not None and share <= 0:
        told.append(Reason("words", "Shares no word with the question."))
    elif share is not None:
        whose = "" if hit.scores.get("bm25") else ", lent by its neighbours"
        sentence = f"{_place(hit, hits, 'lexical')} by words: {share:.0%} of a full match{whose}."
        told.append(Reason("words", sentence))
    if hit.scores.get("time"):
        told.append(Reason("time", f"Lies in the time asked for: {hit.scores['time']:.0%} sure."))
    return told


def _moved(hit: Hit) -> list[Reason]:
    """Say what moved it up or down."""
    told = []
    factor = hit.scores.get("boost", 1.0)
    if abs(factor - 1) > _NEARLY_ONE:
        verb = "Lifted" if factor > 1 else "Lowered"
        sentence = f"{verb} to ×{factor:.2f} by its pool, importance, age or time."
        told.append(Reason("weight", sentence))
    if "reranker" in hit.scores:
        told.append(Reason("reranker", f"The reranker gives it {hit.scores['reranker']:.2f}."))
    if hit.memory.pool == RULES and hit.memory.metadata.get(PINNED) is True:
        told.append(Reason("pinned", "A pinned rule, found by every search."))
    return told


def _shown(hit: Hit) -> list[Reason]:
    if hit.text == hit.memory.text:
        return []
    return [Reason("parent", "Shown with the text that it stands in.")]


def _place(hit: Hit, hits: Sequence[Hit], score: str) -> str:
    better = sum(each.scores.get(score, 0.0) > hit.scores[score] for each in hits)
    return f"No. {better + 1} of {len(hits)}"
