"""Stage 12: a model that reads the query together with each of the best candidates."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from ekphory.errors import ModelError, ServiceError
from ekphory.models.bundled_reranker import SMALL_RERANKER, bundled_name
from ekphory.models.reranker import RerankingModel, is_remote
from ekphory.retrieval.lexical import long_share
from ekphory.retrieval.rerank_blend import (
    Blend,
    FloatArray,
    as_question,
    is_undecided,
    reranked,
)
from ekphory.retrieval.rerank_passages import asked, read_passages
from ekphory.retrieval.reranking import relevance
from ekphory.retrieval.state import Candidates, ScoreArray, SearchState

PUBLISHED_BLEND = Blend()

# Below it the bundled rerankers' differences are noise: rare among fifty, common among a few.
_BUNDLED_LEAST_SPREAD = 2.0
# The first stage's among passages of 100 terms and more. On documents every bit of the bundled
# rerankers made its order worse; among an assistant's messages half was best (docs/LOG.md, 32).
_LONG_TURNS_SHARE, _LONG_DOCUMENTS_SHARE = 0.5, 1.0
_LEAVES_NOTHING = 0.95


class Rerank:
    """Orders the best candidates by their first-stage order and the reranker's scores together.

    All of them get a score. The others follow in the first stage's order: those after them, those
    that time did not suffice for, and all where the reranker fails; then the stage is degraded.

    The bundled rerankers learned from turns of conversations: blended by scores, they weigh the
    less the longer the scope's passages are, long turns half, and long documents they do not read.
    Where all their logits lie within 2, the first stage's order stays.

    Args:
        candidates: How many of the best are read.
        blend: How order and scores become one.
        seconds: Time to spend on reading; None for as long as it takes.
        query_form: Whether statements are put to the reranker as questions.
        boosts: When pools, importance and age move the candidates: `before` the reranker; or `as
            asked`, which is after it where the query asks for what is important, since no reranker
            sees that in a text.
        asks: Whether any reranker is asked, or only one that the user chose and that runs in this
            process: neither a service nor `ekphory-rerank-small`.
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
        seconds: float | None = None,
        query_form: Literal["as asked", "question"] = "as asked",
        boosts: Literal["before", "as asked"] = "before",
        asks: Literal["any", "chosen"] = "any",
    ) -> None:
        self.candidates = candidates
        self.blend = blend
        self.seconds = seconds
        self.query_form = query_form
        self.boosts = boosts
        self.asks = asks

    def skip_reason(self, state: SearchState) -> str | None:
        """No reranker, no candidates, a gate that is shut, or a time that is all that is asked."""
        reason = self._reason(state)
        if reason is not None and state.request.context:
            return f"{reason}; none reads the context"
        return reason

    def _reason(self, state: SearchState) -> str | None:
        reranker = state.resources.reranker
        if reranker is None:
            return "no reranker"
        unfit = self._unfit(state, reranker)
        if unfit is not None:
            return unfit
        if state.reading is not None and state.reading.only_time:
            return "the query asks for a time alone"
        if state.gate is not None and not state.gate.rerank:
            return state.gate.reason
        return None if len(state.candidates) else "no candidates"

    def _unfit(self, state: SearchState, reranker: RerankingModel) -> str | None:
        """Say why this reranker is not the one to ask here."""
        if self.asks == "chosen" and is_remote(reranker):
            return "the reranker is a service, which this preset does not ask"
        if self.asks == "chosen" and bundled_name(reranker) == SMALL_RERANKER:
            return f"{SMALL_RERANKER} reads for preset='accurate'"
        if self._blend(state).first_stage_share >= _LEAVES_NOTHING:
            return "the bundled reranker learned from turns, and these are long documents"
        return None

    def run(self, state: SearchState) -> SearchState:
        """Read the best candidates and order them anew."""
        reranker = state.resources.reranker
        if reranker is None:
            return state
        candidates, passages = read_passages(self._unboosted(state), most=self.candidates)
        text = as_question(state.text) if self.query_form == "question" else state.text
        query = asked(state.request, text)
        try:
            read = relevance(reranker, query, passages, seconds=self.seconds)
        except (ServiceError, ModelError) as error:
            return replace(state, degraded=f"{reranker.name}: {error}")
        late = int(np.isnan(read).sum())
        degraded = f"time for {len(read) - late} of {len(read)} candidates" if late else None
        notes: dict[str, object] = {"reranker": reranker.name, "read": len(read) - late}
        if query.context:
            notes["context"] = len(query.context)
        scores = np.full(len(candidates), np.nan)
        scores[: len(read)] = read
        scored = candidates.scored_by_name("reranker", scores.astype(np.float32))
        boost = self._boost_after(scored, state)
        blend = self._blend(state)
        if is_undecided(read, least_spread=blend.least_spread):
            # It cannot tell them apart: the order is the first stage's, the probabilities its own.
            ranking = scored.ranking * boost
            notes["undecided"] = True
        else:
            weight = 1.0 if state.gate is None else state.gate.first_stage_weight
            ranking = _ranking(scored, scores, blend, gate_weight=weight, boost=boost)
        order = state.order if blend.method == "scores" else "ranks"
        return replace(
            state,
            candidates=scored.ranked(ranking),
            notes=notes,
            degraded=degraded,
            order=order,
        )

    def _blend(self, state: SearchState) -> Blend:
        reranker = state.resources.reranker
        is_bundled = reranker is not None and bundled_name(reranker) is not None
        if self.blend.method != "scores" or not is_bundled:
            return self.blend
        share = self.blend.first_stage_share
        long = long_share(state.snapshot.lexical.mean_length)
        if long > 0:
            turns = state.snapshot.turn_share
            most = turns * _LONG_TURNS_SHARE + (1 - turns) * _LONG_DOCUMENTS_SHARE
            share += max(0.0, most - share) * long
        return replace(self.blend, first_stage_share=share, least_spread=_BUNDLED_LEAST_SPREAD)

    def _boosts_after(self, state: SearchState) -> bool:
        asked_for = state.query_class is not None and state.query_class.hints.importance > 0
        return self.boosts == "as asked" and asked_for

    def _boost_after(self, candidates: Candidates, state: SearchState) -> ScoreArray:
        boost = candidates.scores.get("boost") if self._boosts_after(state) else None
        return np.ones(len(candidates), np.float32) if boost is None else boost

    def _unboosted(self, state: SearchState) -> SearchState:
        boost = state.candidates.scores.get("boost")
        if boost is None or not self._boosts_after(state):
            return state
        unboosted = np.asarray(state.candidates.ranking / boost, np.float32)
        return replace(state, candidates=state.candidates.ranked(unboosted))


def _ranking(
    candidates: Candidates,
    scores: FloatArray,
    blend: Blend,
    *,
    gate_weight: float,
    boost: ScoreArray,
) -> ScoreArray:
    ranking = reranked(
        candidates.ranking.astype(np.float64),
        scores,
        blend,
        gate_weight=gate_weight,
        boost=boost.astype(np.float64),
    )
    return np.asarray(ranking, np.float32)
