"""Stages 13 to 15: the list as it is given back: diverse, with pins, within its budget."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ekphory.documents.blocks import join_passages
from ekphory.errors import StoreError
from ekphory.prompting.block import MOST_SHARED, already_said, fit_token_budget
from ekphory.prompting.injection import find_injection
from ekphory.retrieval.fusion import min_max
from ekphory.retrieval.pipeline import RecordReader, SearchState, Stage, places_of, read_candidates
from ekphory.retrieval.snapshot import ScopeSnapshot
from ekphory.scope import get_owner
from ekphory.store.protocol import IntArray
from ekphory.types import PINNED, RULES, MemoryRecord

# Maximal marginal relevance: an order in which the best come first and do not repeat each other.
#
# Source: Carbonell and Goldstein, "The Use of MMR, Diversity-Based Reranking for Reordering
# Documents and Producing Summaries", SIGIR 1998; the adaptive trade-off is Memory-Spark's
# (`computeAdaptiveLambda`).

FloatArray = NDArray[np.floating]

WIDE_SPREAD, NARROW_SPREAD = 0.3, 0.1


def order_by_marginal_relevance(
    relevance: FloatArray, similarity: FloatArray, *, trade_off: float
) -> IntArray:
    """Take the most relevant first, then whatever has the largest marginal relevance.

    λ·relevance - (1 - λ)·(largest similarity to what was taken). Nothing is lost: the result
    orders all candidates. Equal ones keep their order.

    Args:
        relevance: In [0, 1], shape (candidates,).
        similarity: Cosine between candidates, in [-1, 1], shape (candidates, candidates).
        trade_off: λ; 1 asks for relevance alone, 0 for difference alone.
    """
    order: list[int] = []
    left = np.ones(len(relevance), bool)
    # Two candidates may point away from each other, so nothing is less similar than -1.
    closest = np.full(len(relevance), -1.0)
    marginal = relevance.astype(np.float64)
    while len(order) < len(relevance):
        best = int(np.argmax(np.where(left, marginal, -np.inf)))
        order.append(best)
        left[best] = False
        closest = np.maximum(closest, similarity[best])
        marginal = trade_off * relevance - (1 - trade_off) * closest
    return np.array(order, np.int64)


def adaptive_trade_off(scores: FloatArray) -> float:
    """Trust relevance the more, the further the scores spread.

    λ is .95 above a spread of .3, .85 above .1, else .7; .9 for a single candidate.

    Args:
        scores: Raw cosine of the candidates. Values scaled to [0, 1] would always spread by 1.
    """
    if len(scores) < 2:
        return 0.9
    spread = float(np.ptp(scores))
    if spread > WIDE_SPREAD:
        return 0.95
    return 0.85 if spread > NARROW_SPREAD else 0.7


# Documents put together again from their parts, which are what is stored and found.

Family = tuple[tuple[str | None, ...], str | None, str]
"""Owner, session and parent: a parent's id is unique within one owner's session only."""


def family_of(record: MemoryRecord) -> Family | None:
    """Return what a part shares with the other parts of its parent; None for what is whole."""
    if not record.parent_id:
        return None
    return get_owner(record), record.session, record.parent_id


def group_by_family(records: Iterable[MemoryRecord]) -> dict[Family, list[MemoryRecord]]:
    """Group parts by parent, each group in the order of the text."""
    found: dict[Family, list[MemoryRecord]] = {}
    for record in records:
        family = family_of(record)
        if family is not None:
            found.setdefault(family, []).append(record)
    for parts in found.values():
        parts.sort(key=lambda part: (part.sequence or 0, part.id))
    return found


def join_around(parts: Sequence[MemoryRecord], part_id: str, *, longest: int) -> str:
    """Join parts, growing from one of them to both sides.

    Args:
        parts: In the order of the text; one of them has the id.
        part_id: Where to begin; this part is always whole.
        longest: Most characters of the parts together, unless the one alone is longer.
    """
    first = last = next(place for place, part in enumerate(parts) if part.id == part_id)
    length = len(parts[first].text)
    while True:
        beside = [place for place in (first - 1, last + 1) if 0 <= place < len(parts)]
        fitting = [place for place in beside if length + len(parts[place].text) <= longest]
        if not fitting:
            return join_passages(parts[first : last + 1])
        for place in fitting:
            if length + len(parts[place].text) <= longest:
                length += len(parts[place].text)
                first, last = min(first, place), max(last, place)


# Rules that every search finds: those of the pool `shared_rules` that say so in their metadata.

MOST_RULES = 200
"""Of more rules the most important are looked at, of equally important ones the newest."""
MOST_PINNED = 10
_MOST_KNOWN = 100_000


class PinnedRules:
    """Knows of each rule whether it is pinned, and reads a rule once.

    A stored row never changes, so what is known of its key stays true.
    """

    def __init__(self, read: RecordReader) -> None:
        self._read = read
        self._known: dict[int, bool] = {}
        self._guard = threading.Lock()

    def rows(self, snapshot: ScopeSnapshot, visible: NDArray[np.bool_]) -> IntArray:
        """Return the pinned rules among the visible rows, at most ten, the most important first."""
        pool = np.flatnonzero(snapshot.pool_names == RULES)
        if not len(pool):
            return np.empty(0, np.int64)
        columns = snapshot.columns
        rules = np.flatnonzero((snapshot.pool_codes == pool[0]) & visible)
        order = np.lexsort((-rules, -columns.at[rules], -columns.importance[rules]))
        rules = rules[order][:MOST_RULES]
        pinned = np.array(self._pinned(columns.key[rules].tolist(), snapshot), bool)
        return np.asarray(rules[pinned][:MOST_PINNED], np.int64)

    def _pinned(self, keys: list[int], snapshot: ScopeSnapshot) -> list[bool]:
        with self._guard:
            unknown = [key for key in keys if key not in self._known]
            if unknown:
                if len(self._known) > _MOST_KNOWN:
                    self._known.clear()
                    unknown = keys
                found = snapshot.records.held(unknown)
                missing = [key for key in unknown if key not in found]
                found |= self._read(missing) if missing else {}
                for key, record in found.items():
                    self._known[key] = record.metadata.get(PINNED) is True
            return [self._known.get(key, False) for key in keys]


# Stage 13: what comes next should not repeat what came before.


@dataclass(frozen=True, kw_only=True, eq=False)
class Diversify(Stage):
    """Orders the best candidates by maximal marginal relevance.

    Relevance is the ranking scaled to [0, 1] among them, so that it weighs the same whatever gave
    the ranking: ranks fused, scores blended, or probabilities. Similarity is the cosine of the
    memories' first windows. Only the order changes, and nothing is dropped.

    Attributes:
        trade_off: λ, the share of relevance; `adaptive` chooses it by the spread of cosine.
        among_per_hit: How many of the best candidates are ordered, for each hit wanted.
    """

    number = 13
    name = "diversify"
    needs = frozenset({"cosine", "probability"})

    trade_off: float | Literal["adaptive"] = 0.9
    among_per_hit: int = 4

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to tell apart among fewer than two, or in a list in the order of time."""
        if state.reading is not None and state.reading.only_time:
            return "the query asks for a time alone"
        if not state.snapshot.has_vectors:
            return "no vectors can be compared"
        return None if len(state.candidates) > 1 else "fewer than two candidates"

    def run(self, state: SearchState) -> SearchState:
        """Order anew."""
        candidates = state.candidates
        head = slice(0, self.among_per_hit * state.request.k)
        vectors = state.snapshot.dense.first_vectors(candidates.rows[head], now=state.request.now)
        cosine = candidates.scores["cosine"][head]
        share = adaptive_trade_off(cosine) if self.trade_off == "adaptive" else self.trade_off
        relevance = min_max(candidates.ranking[head].astype(np.float64))
        order = order_by_marginal_relevance(relevance, vectors @ vectors.T, trade_off=share)
        rest = np.arange(len(order), len(candidates))
        moved = int((order != np.arange(len(order))).sum())
        reordered = candidates.in_order(np.concatenate([order, rest]))
        notes = {"trade_off": share, "moved": moved}
        return replace(state, candidates=reordered, notes=notes, order="diversity")


# Stage 14: a part of a document is shown with the rest of it.


@dataclass(frozen=True, kw_only=True, eq=False)
class ExpandParents(Stage):
    """Shows in place of each part its whole parent, and each parent once, at its best part.

    Parents are no rows, so they take no candidate's place before: they are joined from the parts
    in this scope that the request lets through. The hit's memory stays the part.

    Attributes:
        among_per_hit: How many of the best candidates are looked at, for each hit wanted.
        longest: Most characters of a parent; of a longer one the parts around the found one.
    """

    number = 14
    name = "expand parents"
    needs = frozenset({"probability"})

    among_per_hit: int = 4
    longest: int = 8_000

    def run(self, state: SearchState) -> SearchState:
        """Join the parents; parts whose siblings cannot be read stay as they are."""
        candidates, records = read_candidates(state, most=self.among_per_hit * state.request.k)
        wanted = sorted({record.parent_id for record in records if record.parent_id})
        if not wanted:
            return replace(state, candidates=candidates, notes={"parents": 0})
        try:
            found = group_by_family(state.resources.children(wanted))
        except StoreError as error:
            return replace(state, candidates=candidates, degraded=f"parents not read: {error}")
        kept: list[int] = []
        shown: set[Family] = set()
        texts = dict(state.texts)
        for place, record in enumerate(records):
            family = family_of(record)
            if family in shown:
                continue
            kept.append(place)
            parts = found.get(family, []) if family else []
            if family and any(part.id == record.id for part in parts):
                shown.add(family)
                row = int(candidates.rows[place])
                texts[row] = join_around(parts, record.id, longest=self.longest)
        expanded = candidates.take(places_of(kept, read=len(records), total=len(candidates)))
        return replace(state, candidates=expanded, texts=texts, notes={"parents": len(shown)})


# Stage 15: rules that are pinned come first.


@dataclass(frozen=True, kw_only=True, eq=False)
class PinRules(Stage):
    """Moves pinned rules to the front, whatever the query, but never to more than half the hits.

    A rule is a memory of the pool `shared_rules`, found like any other by its relevance. One with
    `{"pinned": true}` in its metadata is found by every search that may see it. Its probability
    stays what it is, so `min_score` may still leave it out.
    """

    number = 15
    name = "pin rules"
    needs = frozenset({"probability"})

    most: int = 3

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to move without pinned rules."""
        return None if len(state.request.pinned) else "no rule is pinned"

    def run(self, state: SearchState) -> SearchState:
        """Move the first of them to the front, in the order in which they are pinned."""
        candidates = state.candidates
        most = min(self.most, state.request.k // 2)
        present = state.request.pinned[np.isin(state.request.pinned, candidates.rows)][:most]
        places = [int(np.flatnonzero(candidates.rows == row)[0]) for row in present]
        rest = np.setdiff1d(np.arange(len(candidates)), places)
        order = np.array([*places, *rest], np.int64)
        moved = candidates.in_order(order)
        kind = "pins" if places else state.order
        return replace(state, candidates=moved, notes={"pinned": len(places)}, order=kind)


# Stage 15: what the conversation holds already is not told again.


@dataclass(frozen=True, kw_only=True, eq=False)
class DropKnown(Stage):
    """Drops memories whose words mostly stand in one of the request's context texts.

    The memory's own words are compared, not those of the parent that it is shown with.

    Attributes:
        most_shared: Share of its words above which a memory counts as known.
        among_per_hit: How many of the best candidates are looked at, for each hit wanted.
    """

    number = 15
    name = "context dedup"
    needs = frozenset({"probability"})
    gives = frozenset({"news"})

    most_shared: float = MOST_SHARED
    among_per_hit: int = 4

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing is known without a context."""
        if not state.request.context:
            return "no context was given"
        return super().skip_reason(state)

    def run(self, state: SearchState) -> SearchState:
        """Drop what is known."""
        candidates, records = read_candidates(state, most=self.among_per_hit * state.request.k)
        texts = [record.text for record in records]
        said = already_said(texts, state.request.context, most_shared=self.most_shared)
        kept = [place for place, known in enumerate(said) if not known]
        places = places_of(kept, read=len(records), total=len(candidates))
        notes = {"dropped": len(records) - len(kept)}
        return replace(state, candidates=candidates.take(places), notes=notes)


# Stage 15: memories that try to steer the model that will read them are left out.


@dataclass(frozen=True, kw_only=True, eq=False)
class FilterInjection(Stage):
    """Leaves out memories in whose text, or in that of the parent, an injection is found.

    What the filter finds, and what it cannot, `find_injection` says; the trace counts by rule.

    Attributes:
        among_per_hit: How many of the best candidates are looked at, for each hit wanted; those
            after them are left out unread.
    """

    number = 15
    name = "injection filter"
    needs = frozenset({"probability"})

    among_per_hit: int = 4

    def run(self, state: SearchState) -> SearchState:
        """Look at each text and keep the harmless ones."""
        candidates, records = read_candidates(state, most=self.among_per_hit * state.request.k)
        found: Counter[str] = Counter()
        kept: list[int] = []
        for place, record in enumerate(records):
            shown = state.texts.get(int(candidates.rows[place]), record.text)
            verdict = find_injection(shown)
            if verdict.rule is None:
                kept.append(place)
            else:
                found[verdict.rule] += 1
        places = places_of(kept, read=len(records), total=len(records))
        notes = {"dropped": found.total(), **found}
        return replace(state, candidates=candidates.take(places), notes=notes)


# Stage 15: no more hits than a prompt has room for.


@dataclass(frozen=True, kw_only=True, eq=False)
class FitBudget(Stage):
    """Keeps the best hits whose texts together fit a budget of tokens.

    One that does not fit is passed over, and what follows is tried, until there are as many as were
    asked for. A text counts as it is shown: with its parent.

    Attributes:
        tokens: The budget.
        among_per_hit: How many of the best candidates are tried, for each hit wanted.
    """

    number = 15
    name = "token budget"
    needs = frozenset({"probability"})

    tokens: int = 2000
    among_per_hit: int = 4

    def run(self, state: SearchState) -> SearchState:
        """Keep what fits."""
        candidates, records = read_candidates(state, most=self.among_per_hit * state.request.k)
        shown = [
            state.texts.get(int(row), record.text)
            for row, record in zip(candidates.rows, records, strict=False)
        ]
        kept = fit_token_budget(shown, self.tokens)[: state.request.k]
        notes = {"budget": self.tokens, "passed_over": len(shown) - len(kept)}
        chosen = candidates.take(np.array(kept, np.int64))
        return replace(state, candidates=chosen, notes=notes)


# The end of every pipeline: drop what is too unlikely, keep the k best.


class Cut(Stage):
    """Keeps candidates of at least `min_score` probability, and of those the first k."""

    number = 15
    name = "cut"
    needs = frozenset({"probability"})

    def run(self, state: SearchState) -> SearchState:
        """Cut the list."""
        request, candidates = state.request, state.candidates
        if request.min_score is not None:
            candidates = candidates.take(candidates.scores["probability"] >= request.min_score)
        below = len(state.candidates) - len(candidates)
        notes = {"below_min_score": below, "k": request.k}
        return replace(state, candidates=candidates.take(slice(0, request.k)), notes=notes)
