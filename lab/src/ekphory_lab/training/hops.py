"""Learns when a question needs several memories, and what leads from one of them to the next.

Each file of `chains/` is one log or a set of encyclopaedic notes, in the form of the conversations,
with questions whose memories follow from each other. It is put beside conversations that were
written for training, whose questions of several turns are asked too, and everything is searched as
`agent_mode` searches it. A memory that belongs to the answer is to be chosen before all others.
"""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cache, partial
from random import Random

import numpy as np

from ekphory.agent import evidence
from ekphory.agent.evidence import ChainWeights, HopWeights, Trail
from ekphory.agent.provider import Budget, SearchTool
from ekphory.agent.session import HOP_HITS
from ekphory.agent_trace import EventLog
from ekphory.memory import Memory
from ekphory.models.embedder import EmbeddingModel
from ekphory.models.loading import NO_RERANKER
from ekphory.models.reranker import TINY_RERANKER, RerankingModel, bundled_reranker
from ekphory.retrieval.asked_state import PastWeights
from ekphory.retrieval.calibration import FittedFile
from ekphory.types import Hit
from ekphory_lab.evaluation.metrics import FloatArray, expected_calibration_error
from ekphory_lab.evaluation.runner import Progress, silent
from ekphory_lab.training.asked_state import fit_word_weights
from ekphory_lab.training.reranker.export import platt_curve
from ekphory_lab.training.texts import CONVERSATIONS, Row, read_conversations, sha256_of_texts

CHAINS = CONVERSATIONS.parent / "chains"
BESIDE = 2
"""Conversations beside each file."""
_NOTE = "Note"
"""Speaks what nobody says."""
_OF_CHAINS, _OF_CONVERSATIONS = (12, 5), (5, 4)
"""How many questions of several memories, and of one, are searched of each file."""
_CALLS = 10
_WORD_QUESTIONS, _EVERY_SINGLE = 20, 4
_RIDGE, _STEPS = 1e-4, 30
_MISTAKEN = 0.15
"""Share of the questions of one memory, held back, that the gate may let pass."""


@dataclass(frozen=True, slots=True)
class HopQuestion:
    """A question and the memories that answer it together.

    Attributes:
        text: The question.
        answers: Their ids.
        source: `chains` or `conversations`.
    """

    text: str
    answers: frozenset[str]
    source: str


@dataclass(frozen=True, slots=True)
class HopScope:
    """Memories, and what is asked of them."""

    records: Sequence[Row]
    questions: Sequence[HopQuestion]


def hop_scopes(*, seed: int) -> list[HopScope]:
    """Put every file of chains beside conversations, and notes without a speaker two by two."""
    random = Random(seed)  # noqa: S311  no secret
    others = read_conversations()
    random.shuffle(others)
    files = read_conversations(CHAINS)
    notes = [file for file in files if file["turns"][0]["speaker"] == _NOTE]
    groups = [[file] for file in files if file not in notes]
    groups += [notes[place : place + 2] for place in range(0, len(notes), 2)]
    scopes = []
    for place, group in enumerate(groups):
        beside = others[place * BESIDE : (place + 1) * BESIDE]
        records = [record for row in (*group, *beside) for record in _records(row)]
        questions: list[HopQuestion] = []
        for row in group:
            questions += _draw(_questions(row, "chains"), random, *_OF_CHAINS)
        for row in beside:
            questions += _draw(_questions(row, "conversations"), random, *_OF_CONVERSATIONS)
        scopes.append(HopScope(records, questions))
    return scopes


def _draw(
    questions: Iterator[HopQuestion], random: Random, several: int, singles: int
) -> list[HopQuestion]:
    """Draw so many questions that need several memories, and so many that one answers."""
    asked = list(questions)
    random.shuffle(asked)
    single = [each for each in asked if len(each.answers) == 1][:singles]
    return [each for each in asked if len(each.answers) > 1][:several] + single


def _records(row: Row) -> Iterator[Row]:
    for place, turn in enumerate(row["turns"]):
        record = {"id": f"{row['id']}/{place}", "text": turn["text"], "at": turn["at"]}
        if turn["speaker"] != _NOTE:
            session = f"{row['id']}/{turn['session']}"
            record |= {"producer": turn["speaker"], "session": session, "sequence": place}
        yield record


def _questions(row: Row, source: str) -> Iterator[HopQuestion]:
    for question in row["questions"]:
        answers = frozenset(f"{row['id']}/{place}" for place in question["turns"])
        yield HopQuestion(question["query"], answers, source)


# What the search finds for each question, kept: every fit reads it again.

MakeTrail = Callable[[RerankingModel | None], Trail]
"""Makes a trail that stands at the beginning, with or without what reads its candidates."""
_FIRST_GUESS = {"log odds": 0.3, "place": -1.0, "meaning": 1.5, "bridge": 1.5, "shared": 6.0}
"""What is read before anything is fitted: of the order of what was fitted before."""


@dataclass(frozen=True, slots=True)
class FoundQuestion:
    """A question, its first hits, and the steps of one who knows the answers.

    Attributes:
        question: The question.
        plain: What plain search found.
        trail: Makes a trail that stands at its beginning.
        steps: For each step `READ_FEATURES` of all candidates, and which are right to choose.
    """

    question: HopQuestion
    plain: Sequence[Hit]
    trail: MakeTrail
    steps: Sequence[tuple[FloatArray, FloatArray]]


def find_steps(
    scopes: Sequence[HopScope],
    embedder: EmbeddingModel,
    kept_open: ExitStack,
    progress: Progress = silent,
) -> list[FoundQuestion]:
    """Search every question, and follow its answers.

    Args:
        scopes: What is searched.
        embedder: The model.
        kept_open: Closes what the trails search, once they are not needed any more.
        progress: Is told after each question.
    """
    folder = kept_open.enter_context(tempfile.TemporaryDirectory())
    found: list[FoundQuestion] = []
    total = sum(len(scope.questions) for scope in scopes)
    for place, scope in enumerate(scopes):
        open_store = partial(Memory, folder, project=f"scope-{place}", embedder=embedder)
        memory = kept_open.enter_context(open_store())
        memory.add_many(scope.records)
        unread = kept_open.enter_context(open_store(reranker=NO_RERANKER))
        for question in scope.questions:
            found.append(_find(question, memory, unread))
            progress("search", len(found), total)
    return found


def _find(question: HopQuestion, memory: Memory, unread: Memory) -> FoundQuestion:
    """Search as the agent does, whose own lookups no reranker reads, but for the question's."""
    plain = memory.search(question.text, k=HOP_HITS).hits

    @cache
    def search(query: str) -> Sequence[Hit]:
        return unread.search(query, k=HOP_HITS).hits

    def trail(reader: RerankingModel | None) -> Trail:
        budget = Budget(most_calls=_CALLS, seconds=math.inf)
        budget.spend_call()  # the question's own
        return Trail(question.text, SearchTool(search, budget, EventLog()), plain, reader)

    walked = trail(bundled_reranker(TINY_RERANKER))
    walked.begin()
    steps = []
    for _ in range(evidence.MOST_HOPS if len(question.answers) > 1 else 1):
        left = [each in question.answers and each not in walked.chain for each in walked.ids]
        chosen = np.isin(walked.ids, walked.chain)
        steps.append((_read_step(walked)[~chosen], np.array(left, float)[~chosen]))
        if not any(left):
            break
        walked.choose(walked.ids[int(np.argmax(left))])
    return FoundQuestion(question, plain, trail, steps)


def _read_step(trail: Trail) -> FloatArray:
    """Return `READ_FEATURES` of all candidates; those are read that share most with the chain."""
    features = trail.features()
    likely = features @ np.array([_FIRST_GUESS.get(name, 0.0) for name in evidence.FEATURES])
    likely[np.isin(trail.ids, trail.chain)] = -math.inf
    return np.column_stack([features, trail.read_features(likely)])


# Fitting.


def learn_hops(found: Found, *, seed: int, embedder: EmbeddingModel) -> FittedFile:
    """Fit on every second question, find out on the others what holds, and fit again on all."""
    reader = bundled_reranker(TINY_RERANKER)
    words = _fit_words(found)
    gated = _cross(found, partial(_gate_half, words=words))
    unread, unread_errors = _learn_chains(found, evidence.FEATURES, None)
    read, errors = unread, unread_errors
    if reader is not None:
        read, errors = _learn_chains(found, evidence.READ_FEATURES, reader)
    said, right = map(np.array, zip(*gated, strict=True))
    follow_from = float(np.quantile(said[right == 0], 1 - _MISTAKEN))
    weights = HopWeights(_fit_gate(found, words), unread, read, follow=round(follow_from, 4))
    follows = said >= follow_from
    measured = {
        "gate, questions of several memories that pass": float(follows[right == 1].mean()),
        "gate, questions of one memory that pass": float(follows[right == 0].mean()),
        **errors,
        **{f"{name}, unread": error for name, error in unread_errors.items()},
        "questions": float(len(found)),
    }
    return FittedFile(
        kind=evidence.HOPS_KIND,
        command=f"ekphory train hops --seed {seed}",
        models={
            "embedder": embedder.identity.model_id,
            **({} if reader is None else {TINY_RERANKER: reader.model_id}),
        },
        data={folder.name: sha256_of_texts(folder) for folder in (CHAINS, CONVERSATIONS)},
        seed=seed,
        measured={name: round(value, 4) for name, value in measured.items()},
        values=asdict(weights),
    )


Found = Sequence[FoundQuestion]
Pairs = list[tuple[float, float]]
"""What was said, and whether it was right."""


def _cross(found: Found, judge: Callable[[Found, Found], Pairs]) -> Pairs:
    """Judge each half by what the other teaches."""
    halves = [found[0::2], found[1::2]]
    return [pair for half, other in (halves, halves[::-1]) for pair in judge(half, other)]


def _gate_half(half: Found, other: Found, *, words: PastWeights) -> Pairs:
    weights = HopWeights(_fit_gate(half, words), ChainWeights({}))
    return [
        (
            evidence.needs_several(each.question.text, each.plain, weights),
            float(len(each.question.answers) > 1),
        )
        for each in other
        if each.question.source == "conversations"
    ]


def _learn_chains(
    found: Found, names: Sequence[str], reader: RerankingModel | None
) -> tuple[ChainWeights, dict[str, float]]:
    """Fit what leads on, and the curves that make its log-odds probabilities, with their errors."""
    chosen: Pairs = []
    chains: Pairs = []

    def watch_half(half: Found, other: Found) -> Pairs:
        weights = ChainWeights(_fit_hop(half, names))
        for each in other:
            if len(each.question.answers) > 1:
                _watch(each, each.trail(reader), weights, chosen, chains)
        return []

    _cross(found, watch_half)
    hop = _fit_hop(found, names)
    errors = {
        "hop, expected calibration error": _error(chosen),
        "chain, expected calibration error": _error(chains),
    }
    return ChainWeights(hop, _curve(chosen), _curve(chains)), errors


def _watch(
    each: FoundQuestion, trail: Trail, weights: ChainWeights, chosen: Pairs, chains: Pairs
) -> None:
    """Follow a question, and note the log-odds of what was chosen and whether it was right."""
    sure = [trail.plain[0].score]
    used = HopWeights({}, weights, weights if trail.reader is not None else None, stop=0.05)
    evidence.follow(trail, used, sure)
    right = [memory_id in each.question.answers for memory_id in trail.chain]
    chosen += [(_log_odds(p), float(ok)) for p, ok in zip(sure[1:], right[1:], strict=True)]
    chains.append((_log_odds(evidence.chain_probability(sure, weights)), float(all(right))))


def _log_odds(probability: float) -> float:
    bounded = min(max(probability, 1e-6), 1 - 1e-6)
    return math.log(bounded / (1 - bounded))


def _curve(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    odds, right = map(np.array, zip(*pairs, strict=True))
    curve = platt_curve(odds, right)
    return round(float(curve.slope), 4), round(float(curve.intercept), 4)


def _error(pairs: Sequence[tuple[float, float]]) -> float:
    """Return the error of a curve on every second pair, fitted on the others, both ways."""
    said, right = [], []
    halves = pairs[0::2], pairs[1::2]
    for learned, other in (halves, halves[::-1]):
        slope, intercept = _curve(learned)
        said += [evidence.sigmoid(slope * odds + intercept) for odds, _ in other]
        right += [ok for _, ok in other]
    return float(expected_calibration_error(np.array(said), np.array(right)))


def _fit_hop(found: Found, names: Sequence[str]) -> dict[str, float]:
    """Fit what leads on; both kinds of questions weigh alike, and each step of one."""
    counts = Counter(len(each.question.answers) > 1 for each in found)
    inputs, wanted, shares = [], [], []
    for each in found:
        share = 1 / (counts[len(each.question.answers) > 1] * len(each.steps))
        for features, right in each.steps:
            inputs.append(features[:, : len(names)])
            wanted.append(right)
            shares.append(np.full(len(right), share))
    return _newton(np.concatenate(inputs), np.concatenate(wanted), np.concatenate(shares), names)


def _fit_words(found: Found) -> PastWeights:
    """Fit words and pairs on written questions, without those of conversations in `found`."""
    searched = {each.question.text for each in found if each.question.source == "conversations"}
    texts, several, singles = [], [], 0
    for row in (*read_conversations(CHAINS), *read_conversations()):
        for question in row["questions"]:
            is_several = len(question["turns"]) > 1
            singles += not is_several
            is_taken = is_several or singles % _EVERY_SINGLE == 0
            if is_taken and question["query"] not in searched:
                texts.append(question["query"])
                several.append(is_several)
    return fit_word_weights(texts, several, least=_WORD_QUESTIONS)


def _fit_gate(found: Found, words: PastWeights) -> dict[str, float]:
    """Fit the numbers beside what the words say, on searched questions; both kinds weigh alike."""
    inputs, wanted = [], []
    for each in found:
        features = evidence.gate_features(each.question.text, each.plain)
        numbers = [features[name] for name in evidence.GATE_NUMBERS]
        total = words.intercept + sum(words.weights.get(name, 0.0) for name in features)
        inputs.append([*numbers, total])
        wanted.append(float(len(each.question.answers) > 1))
    balance = np.where(np.array(wanted) == 1, 0.5 / sum(wanted), 0.5 / (len(wanted) - sum(wanted)))
    names = (*evidence.GATE_NUMBERS, "words")
    fitted = _newton(np.array(inputs), np.array(wanted), balance, names)
    scale = fitted.pop("words")
    fitted["intercept"] += scale * words.intercept
    return fitted | {name: round(scale * value, 3) for name, value in words.weights.items()}


def _newton(
    inputs: FloatArray, wanted: FloatArray, shares: FloatArray, names: Sequence[str]
) -> dict[str, float]:
    """Fit a logistic regression with a small penalty on squared weights."""
    mean, spread = inputs.mean(axis=0), inputs.std(axis=0) + 1e-9
    scaled = np.column_stack([(inputs - mean) / spread, np.ones(len(inputs))])
    share = shares / shares.sum()
    weights, penalty = np.zeros(scaled.shape[1]), np.full(scaled.shape[1], _RIDGE)
    penalty[-1] = 0.0
    for _ in range(_STEPS):
        said = 1 / (1 + np.exp(-np.clip(scaled @ weights, -50, 50)))
        gradient = scaled.T @ (share * (said - wanted)) + penalty * weights
        curvature = (scaled * (share * said * (1 - said))[:, None]).T @ scaled
        weights -= np.linalg.solve(curvature + np.diag(penalty + 1e-9), gradient)
    fitted = weights[:-1] / spread
    intercept = float(weights[-1] - fitted @ mean)
    return {name: round(float(value), 4) for name, value in zip(names, fitted, strict=True)} | {
        "intercept": round(intercept, 4)
    }
