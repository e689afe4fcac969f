"""Stage 12: a model that reads the query together with each of the best candidates."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from recollect.errors import ModelError, ServiceError
from recollect.retrieval.calibration import RERANKER_CALIBRATIONS
from recollect.retrieval.candidate_records import read_candidates
from recollect.retrieval.rerank_blend import (
    Blend,
    FloatArray,
    as_question,
    is_undecided,
    reranked,
)
from recollect.retrieval.reranker_gate import GateDecision
from recollect.retrieval.reranking import relevance
from recollect.retrieval.state import Candidates, ScoreArray, SearchState

PUBLISHED_BLEND = Blend()


class Rerank:
    """Orders the best candidates by their first-stage order and the reranker's scores together.

    All of them get a score. The others follow in the first stage's order: those after them, those
    that time did not suffice for, and all where the reranker fails; then the stage is degraded.

    Args:
        candidates: How many of the best are read.
        blend: How order and scores become one.
        least_spread: Scores that lie closer together, in logits, change nothing.
        seconds: Time to spend on reading; None for as long as it takes.
        query_form: Whether statements are put to the reranker as questions.
        boosts: Whether pools, importance and age move the candidates before it or after.
    """

    number = 12
    name = "rerank"
    needs = frozenset({"probability"})
    gives = frozenset({"reranked"})

    def __init__(
        self,
        *,
        candidates: int = 30,
        blend: Blend = PUBLISHED_BLEND,
        least_spread: float = 0.5,
        seconds: float | None = None,
        query_form: Literal["as asked", "question"] = "as asked",
        boosts: Literal["before", "after"] = "before",
    ) -> None:
        self.candidates = candidates
        self.blend = blend
        self.least_spread = least_spread
        self.seconds = seconds
        self.query_form = query_form
        self.boosts = boosts

    def skip_reason(self, state: SearchState) -> str | None:
        """No reranker, no candidates, a gate that is shut, or a time that is all that is asked."""
        if state.resources.reranker is None:
            return "no reranker"
        if state.reading is not None and state.reading.only_time:
            return "the query asks for a time alone"
        if state.gate is not None and not state.gate.rerank:
            return state.gate.reason
        return None if len(state.candidates) else "no candidates"

    def run(self, state: SearchState) -> SearchState:
        """Read the best candidates and order them anew."""
        reranker = state.resources.reranker
        if reranker is None:
            return state
        candidates, records = read_candidates(self._unboosted(state), most=self.candidates)
        query = as_question(state.text) if self.query_form == "question" else state.text
        passages = [record.indexed_text for record in records]
        try:
            read = relevance(reranker, query, passages, seconds=self.seconds)
        except (ServiceError, ModelError) as error:
            return replace(state, degraded=f"{reranker.name}: {error}")
        late = int(np.isnan(read).sum())
        degraded = f"time for {len(read) - late} of {len(read)} candidates" if late else None
        notes: dict[str, object] = {"reranker": reranker.name, "read": len(read) - late}
        if is_undecided(read, least_spread=self.least_spread):
            return replace(state, notes=notes | {"undecided": True}, degraded=degraded)
        scores = np.full(len(candidates), np.nan)
        scores[: len(read)] = read
        scored = _scored(candidates, scores, reranker.name)
        ranking = self._ranking(scored, scores, state.gate)
        return replace(state, candidates=scored.ranked(ranking), notes=notes, degraded=degraded)

    def _unboosted(self, state: SearchState) -> SearchState:
        boost = state.candidates.scores.get("boost")
        if self.boosts == "before" or boost is None:
            return state
        unboosted = np.asarray(state.candidates.ranking / boost, np.float32)
        return replace(state, candidates=state.candidates.ranked(unboosted))

    def _ranking(
        self, candidates: Candidates, scores: FloatArray, gate: GateDecision | None
    ) -> ScoreArray:
        boost = candidates.scores.get("boost") if self.boosts == "after" else None
        ranking = reranked(
            candidates.ranking.astype(np.float64),
            scores,
            self.blend,
            gate_weight=1.0 if gate is None else gate.first_stage_weight,
            boost=None if boost is None else boost.astype(np.float64),
        )
        return np.asarray(ranking, np.float32)


def _scored(candidates: Candidates, scores: FloatArray, reranker: str) -> Candidates:
    named = {**candidates.scores, "reranker": scores.astype(np.float32)}
    calibration = RERANKER_CALIBRATIONS.get(reranker)
    if calibration is not None:
        own = calibration.probabilities(named["reranker"])
        named["probability"] = np.where(np.isnan(own), named["probability"], own)
    return replace(candidates, scores=named)
