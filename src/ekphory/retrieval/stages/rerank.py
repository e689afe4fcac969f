"""Stages 11 and 12: the reranker, where it is worth its time, and probabilities."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal

import numpy as np

from ekphory.errors import ModelError, ServiceError
from ekphory.models.embedder import EmbedderIdentity
from ekphory.models.reranker import (
    SMALL_RERANKER,
    TINY_RERANKER,
    RerankingModel,
    RerankPassage,
    RerankQuery,
    bundled_name,
    bundled_reranker,
    check_scores,
    find_stated_type,
    is_remote,
)
from ekphory.retrieval import calibration, gate
from ekphory.retrieval.calibration import READ_FEATURES, ProbabilityArray
from ekphory.retrieval.fusion import Blend, Float64Array, is_undecided, lift_odds, reranked
from ekphory.retrieval.lexical import long_share
from ekphory.retrieval.pipeline import (
    Candidates,
    KnownScores,
    Pipeline,
    SearchRequest,
    SearchState,
    Stage,
    read_candidates,
)
from ekphory.retrieval.query import is_question
from ekphory.retrieval.snapshot import ScopeSnapshot
from ekphory.store.protocol import IntArray, ScoreArray
from ekphory.types import EPOCH, MemoryRecord

# Stage 11: whether the reranker is worth its time for this query.


@dataclass(kw_only=True, eq=False)
class GateReranker(Stage):
    """Decides from the first stage's scores; as published, from how far the best cosines spread.

    Attributes:
        mode: As in `gate_decision`; `auto` takes the gate that was learned for the store's embedder
            and the reranker, and is left out where none was.
        thresholds: Where `hard` and `soft` see a tie and a clear winner.
        learned: The gate of `auto`; None for the package's own, which is read when it is needed.
    """

    number = 11
    name = "reranker gate"

    mode: gate.GateMode = "hard"
    thresholds: gate.GateThresholds = gate.PUBLISHED_THRESHOLDS
    learned: calibration.FittedGate | None = None

    def __post_init__(self) -> None:
        # What a learned gate reads is known when it runs: a search by words alone has no cosine.
        self.needs = frozenset({"probability" if self.mode == "auto" else "cosine"})

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to decide without candidates, a reranker, or for `auto` a learned gate."""
        reranker = state.resources.reranker
        if reranker is None:
            return "no reranker"
        if self.mode == "auto" and self._learned(state) is None:
            embedder = state.resources.embedder.identity.name
            return f"no gate was learned for {reranker.name} with {embedder}"
        return super().skip_reason(state)

    def run(self, state: SearchState) -> SearchState:
        """Decide; the candidates stay as they are."""
        decision = self._decision(state)
        return replace(state, gate=decision, notes={"decision": decision.reason})

    def _decision(self, state: SearchState) -> gate.GateDecision:
        scores = state.candidates.scores
        learned = self._learned(state)
        if learned is not None:
            return learned.decide(gate.gate_feature(learned.feature, scores))
        cosine = np.sort(scores.get("cosine", ()))[::-1].tolist()
        mode = "off" if self.mode == "auto" else self.mode
        return gate.gate_decision(cosine, mode=mode, thresholds=self.thresholds)

    def _learned(self, state: SearchState) -> calibration.GateBand | None:
        """Return the gate for the models of this search; None where it has none."""
        reranker = state.resources.reranker
        if self.mode != "auto" or reranker is None:
            return None
        return self.learned_for(state.resources.embedder.identity, reranker)

    def learned_for(
        self, embedder: EmbedderIdentity, reranker: RerankingModel
    ) -> calibration.GateBand | None:
        """Return the gate that `auto` takes for two models; None where none was learned.

        Raises:
            ModelError: The gate was learned with another revision of one of them.
        """
        fitted = self.learned or calibration.bundled_gate(reranker)
        return None if fitted is None else fitted.band_for(embedder, reranker)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateStatus:
    """What decides whether the reranker of a search runs, and what was decided.

    Attributes:
        preset: Whose gate it is.
        mode: `off`, `hard`, `soft` or `auto`; None where the preset has no gate.
        thresholds: Of `hard` and `soft`: between them, both included, the reranker helps.
        learned: The gate that was learned for the two models, which `auto` takes; None for none.
        embedder: The model of the first stage.
        reranker: The one of these searches; None where there is none. A preset may have a quicker
            one read in its place.
        decided: How often it decided what, by the beginning of its reason, such as
            `hard-gate-pass`; of the searches that were recorded in this organisation and project.
    """

    preset: str
    mode: gate.GateMode | None = None
    thresholds: gate.GateThresholds | None = None
    learned: calibration.GateBand | None = None
    embedder: str
    reranker: str | None = None
    decided: Mapping[str, int]

    def in_words(self) -> list[str]:
        """Return it as sentences."""
        return [self._mode_in_words(), self._learned_in_words(), self._decided_in_words()]

    def _mode_in_words(self) -> str:
        if self.mode is None:
            return f"{self.preset} has no gate: whatever reranker it has runs for every query."
        told = f"{self.preset} has the gate {self.mode}"
        if self.thresholds is None:
            return f"{told}."
        does = "reranks where" if self.mode == "hard" else "weights the first stage by how far"
        band = f"{self.thresholds.low:g} to {self.thresholds.high:g}"
        return f"{told}, which {does} the best {gate.NEAREST} cosines spread: {band}."

    def _learned_in_words(self) -> str:
        models = f"{self.reranker or 'no reranker'} with {self.embedder}"
        if self.learned is None:
            return f"The mode auto has no gate that was learned for {models}."
        low, high = self.learned.thresholds.low, self.learned.thresholds.high
        band = f"{self.learned.feature} is from {low:g} to {high:g}"
        return f"The mode auto would rerank where {band}, as was learned for {models}."

    def _decided_in_words(self) -> str:
        if not self.decided:
            return "No decision is recorded."
        told = ", ".join(f"{reason} {count:,}" for reason, count in sorted(self.decided.items()))
        return f"Decided in recorded searches: {told}."


def gate_status(
    pipeline: Pipeline,
    embedder: EmbedderIdentity,
    reranker: RerankingModel | None,
    *,
    decided: Mapping[str, int],
) -> GateStatus:
    """Return what the gate of a pipeline would do with two models, and has done.

    Raises:
        ModelError: The gate was learned with another revision of one of them.
    """
    gates = (stage for stage in pipeline.stages if isinstance(stage, GateReranker))
    found = next(gates, None)
    stage = GateReranker(mode="auto") if found is None else found
    has_thresholds = found is not None and found.mode in ("hard", "soft")
    return GateStatus(
        preset=pipeline.name,
        mode=None if found is None else found.mode,
        thresholds=stage.thresholds if has_thresholds else None,
        learned=None if reranker is None else stage.learned_for(embedder, reranker),
        embedder=embedder.model_id,
        reranker=None if reranker is None else reranker.name,
        decided=decided,
    )


# What stage 12 gives a reranker: the question with its context, the memories with their turns.


def make_query(request: SearchRequest, text: str) -> RerankQuery:
    """Return the question in this wording, with the dialogue before it and its moment."""
    now = EPOCH + timedelta(microseconds=request.now)
    return RerankQuery(text, context=request.context, now=now)


def read_passages(
    state: SearchState, *, most: int | None = None
) -> tuple[Candidates, list[RerankPassage]]:
    """Read the first candidates together with the turns before and after them, in one take.

    Returns:
        As `read_candidates`, with passages in place of records.
    """
    head = state.candidates.rows[:most]
    wanted = np.unique(np.concatenate([head, *_neighbours(state, head)]))
    keys = state.snapshot.columns.key[wanted[wanted >= 0]].tolist()
    found = state.resources.records(keys)
    candidates, records = read_candidates(state, most=most)
    before, after = _neighbours(state, candidates.rows[: len(records)])
    passages = [
        RerankPassage(
            record.indexed_text,
            before=_text(state, found, int(before[place])),
            after=_text(state, found, int(after[place])),
            at=record.at,
            type=find_stated_type(record),
        )
        for place, record in enumerate(records)
    ]
    return candidates, passages


def _neighbours(state: SearchState, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Rows of the turns before and after that have not expired; -1 where there is none."""
    neighbours, alive = state.snapshot.neighbours, state.snapshot.alive(state.request.now)
    before, after = neighbours.previous[rows], neighbours.following[rows]
    return np.where(alive[before], before, -1), np.where(alive[after], after, -1)


def _text(state: SearchState, found: Mapping[int, MemoryRecord], row: int) -> str | None:
    record = found.get(int(state.snapshot.columns.key[row])) if row >= 0 else None
    return None if record is None else record.indexed_text


# Asking a reranker about many passages, in batches of like lengths and within a time budget.


def score_relevance(
    reranker: RerankingModel,
    query: RerankQuery,
    passages: Sequence[RerankPassage],
    *,
    seconds: float | None,
    known: KnownScores | None = None,
) -> Float64Array:
    """Score passages in [0, 1], NaN for those that the time did not suffice for.

    The first batch is always scored, and tells how many more can be. A padded batch costs what its
    longest passage costs, so passages of like lengths go together.

    Args:
        reranker: The model.
        query: What is asked.
        passages: The likeliest first: they come before the others.
        seconds: Time to spend; None for as long as it takes.
        known: What was scored before, which is not scored again; gets the other scores.

    Raises:
        ModelError: The reranker gave something else than one number in [0, 1] for each passage.
        ServiceError: It is a service, and failed.
    """
    known = {} if known is None else known
    keys = [(reranker.name, query, passage) for passage in passages]
    scores = np.array([known.get(key, np.nan) for key in keys])
    unread = np.flatnonzero(np.isnan(scores)).tolist()
    for batch in _batches_in_time(reranker, passages, unread, seconds=seconds):
        scores[batch] = _score(reranker, query, [passages[place] for place in batch])
        known.update((keys[place], float(scores[place])) for place in batch)
    return scores


def _batches_in_time(
    reranker: RerankingModel,
    passages: Sequence[RerankPassage],
    places: Sequence[int],
    *,
    seconds: float | None,
) -> Iterator[list[int]]:
    """Yield batches to score, until the time is spent between the one and the next."""
    started = time.perf_counter()
    size = max(1, reranker.batch_size)
    first = size if seconds is not None else len(places)
    yield from _batches(passages, places[:first], size)
    if seconds is None:
        return
    spent = time.perf_counter() - started
    affordable = size * int((seconds - spent) / max(spent, 1e-9)) if spent < seconds else 0
    for batch in _batches(passages, places[first : first + affordable], size):
        if time.perf_counter() - started > seconds:
            return
        yield batch


def _score(
    reranker: RerankingModel, query: RerankQuery, passages: Sequence[RerankPassage]
) -> Float64Array:
    return check_scores(reranker.score(query, passages), count=len(passages))


def _batches(
    passages: Sequence[RerankPassage], places: Sequence[int], size: int
) -> list[list[int]]:
    by_length = sorted(places, key=lambda place: len(passages[place].text))
    return [by_length[start : start + size] for start in range(0, len(by_length), size)]


# How a query is worded for it.
#
# Source: `normalizeQueryForReranker` in kleinpanic/memory-spark, `src/rerank/reranker.ts`.

_SENTENCE_END = re.compile(r"\.\s*$")


def as_question(query: str) -> str:
    """Turn a statement into a question, which rerankers trained on questions tell apart better."""
    stated = query.strip()
    if not stated or is_question(stated):
        return query
    claim = _SENTENCE_END.sub("", stated)
    return f"Is it true that {claim[:1].lower()}{claim[1:]}?"


# Stage 12: a model that reads the query together with each of the best candidates.

PUBLISHED_BLEND = Blend()

# Below it the bundled rerankers' differences are noise: rare among fifty, common among a few.
_BUNDLED_LEAST_SPREAD = 2.0
# The first stage's among passages of 100 terms and more. On documents every bit of the bundled
# rerankers made its order worse; among an assistant's messages half was best (docs/LOG.md, 32).
_LONG_TURNS_SHARE = 0.5
# The mean terms of passages that are no turns from which on the rerankers count less, and from
# which on they count least: statements they read well. Of paragraphs they are asked which belongs
# to a statement; a question may need several, and what only leads on they read as no answer
# (docs/LOG.md, 46, 60 and 61).
_STATEMENT, _PARAGRAPH = 20.0, 50.0
_STATED_SHARE = 0.7
_LEAVES_NOTHING = 0.95
_TIME_BOOSTS = ("boost_time", "boost_telling")


@dataclass(frozen=True, kw_only=True, eq=False)
class Rerank(Stage):
    """Orders the best candidates by their first-stage order and the reranker's scores together.

    All of them get a score. The others follow in the first stage's order: those after them, those
    that time did not suffice for, and all where the reranker fails; then the stage is degraded.

    The bundled rerankers learned from turns of conversations: blended by scores, they weigh the
    less the longer the scope's passages are, long turns half; paragraphs of documents they read
    for a statement and leave to the first stage for a question, which may need several of them. A
    quick one alone does not read them: that costs more than it gains.
    Where all their logits lie within 2, the first stage's order stays.

    No reranker compares the time that a query names with a memory's, so where scores are blended,
    what lies in that time has the odds of its score multiplied as its ranking was.

    Attributes:
        candidates: How many of the best are read.
        blend: How order and scores become one.
        seconds: Time to spend on reading; None for as long as it takes.
        query_form: Whether statements are put to the reranker as questions.
        boosts: When pools, importance and age move the candidates: `before` the reranker; or `as
            asked`, which is after it where the query asks for what is important, since no reranker
            sees that in a text.
        asks: Whether any reranker is asked, or only a quick one: in the place of a service and of
            `ekphory-rerank-small` the bundled `ekphory-rerank-tiny`, beside the bundled embedder
            alone. Another embedder may be for other languages, and this one reads English. With
            `quick first` the quick one stands in for `ekphory-rerank-small` alone, and
            `RerankAgain` comes after it.
        quick_candidates: How many a quick one reads with `quick first`.
    """

    number = 12
    name = "rerank"
    needs = frozenset({"probability"})
    gives = frozenset({"reranked"})

    candidates: int = 30
    blend: Blend = PUBLISHED_BLEND
    seconds: float | None = None
    query_form: Literal["as asked", "question"] = "as asked"
    boosts: Literal["before", "as asked"] = "before"
    asks: Literal["any", "quick", "quick first"] = "any"
    quick_candidates: int = 40

    def skip_reason(self, state: SearchState) -> str | None:
        """No reranker, no candidates, a gate that is shut, or a time that is all that is asked."""
        reason = self._reason(state)
        if reason is not None and state.request.context:
            return f"{reason}; none reads the context"
        return reason

    def _reader(self, state: SearchState) -> RerankingModel | None:
        reranker = state.resources.reranker
        if self.asks == "quick" and reranker is not None:
            is_slow = is_remote(reranker) or bundled_name(reranker) == SMALL_RERANKER
        else:
            is_slow = self.asks == "quick first" and _has_quick_one(state)
        return bundled_reranker(TINY_RERANKER) if is_slow else reranker

    def _most(self, state: SearchState) -> int:
        is_first = self.asks == "quick first" and _has_quick_one(state)
        return self.quick_candidates if is_first else self.candidates

    def _reason(self, state: SearchState) -> str | None:
        reranker = self._reader(state)
        if reranker is None:
            return "no reranker"
        stands_in = reranker is not state.resources.reranker
        if stands_in and not _is_bundled_embedder(state):
            return f"{reranker.name} reads beside the bundled embedder alone"
        if self._blend(state).first_stage_share >= _LEAVES_NOTHING:
            return "documents are read for statements alone, and not by a quick reranker alone"
        if state.reading is not None and state.reading.only_time:
            return "the query asks for a time alone"
        if state.gate is not None and not state.gate.rerank:
            return state.gate.reason
        return super().skip_reason(state)

    def run(self, state: SearchState) -> SearchState:
        """Read the best candidates and order them anew."""
        reranker = self._reader(state)
        if reranker is None:
            return state
        candidates, passages = read_passages(self._unboosted(state), most=self._most(state))
        text = as_question(state.text) if self.query_form == "question" else state.text
        query = make_query(state.request, text)
        try:
            known = state.resources.known_scores
            read = score_relevance(reranker, query, passages, seconds=self.seconds, known=known)
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
            first, factors = scored.ranking.astype(np.float64), boost.astype(np.float64)
            lifted = lift_odds(scores, self._lift_before(scored, state))
            blended = reranked(first, lifted, blend, gate_weight=weight, boost=factors)
            ranking = blended.astype(np.float32)
        order = state.order if blend.method == "scores" else "ranks"
        told = replace(state, reader=reranker, notes=notes, degraded=degraded)
        return replace(told, candidates=scored.ranked(ranking), order=order)

    def _blend(self, state: SearchState) -> Blend:
        reranker = state.resources.reranker
        is_bundled = reranker is not None and bundled_name(reranker) is not None
        if self.blend.method != "scores" or not is_bundled:
            return self.blend
        own, snapshot = self.blend.first_stage_share, state.snapshot
        long = long_share(snapshot.lexical.mean_length)
        of_turns = own + max(0.0, _LONG_TURNS_SHARE - own) * long
        leaves_paragraphs = self.asks == "quick" or is_question(state.text)
        of_paragraphs = 1.0 if leaves_paragraphs else _STATED_SHARE
        of_others = own + (of_paragraphs - own) * _paragraph_share(snapshot)
        turns = snapshot.turn_share
        share = turns * of_turns + (1.0 - turns) * of_others
        return replace(self.blend, first_stage_share=share, least_spread=_BUNDLED_LEAST_SPREAD)

    def _boosts_after(self, state: SearchState) -> bool:
        asked_for = state.query_class is not None and state.query_class.hints.importance > 0
        return self.boosts == "as asked" and asked_for

    def _boost_after(self, candidates: Candidates, state: SearchState) -> ScoreArray:
        boost = candidates.scores.get("boost") if self._boosts_after(state) else None
        return np.ones(len(candidates), np.float32) if boost is None else boost

    def _lift_before(self, candidates: Candidates, state: SearchState) -> Float64Array:
        """Return by what the odds of scores are multiplied; 1 where all boosts come after."""
        comes_after = self.blend.method != "scores" or self._boosts_after(state)
        return candidates.lift_of(*(() if comes_after else _TIME_BOOSTS))

    def _unboosted(self, state: SearchState) -> SearchState:
        boost = state.candidates.scores.get("boost")
        if boost is None or not self._boosts_after(state):
            return state
        unboosted = np.asarray(state.candidates.ranking / boost, np.float32)
        return replace(state, candidates=state.candidates.ranked(unboosted))


@dataclass(frozen=True, kw_only=True, eq=False)
class RerankAgain(Rerank):
    """Has `ekphory-rerank-small` read the best of those that a quick reranker has put in order.

    The two err on different questions: the order that both make is better than that of either over
    many more candidates, and takes less time (docs/LOG.md, 52).
    """

    name = "rerank again"

    candidates: int = 12

    def skip_reason(self, state: SearchState) -> str | None:
        """No quick reranker has read in the place of the search's own."""
        reader = state.reader
        if reader is None or reader is state.resources.reranker or not _has_quick_one(state):
            return "no quicker reranker has read before"
        return super().skip_reason(state)


def _paragraph_share(snapshot: ScopeSnapshot) -> float:
    """Return how far memories other than turns are paragraphs: 0 for statements, 1 for those."""
    beyond = (snapshot.lexical.mean_length - _STATEMENT) / (_PARAGRAPH - _STATEMENT)
    return min(1.0, max(0.0, beyond))


def read_at_least(pipeline: Pipeline, candidates: int) -> Pipeline:
    """Return a pipeline in which a quick reranker reads so many; the same where it does already."""
    stages = tuple(
        replace(stage, candidates=candidates, seconds=2.0)
        if isinstance(stage, Rerank) and stage.asks == "quick" and stage.candidates < candidates
        else stage
        for stage in pipeline.stages
    )
    if stages == pipeline.stages:
        return pipeline
    return Pipeline(pipeline.name, stages, summary=pipeline.summary)


def _are_documents(snapshot: ScopeSnapshot) -> bool:
    return (1.0 - snapshot.turn_share) * _paragraph_share(snapshot) >= _LEAVES_NOTHING


def _has_quick_one(state: SearchState) -> bool:
    reranker = state.resources.reranker
    is_small = reranker is not None and bundled_name(reranker) == SMALL_RERANKER
    return is_small and _is_bundled_embedder(state)


def _is_bundled_embedder(state: SearchState) -> bool:
    identity = state.resources.embedder.identity
    return calibration.fitted_probabilities().curve_for(identity, words_alone=False) is not None


# Stage 12, last part: the probability of each candidate, after everything that orders them.


class Calibrate(Stage):
    """Gives each candidate the probability that it answers, which falls along the list.

    The curves were fitted for the bundled embedder and reranker. With another embedder, or a
    reranker that has no curve, the probability is the one that earlier stages gave. What a bundled
    reranker read of documents orders them, and says nothing of their probability: the documents
    that its curve would be fitted on are those that it learned from. Where the order is not that of
    probability, it may rise along the list.
    """

    number = 12
    name = "calibrate"
    needs = frozenset({"probability"})
    gives = frozenset({"calibrated"})

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to do without candidates, or in a list that time orders."""
        if state.order == "time":
            return "the list is in the order of time, whose reading says how probable it is"
        return super().skip_reason(state)

    def run(self, state: SearchState) -> SearchState:
        """Put the probabilities in; the order stays."""
        candidates = state.candidates
        found, notes = self._probabilities(state)
        if state.order == "score":
            found = calibration.make_descending(found)
        probable = candidates.scored_by_name("probability", found.astype(np.float32))
        return replace(state, candidates=probable, notes=notes)

    def _probabilities(self, state: SearchState) -> tuple[ProbabilityArray, dict[str, object]]:
        scores = state.candidates.scores
        fitted = calibration.fitted_probabilities()
        found = scores["probability"].astype(np.float64)
        words_alone = "cosine" not in scores
        curve = fitted.curve_for(state.resources.embedder.identity, words_alone=words_alone)
        read = ~np.isnan(scores.get("reranker", np.full(len(found), np.nan, np.float32)))
        if curve is not None:
            unread = curve.probabilities(calibration.answer_features(state), calibration.FEATURES)
            found = np.where(read, found, unread)
        reader = state.reader
        # The curves of what a bundled one has read were fitted beside vectors.
        is_bundled = reader is not None and bundled_name(reader) is not None
        if is_bundled and curve is not None and _are_documents(state.snapshot):
            return unread, {"curve": True}
        if reader is None or (is_bundled and words_alone) or not read.any():
            return found, {"curve": curve is not None}
        read_curve = None if curve is None else fitted.curve_for_reader(reader)
        if read_curve is not None:
            found[read] = read_curve.probabilities(calibration.read_features(state), READ_FEATURES)
        else:
            own = calibration.reranker_probabilities(reader, scores["reranker"])
            found = found if own is None else np.where(read, own, found)
        return found, {"curve": curve is not None, "reader_curve": read_curve is not None}
