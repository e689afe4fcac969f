"""Stage 12, last part: the probability of each candidate, after everything that orders them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ekphory.retrieval.calibration import reranker_probabilities
from ekphory.retrieval.fitted_probabilities import fitted_probabilities
from ekphory.retrieval.probability import (
    FEATURES,
    READ_FEATURES,
    FloatArray,
    answer_features,
    descending,
    read_features,
)
from ekphory.retrieval.state import SearchState


class Calibrate:
    """Gives each candidate the probability that it answers, which falls along the list.

    The curves were fitted for the bundled embedder and reranker. With another embedder, or a
    reranker that has no curve, the probability is the one that earlier stages gave. Where the order
    is not that of probability, it may rise along the list.
    """

    number = 12
    name = "calibrate"
    needs = frozenset({"probability"})
    gives = frozenset({"calibrated"})

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to do without candidates, or in a list that time orders."""
        if state.order == "time":
            return "the list is in the order of time, whose reading says how probable it is"
        return None if len(state.candidates) else "no candidates"

    def run(self, state: SearchState) -> SearchState:
        """Give the probabilities; the order stays."""
        candidates = state.candidates
        found, notes = self._probabilities(state)
        if state.order == "score":
            found = descending(found)
        probable = candidates.scored_by_name("probability", found.astype(np.float32))
        return replace(state, candidates=probable, notes=notes)

    def _probabilities(self, state: SearchState) -> tuple[FloatArray, dict[str, object]]:
        scores = state.candidates.scores
        fitted = fitted_probabilities()
        found = scores["probability"].astype(np.float64)
        words_alone = "cosine" not in scores
        curve = fitted.curve_for(state.resources.embedder.identity, words_alone=words_alone)
        read = ~np.isnan(scores.get("reranker", np.full(len(found), np.nan, np.float32)))
        if curve is not None:
            unread = curve.probabilities(answer_features(state), FEATURES)
            found = np.where(read, found, unread)
        reader = state.resources.reranker
        if reader is None or not read.any():
            return found, {"curve": curve is not None}
        read_curve = None if curve is None else fitted.curve_for_reader(reader)
        if read_curve is not None:
            found[read] = read_curve.probabilities(read_features(state), READ_FEATURES)
        else:
            own = reranker_probabilities(reader, scores["reranker"])
            found = found if own is None else np.where(read, own, found)
        return found, {"curve": curve is not None, "reader_curve": read_curve is not None}
