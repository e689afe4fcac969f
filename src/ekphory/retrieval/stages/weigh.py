"""Stages 6 to 10: one list, without repeats, boosted by importance, type, age and time."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ekphory.retrieval.pipeline import QueryClass, SearchState, Stage, places_of, read_candidates
from ekphory.scope import get_owner
from ekphory.store.ledger import FOREVER
from ekphory.store.protocol import ScoreArray
from ekphory.types import MemoryRecord, MemoryType, to_microseconds

# Texts that say the same in the same words: Jaccard similarity of their word sets.

Words = frozenset[str]


def words(text: str, *, shortest: int = 3) -> Words:
    """Return the distinct words of a text in lower case, without those shorter than `shortest`."""
    return frozenset(re.findall(rf"\b\w{{{shortest},}}\b", text.lower()))


def jaccard(first: Words, second: Words) -> float:
    """Return the share of words that two texts have in common; 1 where neither has any."""
    common = len(first & second)
    union = len(first) + len(second) - common
    return common / union if union else 1.0


def drop_near_duplicates(
    groups: Sequence[Hashable | None], texts: Sequence[Words], *, threshold: float
) -> list[int]:
    """Keep of each set of near duplicates within a group the one that comes first.

    Args:
        groups: Group of each text, best text first; None is compared with nothing.
        texts: Its words, as parallel sequence.
        threshold: A similarity above this makes two texts near duplicates.

    Returns:
        Places of those that are kept, ascending.
    """
    kept: dict[Hashable, list[Words]] = {}
    places: list[int] = []
    for place, (group, text) in enumerate(zip(groups, texts, strict=True)):
        others = [] if group is None else kept.setdefault(group, [])
        if not any(_exceeds(text, other, threshold) for other in others):
            others.append(text)
            places.append(place)
    return places


def _exceeds(first: Words, second: Words, threshold: float) -> bool:
    smaller, larger = sorted((len(first), len(second)))
    # No more is common than the smaller set, and no fewer are in the union than the larger one.
    if larger and smaller / larger <= threshold:
        return False
    return jaccard(first, second) > threshold


# Lifts the memories that a query's words ask for: by importance, and by type.

_TYPES = ("episodic", "semantic", "procedural")
_TYPE_BOUND = 0.03
_IMPORTANCE_STRENGTH = 3.0


def type_importance_boost(
    query_class: QueryClass | None, types: ArrayLike, importances: ArrayLike
) -> NDArray[np.float32]:
    """Compute one factor a candidate; exactly 1 without hints.

    The factor is (1 + .03·t) · exp(3·i·(2·importance - 1)): t is the hint for the candidate's own
    type, 0 for the type `unknown`; i is the hint for importance, and an importance of .5 is
    neutral. Who asks for what is most important wants it before what fits the other words better,
    so the lift must reach over several times the probability. The type decides only between what
    is about equally likely: a stronger lift cost wherever it was measured, since most types are a
    model's guess. `ekphory eval cues` measures both numbers (docs/LOG.md, 23, 33 and 52).

    Args:
        query_class: What the query was found to be; None is without hints.
        types: Memory types, shape (candidates,).
        importances: In [0, 1], shape (candidates,).
    """
    kinds, weights = np.asarray(types), np.asarray(importances, np.float32)
    if query_class is None or not query_class.hints.given:
        return np.ones(kinds.shape, np.float32)
    hints = query_class.hints
    by_type = np.zeros(kinds.shape, np.float32)
    for kind, hint in zip(_TYPES, (hints.episodic, hints.semantic, hints.procedural), strict=True):
        by_type += _TYPE_BOUND * hint * (kinds == kind)
    by_importance = np.exp(_IMPORTANCE_STRENGTH * hints.importance * (2 * weights - 1))
    return np.asarray((1 + by_type) * by_importance, np.float32)


# Stage 6: the pools' findings as one list, in which every memory stands once.


class MergePools(Stage):
    """Keeps each memory once, with its best ranking.

    The pools were scored on one scale, so the list needs no scaling pool by pool, which would let
    the best of an irrelevant pool tie with the best of all.
    """

    number = 6
    name = "merge pools"
    needs = frozenset({"candidates"})

    def run(self, state: SearchState) -> SearchState:
        """Merge, and note how many candidates each pool gave."""
        snapshot, ordered = state.snapshot, state.candidates.sorted()
        _, first = np.unique(ordered.rows, return_index=True)
        merged = ordered.take(np.sort(first))
        counts = np.bincount(snapshot.pool_codes[merged.rows], minlength=len(snapshot.pool_names))
        named = zip(snapshot.pool_names.tolist(), counts.tolist(), strict=True)
        notes = {pool: count for pool, count in named if count}
        return replace(state, candidates=merged, notes=notes)


# Stage 7: near-identical passages of one source count once.


@dataclass(frozen=True, kw_only=True, eq=False)
class SourceDedup(Stage):
    """Of passages of one source whose words are nearly the same keeps the best.

    A memory's source is its parent, else its path, else its source, of one owner. A memory that
    has none of them was said, not copied: that somebody says the same again is an event of its own,
    so it is compared with nothing.

    Attributes:
        threshold: Jaccard similarity of the words above which two passages are one.
        among: How many of the best candidates are compared; the others are kept.
    """

    number = 7
    name = "source dedup"
    needs = frozenset({"probability"})

    threshold: float = 0.85
    among: int = 100

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing repeats a single candidate."""
        return None if len(state.candidates) > 1 else "fewer than two candidates"

    def run(self, state: SearchState) -> SearchState:
        """Drop the repetitions."""
        candidates, records = read_candidates(state, most=self.among)
        kept = drop_near_duplicates(
            [_origin(record) for record in records],
            [words(record.text) for record in records],
            threshold=self.threshold,
        )
        places = places_of(kept, read=len(records), total=len(candidates))
        notes = {"dropped": len(candidates) - len(places)}
        return replace(state, candidates=candidates.take(places), notes=notes)


def _origin(record: MemoryRecord) -> Hashable | None:
    for name in ("parent_id", "path", "source"):
        value = getattr(record, name)
        if value:
            return get_owner(record), name, value
    return None


# Stage 8: where a memory stands, and how much it matters, lift or lower it.

PUBLISHED_POOL_WEIGHTS: Mapping[str, float] = {
    "agent_memory": 1.0,
    "agent_mistakes": 1.6,
    "shared_mistakes": 1.6,
    "shared_knowledge": 0.8,
    "shared_rules": 1.0,
}
"""The weights that Memory-Spark publishes (kleinpanic/memory-spark, landing page)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginWeights:
    """Weights of where a memory comes from; what is not named weighs 1.

    Attributes:
        sources: By the memory's `source`; `capture` also holds for what was captured.
        paths: By its whole `path`.
        path_parts: By a part of its path, in any case, for a path that is not in `paths`; the
            first that fits counts.
    """

    sources: Mapping[str, float] = field(default_factory=dict)
    paths: Mapping[str, float] = field(default_factory=dict)
    path_parts: Mapping[str, float] = field(default_factory=dict)

    def of(self, record: MemoryRecord) -> float:
        """Return the product of source and path weight."""
        weight = self.sources.get(_find_source(record), 1.0)
        path = record.path or ""
        if path in self.paths:
            return weight * self.paths[path]
        found = (factor for part, factor in self.path_parts.items() if part.lower() in path.lower())
        return weight * next(found, 1.0)


CAPTURED = "capture"
_CAPTURES = frozenset(("class", "evidence"))
"""Metadata that every captured memory has."""
PUBLISHED_ORIGIN_WEIGHTS = OriginWeights(
    sources={CAPTURED: 1.5},
    paths={
        "MEMORY.md": 1.4,
        "TOOLS.md": 1.3,
        "AGENTS.md": 1.2,
        "SOUL.md": 1.2,
        "USER.md": 1.3,
        "memory/learnings.md": 0.1,
    },
    path_parts={"mistakes": 1.6, "memory/archive/": 0.4},
)
"""The defaults of Memory-Spark's `applySourceWeighting`, but for sources that nothing here writes:
of `memory` and `reference`, which weigh 1, and `sessions`, .5."""


def _find_source(record: MemoryRecord) -> str:
    """Return a memory's source; what was captured counts as that, whichever tool it came from."""
    return CAPTURED if record.metadata.keys() >= _CAPTURES else record.source or ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Weigh(Stage):
    """Multiplies the ranking by the weights of pool and origin, and by importance.

    Importance .5 is neutral, and so is one that a model predicted. A query that asks for what is
    important lifts that far more, and one that asks for some type a little, as
    `type_importance_boost` says. Only the order
    changes, never a hit's probability.

    Attributes:
        pool_weights: By pool; one that is not named weighs 1.
        origin_weights: By source and path; None reads no memory for them.
        bound: How far each of the weights may lift or lower; None sets no bound.
        importance: How far a given importance of 1 lifts and one of 0 lowers.
    """

    number = 8
    name = "weigh"
    needs = frozenset({"probability"})

    pool_weights: Mapping[str, float] = field(default_factory=lambda: PUBLISHED_POOL_WEIGHTS)
    origin_weights: OriginWeights | None = None
    bound: float | None = 0.1
    importance: float = 0.1

    def run(self, state: SearchState) -> SearchState:
        """Weigh and order anew."""
        snapshot, candidates = state.snapshot, state.candidates
        names = snapshot.pool_names.tolist()
        by_pool = self._bounded([self.pool_weights.get(name, 1.0) for name in names])
        factors: dict[str, ScoreArray] = {}
        if self.origin_weights is not None:
            candidates, records = read_candidates(state)
            weights = [self.origin_weights.of(record) for record in records]
            factors["origin"] = self._bounded(weights)
        rows = candidates.rows
        factors["pool"] = by_pool[snapshot.pool_codes[rows]]
        importance = snapshot.columns.importance[rows]
        # What a model predicted of a text weighs only where the query asks for it.
        own = np.where(snapshot.columns.importance_given[rows], 2 * importance - 1, 0)
        factors["importance"] = np.asarray(1 + self.importance * own, np.float32)
        if state.query_class is not None:
            types = snapshot.columns.type[rows]
            factors["asked"] = type_importance_boost(state.query_class, types, importance)
        boosted = candidates.boosted(**factors)
        return replace(state, candidates=boosted, notes={"bound": self.bound})

    def _bounded(self, weights: list[float]) -> ScoreArray:
        given = np.array(weights, np.float32)
        if self.bound is None:
            return given
        return np.clip(given, 1 - self.bound, 1 + self.bound)


# Stage 9: what happened long ago ranks a little lower, unless it is a fact or a how-to.

MICROSECONDS_A_DAY = 86_400_000_000


def decay_factors(
    age_days: NDArray[np.float64], *, floor: float = 0.8, rate: float = 0.03
) -> NDArray[np.float32]:
    """Compute floor + (1 - floor)·exp(-rate·age); 1 for what lies ahead.

    Source: Memory-Spark's `applyTemporalDecay`, floor .8 and rate .03 a day.
    """
    ages = np.maximum(age_days, 0)
    return np.asarray(floor + (1 - floor) * np.exp(-rate * ages), np.float32)


@dataclass(frozen=True, kw_only=True, eq=False)
class Decay(Stage):
    """Multiplies the ranking by a factor in [floor, 1] that falls with age, by memory type.

    Age is counted from when it happened (`at`), not from when a file was last written.

    Attributes:
        floor: The factor that the oldest memory keeps.
        rate: How fast it falls, a day.
        fading: Types of memory that fade at all.
    """

    number = 9
    name = "decay"
    needs = frozenset({"probability"})

    floor: float = 0.9
    rate: float = 0.03
    fading: tuple[MemoryType, ...] = ("episodic", "unknown")

    def run(self, state: SearchState) -> SearchState:
        """Age the candidates and order anew."""
        candidates, columns = state.candidates, state.snapshot.columns
        age = (state.request.now - columns.at[candidates.rows]) / MICROSECONDS_A_DAY
        factors = decay_factors(age, floor=self.floor, rate=self.rate)
        fading = np.isin(columns.type[candidates.rows], self.fading)
        boosted = candidates.boosted(age=np.where(fading, factors, np.float32(1)))
        notes = {"floor": self.floor, "rate": self.rate, "fading": int(fading.sum())}
        return replace(state, candidates=boosted, notes=notes)


# Stage 9, second part: what lies in the time that the query names ranks higher.


@dataclass(frozen=True, kw_only=True, eq=False)
class FavourTime(Stage):
    """Multiplies the ranking of what lies in the time named, if the query asks for more than it.

    A state that held then, as revisions say, lies in the time too, whenever it was told.

    Attributes:
        strength: The factor is 1 + strength times the confidence of the reading.
        told: The share of that for what was told within three days after the time.
    """

    number = 9
    name = "favour time"
    needs = frozenset({"timed", "probability"})

    strength: float = 14.0
    told: float = 0.5

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to favour without a time, or where the time is all."""
        if state.timed is None or state.reading is None:
            return "the query names no time"
        if state.reading.only_time:
            return "the query asks for the time alone"
        return super().skip_reason(state)

    def run(self, state: SearchState) -> SearchState:
        """Lift and order anew."""
        if state.timed is None:
            return state
        rows = state.candidates.rows
        confidence, told = state.timed.confidence[rows], state.timed.told[rows]
        confidence = np.maximum(confidence, _held_then(state))
        factors = np.asarray(1 + self.strength * (confidence + self.told * told), np.float32)
        by_time = np.where(confidence > 0, factors, np.float32(1))
        by_telling = np.where(confidence > 0, np.float32(1), factors)
        boosted = state.candidates.boosted(time=by_time, telling=by_telling)
        notes = {"strength": self.strength, "inside": int(np.count_nonzero(confidence))}
        return replace(state, candidates=boosted, notes=notes)


def _held_then(state: SearchState) -> ScoreArray:
    """Return how sure it is that each candidate is a state that held in the time named.

    What was told before that time held in it if a revision ended it later, or it revised what was
    told before. A state that held for a part of the time counts by that part.
    """
    rows = state.candidates.rows
    held, sure = np.zeros(len(rows), np.float32), np.zeros(len(rows))
    begins, ends = state.snapshot.columns.at[rows], np.full(len(rows), FOREVER)
    for link in state.links.of_rows(rows.tolist()):
        if link.kind in ("replaces", "ends"):
            ends = np.where(rows == link.older, np.minimum(ends, link.since), ends)
            named = (rows == link.older) | (rows == link.newer)
            sure = np.where(named, np.maximum(sure, link.probability), sure)
    if not sure.any() or state.reading is None or state.request.superseded == "ignore":
        return held
    for reference in state.reading.references:
        interval = reference.interval
        if reference.kind == "interval" and interval and interval.start and interval.end:
            first, last = to_microseconds(interval.start), to_microseconds(interval.end)
            common = np.minimum(ends, last) - np.maximum(begins, first)
            share = np.clip(common / (last - first), 0, 1)
            held = np.maximum(held, reference.confidence * sure * share).astype(np.float32)
    return held


# Stage 9, last part: a query for a time alone gets what happened then, in order.


class ListTime(Stage):
    """Puts the memories in the time named first, in order, if the query asks for nothing else.

    Such a memory answers if the words were read rightly, so its probability becomes the
    confidence of the reading. Any other one answers only if they were not, so its own
    probability is multiplied with the rest of that confidence. Reranking and diversifying are
    skipped then, so the order lasts.
    """

    number = 9
    name = "list time"
    needs = frozenset({"timed", "probability"})

    def skip_reason(self, state: SearchState) -> str | None:
        """Only a query for a time alone is answered by a list."""
        if state.timed is None or state.reading is None or not state.reading.only_time:
            return "the query asks for no time alone"
        return super().skip_reason(state)

    def run(self, state: SearchState) -> SearchState:
        """Order anew, and say how probable each is."""
        candidates, timed, reading = state.candidates, state.timed, state.reading
        if timed is None or reading is None:
            return state
        confidence = timed.confidence[candidates.rows]
        surest = max((each.confidence for each in reading.references), default=0.0)
        others = candidates.scores["probability"] * np.float32(1 - surest)
        probability = np.where(confidence > 0, confidence, others).astype(np.float32)
        scores = {**candidates.scores, "time": confidence, "probability": probability}
        place_of = np.full(len(state.snapshot), len(timed.rows), np.int64)
        place_of[timed.rows] = np.arange(len(timed.rows))
        order = np.argsort(place_of[candidates.rows], kind="stable")
        listed = replace(candidates, scores=scores).in_order(order)
        notes = {"first": int(np.count_nonzero(confidence))}
        return replace(state, candidates=listed, notes=notes, order="time")


# Stage 10: the best candidate ranks at 1.


class Normalise(Stage):
    """Divides the ranking by its largest value; order and probabilities stay as they are."""

    number = 10
    name = "normalise"
    needs = frozenset({"probability"})

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to divide by without a positive value."""
        if not len(state.candidates):
            return "no candidates"
        return None if state.candidates.ranking[0] > 0 else "the best ranking is not above 0"

    def run(self, state: SearchState) -> SearchState:
        """Scale the ranking."""
        candidates = state.candidates
        scaled = candidates.ranked(candidates.ranking / candidates.ranking[0])
        return replace(state, candidates=scaled)
