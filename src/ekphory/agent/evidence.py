"""Evidence over notes and chats: which memory leads on from which, and what was fitted for it.

A memory that belongs to the answer names what the next one is about. So every memory of the
evidence asks twice more: by meaning, with the question before its text, and by the names that it
adds to the question. What these lookups and the question's own found is weighed by a logistic
regression over its features, of which one is what the bundled reranker reads. It and the gate,
which says whether a question needs several memories at all, were fitted on written questions by
`ekphory train hops`. Nothing in it knows a relation.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ekphory.agent.provider import LONGEST_QUERY, QueryRefused, SearchTool
from ekphory.agent_trace import BRANCH
from ekphory.errors import ModelError, ServiceError
from ekphory.models.reranker import RerankingModel, RerankPassage, RerankQuery, log_odds
from ekphory.retrieval.asked_state import question_features
from ekphory.retrieval.calibration import FITTED, read_fitted
from ekphory.retrieval.lexical import TermArray, passage_terms, query_terms
from ekphory.types import Hit

FloatArray = NDArray[np.float64]


# Names in a text, and what it shares with another.

_CAPITAL = r"[A-ZÀ-ÖØ-ÞĀ-Ž](?:[\w'’-]*\w|\.)?"
_PARTICLE = "of|the|de|da|di|du|del|della|der|den|des|van|von|la|le|el|al|bin|ibn|y|and"
_NAME = re.compile(rf"{_CAPITAL}(?:[ -](?:(?:{_PARTICLE}) ){{0,2}}{_CAPITAL})*")
_WORD = re.compile(r"[^\W_]+(?:[-’'][^\W_]+)*")
_POSSESSIVE = re.compile(r"['’]s$")
_MOST_CHARACTERS = 2000
"""So much of a memory is read."""
_ASKED_WITH = 400
"""So much of a memory is asked with."""
_MOST_NAMES = 8
_AROUND = 40
"""Characters around a name in which words of the question count as near."""


@dataclass(frozen=True, slots=True)
class NewName:
    """A name that a memory adds to the question.

    Attributes:
        text: As written.
        terms: Its terms.
        nearness: How many of the question's words stand around it.
    """

    text: str
    terms: frozenset[int]
    nearness: int


def find_new_names(text: str, question: str) -> list[NewName]:
    """Return names of a text that the question does not hold, each once, in order."""
    asked = set(query_terms(question).tolist())
    found: dict[frozenset[int], NewName] = {}
    for match in _NAME.finditer(text[:_MOST_CHARACTERS]):
        written = _POSSESSIVE.sub("", match[0])
        terms = frozenset(query_terms(written).tolist())
        if not terms or terms <= asked or terms in found:
            continue
        around = text[max(0, match.start() - _AROUND) : match.end() + _AROUND]
        nearness = len(asked.intersection(query_terms(around).tolist()) - terms)
        found[terms] = NewName(written, terms, nearness)
    return list(found.values())


# The weights.

HOPS_KIND = "hops"
HOPS_FILE = FITTED / "hops.json"
FEATURES = (
    *("log odds", "place", "meaning", "bridge", "held", "open"),
    *("shared", "rarest", "titled", "near", "beside", "session", "speaker"),
)
"""Of a candidate: how far its log-odds in plain search lie below the best; the logarithm of its
place there; reciprocal places in the two lookups of the evidence; the share of the question's terms
that it holds, and that the chain lacks and it holds; how far its terms are those that the evidence
adds to the question, and the rarest of these; whether it begins with a name of the evidence, and
how near this stands to words of the question; whether it was said within three turns of the
evidence, or in its session, and by whoever said the first hit."""
READ_FEATURES = (*FEATURES, "read", "was read")
"""Those, and the log-odds of a reranker that reads it behind the question and the last memory."""


@dataclass(frozen=True, slots=True)
class ChainWeights:
    """What was fitted for choosing the memories of a chain.

    Attributes:
        hop: By `FEATURES` or `READ_FEATURES`, what each adds to the log-odds that a memory belongs
            to the answer; `intercept` among them.
        hop_curve, chain_curve: Slope and intercept that make the log-odds of what was chosen, and
            of a whole chain, probabilities.
    """

    hop: Mapping[str, float]
    hop_curve: tuple[float, float] = (1.0, 0.0)
    chain_curve: tuple[float, float] = (1.0, 0.0)

    def odds(self, features: FloatArray, names: Sequence[str]) -> FloatArray:
        """Return the log-odds of candidates with these features, shape (candidates,)."""
        weights = np.array([self.hop.get(name, 0.0) for name in names])
        return np.asarray(features @ weights + self.hop.get("intercept", 0.0))


@dataclass(frozen=True, slots=True)
class HopWeights:
    """What was fitted.

    Attributes:
        gate: By word or pair of a question, and by `GATE_NUMBERS`, what it adds to the log-odds
            that several memories are needed; `intercept` among them.
        unread: What chooses where no reranker reads the candidates.
        read: What chooses where the bundled one does; None where it is not to.
        follow: Probability from which the gate lets a question be followed.
        stop: Probability of a hop below which nothing more is followed.
    """

    gate: Mapping[str, float]
    unread: ChainWeights
    read: ChainWeights | None = None
    follow: float = 0.5
    stop: float = 0.2


@cache
def read_weights(path: Path = HOPS_FILE) -> HopWeights:
    """Read the weights that come with ekphory.

    Raises:
        ModelError: The file is missing, or holds something else.
    """
    values = dict(read_fitted(path, kind=HOPS_KIND).values)
    for name in ("unread", "read"):
        given = values[name]
        curves = {each: tuple(given[each]) for each in ("hop_curve", "chain_curve")}
        values[name] = ChainWeights(given["hop"], **curves)
    return HopWeights(**values)


def sigmoid(value: float) -> float:
    """Return the probability of these log-odds."""
    return 1 / (1 + math.exp(-max(-50.0, min(50.0, value))))


# Whether a question needs several memories at all.

GATE_NUMBERS = ("= best", "= lead", "= spread", "= held", "= held by three")
"""The log-odds of the first hit, its lead over the second and over the fifth, and the share of the
question's terms that the first hit and the first three hold."""


def gate_features(question: str, hits: Sequence[Hit]) -> dict[str, float]:
    """Return what the gate decides by: words and pairs of words, and what plain search found."""
    asked = set(query_terms(question).tolist())
    odds = log_odds(np.array([hit.score for hit in hits[:5]] or [0.0]))
    terms = [passage_terms(hit.memory.indexed_text).tolist() for hit in hits[:3]]
    by_first, by_three = (set(chain.from_iterable(terms[:count])) for count in (1, 3))
    shares = (len(asked & held) / max(1, len(asked)) for held in (by_first, by_three))
    leads = (odds[0], odds[0] - odds[:2][-1], odds[0] - odds[-1])
    numbers = zip(GATE_NUMBERS, (*map(float, leads), *shares), strict=True)
    return dict.fromkeys(question_features(question), 1.0) | dict(numbers)


def needs_several(question: str, hits: Sequence[Hit], weights: HopWeights) -> float:
    """Return the probability that a question needs several memories."""
    found = gate_features(question, hits) | {"intercept": 1.0}
    return sigmoid(sum(weights.gate.get(name, 0.0) * value for name, value in found.items()))


# Following.

_log = logging.getLogger("ekphory.agent")
LOOK_AGAIN = 0.4
"""From this probability on more of what the question found is read, and the gate asked again."""
MOST_READ_FIRST = 32
"""How many candidates are read then (docs/LOG.md, 69)."""
BEAM = 3
"""How many of the first hits are evidence from the beginning."""
MOST_READ = 8
"""How many candidates a reranker reads for each hop."""
_READ_WITH = 200
"""So much of the last memory of a chain it reads behind the question."""
_READ_CHARACTERS = 800
_UNREAD = -6.0
_BESIDE = 3
MOST_HOPS = 4
_STAY_FIRST = 2
"""Of the hits of plain search: one of them answers what is asked of one memory after all."""
_BEAM_DISCOUNT = 0.3


@dataclass(slots=True)
class Evidence:
    """A memory that was asked with.

    Attributes:
        id: The memory.
        weight: How much it counts.
        names: What it adds to the question.
        by_meaning, by_names: Place of each memory in what its two lookups found.
        leads: Of the candidates seen so far, whether each begins with a name of it, how near that
            name stands to words of the question, whether it was said beside it, and in its session.
    """

    id: str
    weight: float
    names: Sequence[NewName]
    by_meaning: Mapping[str, int]
    by_names: Mapping[str, int]
    leads: list[tuple[float, float, float, float]] = field(default_factory=list)


@dataclass(slots=True)
class Trail:
    """What was found for a question so far.

    Attributes:
        question: What is asked.
        tool: What searches.
        plain: What the question's own lookup found, best first; not empty.
        reader: Reads the likeliest candidates of each hop; None for none.
        chain: Ids that were chosen, in order; the first is that of the first hit.
        evidence: What was asked with.
    """

    question: str
    tool: SearchTool
    plain: Sequence[Hit]
    reader: RerankingModel | None = None
    chain: list[str] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    _hits: dict[str, Hit] = field(default_factory=dict)
    _terms: dict[str, TermArray] = field(default_factory=dict)
    _held: dict[str, frozenset[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._hits = {hit.id: hit for hit in self.plain}
        self.chain = [self.plain[0].id]

    @property
    def ids(self) -> list[str]:
        """All candidates, those of plain search first, in its order."""
        return list(self._hits)

    def hit(self, memory_id: str) -> Hit:
        """Return a candidate."""
        return self._hits[memory_id]

    def begin(self) -> None:
        """Ask with the first hits of plain search."""
        for place, hit in enumerate(self.plain[:BEAM]):
            self.ask_with(hit.id, weight=1 / (1 + _BEAM_DISCOUNT * place))

    def choose(self, memory_id: str) -> None:
        """Put a memory into the chain, and ask with it."""
        self.chain.append(memory_id)
        known = [each for each in self.evidence if each.id == memory_id]
        for each in known:
            each.weight = 1.0
        if not known:
            self.ask_with(memory_id, weight=1.0)

    def ask_with(self, memory_id: str, *, weight: float) -> None:
        """Look up what a memory leads to, as far as calls are left."""
        text = self._hits[memory_id].memory.indexed_text
        names = find_new_names(text, self.question)
        by_meaning = self._look_up(f"{self.question} {text[:_ASKED_WITH]}", memory_id)
        by_names: Mapping[str, int] = {}
        if names:
            listed = " ".join(name.text for name in names[:_MOST_NAMES])
            by_names = self._look_up(f"{listed} {self._find_unheld(text)}".strip(), memory_id)
        self.evidence.append(Evidence(memory_id, weight, names, by_meaning, by_names))

    def link_between(self, first: str, second: str) -> str:
        """Return the name by which a memory leads to another; empty where none does."""
        held = self._held_by(second)
        names = find_new_names(self._hits[first].memory.indexed_text, self.question)
        return next((name.text for name in names if name.terms <= held), "")

    def features(self) -> FloatArray:
        """Return `FEATURES` of every candidate, shape (candidates, features)."""
        ids = self.ids
        read = _TermTable.of([self._terms_of(each) for each in ids], query_terms(self.question))
        row_of = {each: row for row, each in enumerate(ids)}
        found = np.zeros((len(ids), len(FEATURES)))
        odds = log_odds(np.array([hit.score for hit in self.plain]))
        found[:, 0] = odds.min() - odds[0]
        found[: len(odds), 0] = odds - odds[0]
        found[:, 1] = np.log1p(np.minimum(np.arange(len(ids)), len(odds)))
        found[:, 4] = read.share(read.asked)
        known = read.held[[row_of[each] for each in self.chain]].any(axis=0)
        found[:, 5] = read.share(read.asked & ~known)
        for each in self.evidence:
            each.leads += [self._lead_from(each, other) for other in ids[len(each.leads) :]]
            led = np.column_stack(
                [
                    _reciprocal(each.by_meaning, row_of),
                    _reciprocal(each.by_names, row_of),
                    *read.shared_with(row_of[each.id]),
                    np.array(each.leads),
                ]
            )
            led[row_of[each.id]] = 0.0
            columns = [2, 3, 6, 7, 8, 9, 10, 11]
            found[:, columns] = np.maximum(found[:, columns], each.weight * led)
        speaker = self._hits[self.chain[0]].memory.producer
        found[:, 12] = [self._hits[each].memory.producer == speaker for each in ids]
        return found

    def read_features(self, odds: FloatArray) -> FloatArray:
        """Return what `READ_FEATURES` has more, shape (candidates, 2), of the likeliest candidates.

        A reader that fails reads nothing more: it is None from then on.

        Args:
            odds: By which the likeliest are chosen.
        """
        found = np.column_stack([np.full(len(odds), _UNREAD), np.zeros(len(odds))])
        if self.reader is None:
            return found
        ids, rows = self.ids, np.argsort(-odds, kind="stable")[:MOST_READ]
        last = self._hits[self.chain[-1]].memory.indexed_text[:_READ_WITH]
        texts = [self._hits[ids[row]].memory.indexed_text[:_READ_CHARACTERS] for row in rows]
        passages = [RerankPassage(text) for text in texts]
        try:
            scores = self.reader.score(RerankQuery(f"{self.question} {last}"), passages)
        except (ServiceError, ModelError) as error:
            _log.warning("the agent weighs its evidence without a reranker: %s", error)
            self.reader = None
            return found
        found[rows] = np.column_stack([log_odds(scores.astype(np.float64)), np.ones(len(rows))])
        return found

    def _lead_from(self, evidence: Evidence, other: str) -> tuple[float, float, float, float]:
        """Return what `Evidence.leads` says of a candidate."""
        held, text = self._held_by(other), self._hits[other].text
        titled, near = 0.0, 0.0
        for name in evidence.names:
            if name.terms <= held:
                opening = query_terms(text[: len(name.text) + 2]).tolist()
                if name.terms <= frozenset(opening):
                    titled, near = 1.0, max(near, math.log1p(name.nearness))
        memory, said = self._hits[evidence.id].memory, self._hits[other].memory
        is_within = memory.session is not None and said.session == memory.session
        is_beside = False
        if is_within and memory.sequence is not None and said.sequence is not None:
            is_beside = abs(said.sequence - memory.sequence) <= _BESIDE
        return titled, near, float(is_beside), float(is_within)

    def _look_up(self, query: str, asked_with: str) -> Mapping[str, int]:
        if not self.tool.budget.calls_left:
            return {}
        try:
            hits = self.tool(query[:LONGEST_QUERY], actor=BRANCH)
        except QueryRefused:
            return {}
        least = min(hit.score for hit in self.plain)
        for hit in hits:
            self._hits.setdefault(hit.id, replace(hit, score=min(hit.score, least)))
        others = (hit.id for hit in hits if hit.id != asked_with)
        return {each: place for place, each in enumerate(others)}

    def _find_unheld(self, text: str) -> str:
        """Return the question's words that a text does not hold."""
        held = set(passage_terms(text).tolist())
        words = ((word, set(query_terms(word).tolist())) for word in _WORD.findall(self.question))
        return " ".join(word for word, terms in words if terms and not terms <= held)

    def _held_by(self, memory_id: str) -> frozenset[int]:
        if memory_id not in self._held:
            self._held[memory_id] = frozenset(self._terms_of(memory_id).tolist())
        return self._held[memory_id]

    def _terms_of(self, memory_id: str) -> TermArray:
        if memory_id not in self._terms:
            text = self._hits[memory_id].memory.indexed_text[:_MOST_CHARACTERS]
            self._terms[memory_id] = np.unique(passage_terms(text))
        return self._terms[memory_id]


def _reciprocal(places: Mapping[str, int], row_of: Mapping[str, int]) -> FloatArray:
    found = np.zeros(len(row_of))
    for memory_id, place in places.items():
        found[row_of[memory_id]] = 1 / (1 + place)
    return found


@dataclass(frozen=True, slots=True)
class _TermTable:
    """Which candidate holds which term.

    Attributes:
        held: Shape (candidates, terms).
        weights: The inverse frequency of each term that is held, 0 else; of the same shape.
        squares: Their squares.
        asked: Which terms are those of the question.
    """

    held: NDArray[np.bool_]
    weights: FloatArray
    squares: FloatArray
    asked: NDArray[np.bool_]

    @classmethod
    def of(cls, texts: Sequence[TermArray], question: TermArray) -> _TermTable:
        terms, places = np.unique(np.concatenate(texts), return_inverse=True)
        held = np.zeros((len(texts), len(terms)), bool)
        held[np.repeat(np.arange(len(texts)), [len(text) for text in texts]), places] = True
        holders = held.sum(axis=0)
        rarity = np.log1p((len(texts) - holders + 0.5) / (holders + 0.5))
        weights = held * rarity
        return cls(held, weights, weights**2, np.isin(terms, question))

    def share(self, terms: NDArray[np.bool_]) -> FloatArray:
        """Return of the question's weight which share each candidate holds in these terms."""
        total = float(self.weights[:, self.asked].max(axis=0, initial=0.0).sum())
        return np.asarray(self.weights[:, terms].sum(axis=1) / max(total, 1e-9))

    def shared_with(self, row: int) -> tuple[FloatArray, FloatArray]:
        """Return the cosine over terms that a row adds to the question, and the rarest of them."""
        new = self.held[row] & ~self.asked
        lengths = np.sqrt(self.squares.sum(axis=1)) + 1e-9
        shared = self.squares[:, new].sum(axis=1) / (lengths * lengths[row])
        return shared, self.weights[:, new].max(axis=1, initial=0.0)


# Following the evidence itself.


def follow(trail: Trail, weights: HopWeights, sure: list[float]) -> tuple[Hit, ...]:
    """Choose memory after memory until none is likely enough, and order all that was found.

    The first two hits of plain search stay the first two; what was chosen follows them.

    Args:
        trail: Begins at the first hit; what is chosen is put into its chain.
        weights: What was fitted.
        sure: Gets the probability of each memory that is chosen.

    Raises:
        SessionFault: No time is left, or a search failed.
    """
    trail.begin()
    slope, intercept = chain_weights(trail, weights).hop_curve
    while True:
        trail.tool.budget.check_time()
        ids, odds = trail.ids, score_candidates(trail, weights)
        best = int(np.argmax(odds))
        likely = sigmoid(slope * odds[best] + intercept)
        if len(sure) > MOST_HOPS or likely < weights.stop or not math.isfinite(odds[best]):
            break
        sure.append(likely)
        trail.choose(ids[best])
    first = (hit.id for hit in trail.plain[:_STAY_FIRST])
    likely_first = (ids[row] for row in np.argsort(-odds, kind="stable"))
    order = map(trail.hit, dict.fromkeys((*first, *trail.chain, *likely_first)))
    noted = {each: {"hop": round(p, 4)} for each, p in zip(trail.chain, sure, strict=True)}
    return tuple(replace(hit, scores={**hit.scores, **noted.get(hit.id, {})}) for hit in order)


def score_candidates(trail: Trail, weights: HopWeights) -> FloatArray:
    """Return the log-odds of each candidate; -inf for what the chain holds already."""
    features = trail.features()
    chosen = [each in trail.chain for each in trail.ids]
    odds = weights.unread.odds(features, FEATURES)
    odds[chosen] = -math.inf
    if weights.read is not None and trail.reader is not None:
        read = trail.read_features(odds)
        if trail.reader is not None:
            odds = weights.read.odds(np.column_stack([features, read]), READ_FEATURES)
            odds[chosen] = -math.inf
    return odds


def chain_weights(trail: Trail, weights: HopWeights) -> ChainWeights:
    """Return those by which a trail's candidates are chosen."""
    return weights.unread if weights.read is None or trail.reader is None else weights.read


def chain_probability(sure: Sequence[float], weights: ChainWeights) -> float:
    """Return the probability that all memories of a chain belong to the answer."""
    slope, intercept = weights.chain_curve
    joint = min(max(math.prod(sure), 1e-6), 1 - 1e-6)
    return sigmoid(slope * math.log(joint / (1 - joint)) + intercept)
