"""What a reranker is: the protocol, what it reads, its scores, and the bundled ones."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ekphory.errors import InvalidInput, ModelError
from ekphory.threads import once_a_process
from ekphory.types import MEMORY_TYPES, Hit, MemoryRecord, MemoryType, format_date, to_utc

if TYPE_CHECKING:
    from ekphory.models.model_record import CalibrationCard
    from ekphory.models.onnx_models import OnnxReranker


# The dialogue before a question.

Turn = str | Mapping[str, Any]
"""A text, or a message: `producer` or `role`, and `text` or `content`."""
_REMEDY = "Give ['a message', {'role': 'user', 'content': 'another'}]"


def read_dialogue(context: Sequence[Turn]) -> tuple[str, ...]:
    """Return each turn as `speaker: text`, or text alone where no speaker is named.

    Turns without a character are left out.

    Raises:
        InvalidInput: It is not a list, or a turn is neither text nor message.
    """
    if isinstance(context, str | Mapping) or not isinstance(context, Sequence):
        raise InvalidInput("context", context, "must be a list of turns", _REMEDY)
    turns = (_read_turn(turn, place) for place, turn in enumerate(context))
    return tuple(filter(None, turns))


def _read_turn(turn: object, place: int) -> str:
    if isinstance(turn, str):
        return turn.strip()
    if not isinstance(turn, Mapping):
        raise InvalidInput("context", turn, f"turn {place} must be a text or a message", _REMEDY)
    text = turn.get("text", turn.get("content"))
    speaker = turn.get("producer") or turn.get("role") or ""
    if not isinstance(text, str) or not isinstance(speaker, str):
        problem = f"turn {place}: text and speaker must be strings"
        raise InvalidInput("context", turn, problem, _REMEDY)
    said = text.strip()
    return f"{speaker}: {said}" if speaker and said else said


# What a reranker reads.


@dataclass(frozen=True, slots=True)
class RerankQuery:
    """A question, as a reranker gets it.

    Attributes:
        text: The question.
        context: The dialogue before it, oldest turn first, each `speaker: text` or text alone.
        now: The moment it is asked, timezone-aware; None where it is not known.
        instruction: What counts as relevant, for models that are told so; None for the model's own.
    """

    text: str
    context: tuple[str, ...] = ()
    now: datetime | None = None
    instruction: str | None = None


@dataclass(frozen=True, slots=True)
class RerankPassage:
    """A passage, as a reranker gets it.

    Attributes:
        text: What is scored, `producer: text` or text alone.
        before, after: The previous and the next turn of the same session, likewise; None where
            there is none.
        at: When it happened, timezone-aware; None where it is not known.
        type: Kind of memory; None where nobody has said it.
    """

    text: str
    before: str | None = None
    after: str | None = None
    at: datetime | None = None
    type: MemoryType | None = None


# The same in plain words, for models that read two texts and nothing else.


def format_query(query: RerankQuery) -> str:
    """Put before the question what is known of it; a bare question stays as it is.

    For example, on three lines: `The dialogue so far:`, `Anna: I moved to Lisbon.`,
    `Asked on 21 November 2026: when was that?`. The instruction is left out.
    """
    asked = query.text
    if query.now is not None:
        asked = f"Asked on {format_date(query.now)}: {query.text}"
    elif query.context:
        asked = f"Asked: {query.text}"
    said = ["The dialogue so far:", *query.context] if query.context else []
    return "\n".join([*said, asked])


def format_passage(passage: RerankPassage) -> str:
    """Put date and type before the passage: `[8 May 2023, semantic memory] Anna: I like tea`."""
    known = [] if passage.at is None else [format_date(passage.at)]
    if passage.type is not None and passage.type != "unknown":
        known.append(f"{passage.type} memory")
    return f"[{', '.join(known)}] {passage.text}" if known else passage.text


# What users rerank.

Document = str | MemoryRecord | Hit | RerankPassage | Mapping[str, Any]
"""A text; a memory; a hit; or a dict of `text` and, where known, `producer`, `at`, `type`,
`before` and `after`, the turns around it as `speaker: text`."""
_FIELDS = ("text", "producer", "at", "type", "before", "after")


def read_documents(documents: Sequence[Document]) -> list[RerankPassage]:
    """Return the passages that a reranker reads.

    Raises:
        InvalidInput: It is not a list, or an item must be another.
    """
    if isinstance(documents, str | Mapping) or not isinstance(documents, Sequence):
        raise InvalidInput("documents", documents, "must be a list of documents", "Give ['a text']")
    return [_read_document(document, place) for place, document in enumerate(documents)]


def find_stated_type(record: MemoryRecord) -> MemoryType | None:
    """Return the type that somebody has said; None for one that is unknown or predicted."""
    return None if "type" in record.predicted else _known(record.type)


def _read_document(document: object, place: int) -> RerankPassage:
    if isinstance(document, str):
        return RerankPassage(document)
    if isinstance(document, RerankPassage):
        return document
    record = document.memory if isinstance(document, Hit) else document
    if isinstance(record, MemoryRecord):
        return RerankPassage(record.indexed_text, at=record.at, type=find_stated_type(record))
    if isinstance(document, Mapping):
        return _read_mapping(document, place)
    problem = f"document {place} must be a text, a memory, a hit or a dict"
    raise InvalidInput("documents", document, problem, "Give a text, or a dict with 'text'")


def _read_mapping(document: Mapping[str, Any], place: int) -> RerankPassage:
    text, producer = document.get("text"), document.get("producer") or ""
    before, after, kind = (document.get(name) for name in ("before", "after", "type"))
    problem = None
    if unknown := document.keys() - set(_FIELDS):
        problem = f"document {place} has unknown fields {sorted(map(str, unknown))}"
    elif not isinstance(text, str) or not isinstance(producer, str):
        problem = f"document {place}: text and producer must be strings"
    elif not isinstance(before, str | None) or not isinstance(after, str | None):
        problem = f"document {place}: the turns before and after it must be strings"
    if problem:
        raise InvalidInput("documents", document, problem, f"Its fields are {', '.join(_FIELDS)}")
    if kind is not None and kind not in MEMORY_TYPES:
        choices = ", ".join(MEMORY_TYPES)
        raise InvalidInput("type", kind, "must be a type of memory", f"Choose from {choices}")
    at = to_utc(document["at"], field="at") if document.get("at") is not None else None
    said = f"{producer}: {text}" if producer else cast(str, text)
    return RerankPassage(said, before, after, at=at, type=_known(kind))


def _known(kind: MemoryType | None) -> MemoryType | None:
    return None if kind == "unknown" else kind


# The protocol.

RelevanceScores = NDArray[np.float32]


@runtime_checkable
class RerankingModel(Protocol):
    """Reads a query together with each passage. Safe to call from several threads."""

    @property
    def name(self) -> str:
        """What the trace and error messages call it."""

    @property
    def batch_size(self) -> int:
        """How many passages are best given at a time."""

    def score(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> RelevanceScores:
        """Score each passage, in the order given; returns shape (len(passages),), in [0, 1].

        Raises:
            ServiceError: A remote reranker failed after all repeats, or answered nonsense.
            ModelError: A local model gave impossible output.
        """


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a model says of some passages, in their order.

    Attributes:
        scores: In [0, 1], shape (passages,).
        raw: What the model itself gave, likewise: logits, most often.
    """

    scores: RelevanceScores
    raw: RelevanceScores


@runtime_checkable
class LocalReranker(RerankingModel, Protocol):
    """A reranker that runs in this process and shows what its scores are made from."""

    @property
    def is_calibrated(self) -> bool:
        """Whether its scores were fitted to be probabilities, comparable between queries."""

    def judge(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> Judgement:
        """Return what `score` gives, and beside it what it was made from."""


class JudgingReranker(ABC):
    """Base of rerankers whose scores are those of their judgement."""

    @abstractmethod
    def judge(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> Judgement:
        """Return the scores that `score` gives, and beside them what they are made from."""

    def score(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> RelevanceScores:
        """Return the probability that each passage answers; shape (len(passages),).

        Raises:
            ServiceError, ModelError, InvalidInput: As `judge`.
        """
        return self.judge(query, passages).scores


def judge_passages(
    model: RerankingModel, query: RerankQuery, passages: Sequence[RerankPassage]
) -> Judgement:
    """Return what a local model's scores are made from beside them; of any other the same twice."""
    if isinstance(model, LocalReranker):
        return model.judge(query, passages)
    scores = model.score(query, passages)
    return Judgement(scores, scores)


def is_remote(model: RerankingModel) -> bool:
    """Whether the model says of itself that it asks a service over the network."""
    return getattr(model, "is_remote", False) is True


# From a reranker's logits to probabilities.

_LEAST_PROBABILITY = 1e-7


@dataclass(frozen=True, slots=True)
class PlattScaling:
    """P = 1 / (1 + exp(-(slope · logit + intercept))) (Platt, 1999).

    With intercept 0 it is temperature scaling; with slope 1 too, the logit's own probability.
    """

    slope: float = 1.0
    intercept: float = 0.0

    def probabilities(self, logits: NDArray[np.floating]) -> RelevanceScores:
        """Probabilities in [0, 1], parallel to `logits`; NaN stays NaN."""
        scaled = self.slope * logits.astype(np.float64) + self.intercept
        # The logistic function, written so that no large logit overflows.
        return np.asarray((1 + np.tanh(scaled / 2)) / 2, np.float32)


UNCALIBRATED = PlattScaling()


def log_odds(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """Undo the sigmoid that crushes a reranker's scores together: ln(s / (1 - s)), finite."""
    bounded = np.clip(scores.astype(np.float64), _LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY)
    return np.asarray(np.log(bounded / (1 - bounded)))


# What a reranker or its service gave, checked.

ScoreScale = Literal["probability", "logit"]
"""What a service's scores are: in [0, 1] as they come, or to be brought there by a sigmoid."""


def check_scores(given: object, *, count: int) -> NDArray[np.float64]:
    """Return a reranker's scores, if there is one in [0, 1] for each passage.

    Raises:
        ModelError: There is not.
    """
    try:
        scores = np.asarray(given, np.float64)
    except (TypeError, ValueError) as error:
        problem = f"gave no list of numbers ({error})"
        raise ModelError(f"{problem}. `score` gives one number for each passage.") from error
    if scores.shape != (count,):
        problem = f"gave scores of shape {scores.shape} for {count} passages"
        raise ModelError(f"{problem}. `score` gives one number for each.")
    outside = scores[~((scores >= 0) & (scores <= 1))]
    if outside.size:
        remedy = "bring logits there by 1 / (1 + exp(-logit))."
        problem = f"gave the score {outside[0]:g}. `score` gives numbers from 0 to 1"
        raise ModelError(f"{problem}: {remedy}")
    return scores


def read_scores_in_order(
    rows: object, *, count: int, score_field: str, scale: ScoreScale
) -> RelevanceScores:
    """Return each passage's score, in the order in which the passages were sent.

    Args:
        rows: A list of `{"index": position, score_field: score}`, in any order.
        count: How many passages were sent.
        score_field: Field that holds a row's score.
        scale: What the scores are.

    Raises:
        ValueError: A passage has no score or two, or a score is not a number that the scale allows.
    """
    if not isinstance(rows, list):
        raise ValueError(f"gave no list of scores, but {type(rows).__name__}")
    found: dict[int, float] = {}
    for row in rows:
        index, score = _read_row(row, score_field)
        if index in found:
            raise ValueError(f"scored passage {index} twice")
        found[index] = score
    indices = sorted(found)
    if indices != list(range(count)):
        listed = f"{indices[:5]} and more" if len(indices) > 5 else str(indices)
        raise ValueError(f"was sent {count} passages and scored {len(indices)}: {listed}")
    scores = np.array([found[index] for index in indices], np.float64)
    if scale == "logit":
        return UNCALIBRATED.probabilities(scores)
    outside = scores[(scores < 0) | (scores > 1)]
    if outside.size:
        remedy = 'for a service that gives logits, load it with scores="logit"'
        raise ValueError(f"gave the score {outside[0]:g}, outside [0, 1]: {remedy}")
    return np.asarray(scores, np.float32)


def _read_row(row: object, score_field: str) -> tuple[int, float]:
    if not isinstance(row, dict):
        raise ValueError(f"gave a row that is {type(row).__name__}, not an object")
    index, score = row.get("index"), row.get(score_field)
    if not isinstance(index, int) or isinstance(index, bool):
        raise ValueError("gave a row without a whole number in 'index'")
    if not isinstance(score, int | float) or isinstance(score, bool):
        raise ValueError(f"gave passage {index} no number in {score_field!r}")
    try:
        number = float(score)
    except OverflowError:  # a whole number of more than 308 digits
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"gave passage {index} a score that is not finite")
    return index, number


# The bundled rerankers.

SMALL_RERANKER = "ekphory-rerank-small"
"""Six layers: what is meant where none is named."""
TINY_RERANKER = "ekphory-rerank-tiny"
"""Three layers, an exit of another model: what the default search reads by."""
BUNDLED_RERANKERS: Mapping[str, str] = {SMALL_RERANKER: "reranker", TINY_RERANKER: "reranker-tiny"}
"""Their folders among the bundled models."""


@dataclass(frozen=True)
class BundledReranker(JudgingReranker):
    """A reranker that is loaded when it is first needed, once a process. Safe for threads.

    Attributes:
        directory: Where its files are.
        name: Known before it is loaded.
    """

    directory: Path
    name: str = SMALL_RERANKER

    @property
    def bundled_name(self) -> str:
        """The name, by which `bundled_name` knows that it came with ekphory."""
        return self.name

    @property
    def model_id(self) -> str:
        """`name@revision` of its record, known before it is loaded."""
        return _read_id(self.directory)

    @property
    def batch_size(self) -> int:
        """How many passages are best given at a time."""
        return self._model.batch_size

    @property
    def is_calibrated(self) -> bool:
        """Whether its record has a calibration."""
        return self._model.is_calibrated

    @property
    def calibration(self) -> CalibrationCard | None:
        """That of its record."""
        return self._model.calibration

    def judge(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> Judgement:
        """Judge as `OnnxReranker.judge`."""
        return self._model.judge(query, passages)

    @property
    def _model(self) -> OnnxReranker:
        return _load_once(self.directory)


@cache
def _read_id(directory: Path) -> str:
    # The record says how scores are read: its module imports this one.
    from ekphory.models.model_record import read_reranker_record

    return read_reranker_record(directory).model_id


@once_a_process
def _load_once(directory: Path) -> OnnxReranker:
    # ONNX Runtime is slow to import, and not every process reranks.
    from ekphory.models.onnx_models import OnnxReranker

    return OnnxReranker(directory)


def bundled_name(model: RerankingModel) -> str | None:
    """Name the reranker that came with ekphory and that the model is, or wraps; None if none."""
    name = getattr(model, "bundled_name", None)
    return name if isinstance(name, str) else None


def model_id(model: RerankingModel) -> str | None:
    """Return `name@revision` of a reranker; None for a model that states no revision."""
    stated = getattr(model, "model_id", None)
    return stated if isinstance(stated, str) else None


def bundled_reranker(name: str = SMALL_RERANKER) -> BundledReranker | None:
    """Return a reranker that comes with ekphory; None where this installation has none.

    Args:
        name: One of `BUNDLED_RERANKERS`.
    """
    place = bundled_directory(name)
    return BundledReranker(place, name=name) if (place / "model.json").is_file() else None


def bundled_directory(name: str) -> Path:
    """Return the folder of a bundled reranker; `name` is one of `BUNDLED_RERANKERS`."""
    return Path(str(files("ekphory.models"))) / "bundled" / BUNDLED_RERANKERS[name]
