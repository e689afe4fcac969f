"""Stage 13: what comes next should not repeat what came before."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from ekphory.retrieval.diversity import adaptive_trade_off, marginal_order
from ekphory.retrieval.rerank_blend import min_max
from ekphory.retrieval.state import SearchState


class Diversify:
    """Orders the best candidates by maximal marginal relevance.

    Relevance is the ranking scaled to [0, 1] among them, so that it weighs the same whatever gave
    the ranking: ranks fused, scores blended, or probabilities. Similarity is the cosine of the
    memories' first windows. Only the order changes, and nothing is dropped.

    Args:
        trade_off: λ, the share of relevance; `adaptive` chooses it by the spread of cosine.
        among_per_hit: How many of the best candidates are ordered, for each hit wanted.
    """

    number = 13
    name = "diversify"
    needs = frozenset({"cosine", "probability"})
    gives = frozenset({"diverse"})

    def __init__(
        self, *, trade_off: float | Literal["adaptive"] = 0.9, among_per_hit: int = 4
    ) -> None:
        self.trade_off = trade_off
        self.among_per_hit = among_per_hit

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to tell apart among fewer than two, or in a list in the order of time."""
        if state.reading is not None and state.reading.only_time:
            return "the query asks for a time alone"
        return None if len(state.candidates) > 1 else "fewer than two candidates"

    def run(self, state: SearchState) -> SearchState:
        """Order anew."""
        candidates = state.candidates
        head = slice(0, self.among_per_hit * state.request.k)
        vectors = state.snapshot.dense.first_vectors(candidates.rows[head], now=state.request.now)
        cosine = candidates.scores["cosine"][head]
        share = adaptive_trade_off(cosine) if self.trade_off == "adaptive" else self.trade_off
        relevance = min_max(candidates.ranking[head].astype(np.float64))
        order = marginal_order(relevance, vectors @ vectors.T, trade_off=share)
        rest = np.arange(len(order), len(candidates))
        moved = int((order != np.arange(len(order))).sum())
        reordered = candidates.in_order(np.concatenate([order, rest]))
        notes = {"trade_off": share, "moved": moved}
        return replace(state, candidates=reordered, notes=notes, order="diversity")
