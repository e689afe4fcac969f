"""What a reranker is trained on: a question with the passages that compete for it."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from ekphory.errors import DatasetError
from ekphory.models.reranker import RerankPassage, RerankQuery
from ekphory_lab.evaluation.metrics import FloatArray
from ekphory_lab.evaluation.systems import z_scored_mean
from ekphory_lab.training.texts import Row, read_rows

# What a reranker is trained on: a question with the passages that compete for it.

HardCase = Literal[
    "lexical_overlap",
    "inverse",
    "temporal_interference",
    "coreference",
    "causal_reversal",
    "entity_confusion",
    "numerical",
    "granularity",
    "multi_hop",
]
"""What makes a wrong passage hard to tell from a right one; MemReranker names these nine."""
HARD_CASES: tuple[HardCase, ...] = get_args(HardCase)

CandidateKind: TypeAlias = HardCase | Literal["answer", "retrieved", "neighbour", "random"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage that competes.

    Attributes:
        passage: What the reranker reads.
        relevant: Whether it answers the question.
        kind: Why it is here: `answer`; a hard case; `retrieved` by the first stage; `neighbour`,
            the turn beside an answer; `random`.
        lexical: Its BM25 score among the passages that it was found in; 0 without a shared word.
        dense: Its cosine with the question.
        judged: False where nobody has looked: what a first stage finds may answer all the same.
    """

    passage: RerankPassage
    relevant: bool
    kind: CandidateKind
    lexical: float
    dense: float
    judged: bool


@dataclass(frozen=True, slots=True)
class RerankExample:
    """A question with its candidates.

    Attributes:
        source: Name of the data that it was made from.
        query: What is asked.
        candidates: At least one relevant and one irrelevant.
        labels: A soft label in [0, 1] for each candidate; empty as long as no teacher has spoken.
    """

    source: str
    query: RerankQuery
    candidates: tuple[Candidate, ...]
    labels: tuple[float, ...] = ()


# Examples in a file: JSON Lines, compressed; the same examples give the same bytes.


_EXAMPLES = TypeAdapter(RerankExample)


def write_examples(examples: Sequence[RerankExample], path: Path) -> None:
    """Write all or nothing: a stop leaves no half of a file."""
    lines = (
        json.dumps(_example_row(example), default=datetime.isoformat) + "\n" for example in examples
    )
    partial = path.with_name(f"{path.name}.partial")
    # Without time and name, so that equal content gives an equal hash.
    partial.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))
    partial.replace(path)


def read_examples(path: Path) -> tuple[RerankExample, ...]:
    """Read what `write_examples` wrote.

    Raises:
        DatasetError: The file is missing or holds something else.
    """
    try:
        rows = (
            {**row, "candidates": [{**each, "passage": each} for each in row["candidates"]]}
            for row in read_rows(path)
        )
        return tuple(map(_EXAMPLES.validate_python, rows))
    except (KeyError, TypeError, ValueError) as error:
        raise DatasetError(
            f"{path}: no examples for a reranker ({type(error).__name__}: {error}). "
            "Give a file that `ekphory train reranker` wrote."
        ) from error


def _example_row(example: RerankExample) -> dict[str, Any]:
    row = asdict(example)
    del row["query"]["instruction"]
    return row | {"candidates": [_candidate_row(each) for each in example.candidates]}


def _candidate_row(candidate: Candidate) -> dict[str, Any]:
    """Return a candidate's fields behind those of its passage."""
    row = asdict(candidate)
    passage: dict[str, Any] = row.pop("passage")
    return {**passage, **row, **{name: round(row[name], 5) for name in ("lexical", "dense")}}


# Which rows of a training file are held back for measuring and calibrating, decided by hash.

Part = Literal["trained", "held_back"]

_ONE_OF = 16
# Rows that share an answer go to the same side.
_ANSWER_FIELDS = ("sentence", "passage")


def rows_of(part: Part, rows: Sequence[Row]) -> list[Row]:
    """Return the rows of one part; the same rows always belong to the same part."""
    return [row for row in rows if part_of(row) == part]


def part_of(row: Row) -> Part:
    """Hold one row of sixteen back, by the SHA-256 of its answer, or of all of it."""
    answer = next((row[field] for field in _ANSWER_FIELDS if field in row), row)
    digest = hashlib.sha256(json.dumps(answer, sort_keys=True).encode()).digest()
    return "held_back" if digest[0] % _ONE_OF == 0 else "trained"


# Five levels of relevance, and the soft label that each stands for.
#
#     1 irrelevant · 2 low · 3 partial · 4 highly relevant · 5 direct answer
#
# MemReranker names the levels and their bounds. How an ability becomes a place among them is not
# published; ours: twice the chance to beat a known answer, so that an answer has 1.


BOUNDS = (0.2, 0.4, 0.6, 0.8)
SOFT_LABELS = (0.02, 0.3, 0.5, 0.7, 0.98)
"""The middle of each level; at the two ends nearly 0 and 1, since most passages are irrelevant."""


def relevance(abilities: FloatArray, known: NDArray[np.bool_]) -> FloatArray:
    """Put abilities between 0 and 1, where the mean of the known answers is 1.

    Args:
        abilities: Natural logarithms, shape (n,).
        known: Which candidates are known to answer; where none is, the best one counts as known.
    """
    reference = abilities[known].mean() if known.any() else abilities.max()
    return np.asarray(np.minimum(1.0, 2 / (1 + np.exp(reference - abilities))))


def levels(relevances: FloatArray) -> NDArray[np.int64]:
    """Return the level of each, 1 to 5; a bound belongs to the level above it."""
    return np.digitize(relevances, BOUNDS).astype(np.int64) + 1


def soft_labels(found: NDArray[np.int64]) -> FloatArray:
    """Return the soft label of each level."""
    return np.asarray(SOFT_LABELS, np.float64)[found - 1]


# How well a reranker puts the answer first, by source, on questions that are held back.

ALL = "all"


@dataclass(frozen=True, slots=True)
class Development:
    """Mean reciprocal rank of the best answer.

    Attributes:
        step: After how many steps; -1 for the first stage alone.
        ranks: By source, and over all questions as `all`.
        with_context: Of the questions with a dialogue before them; None where there is none.
        log_loss: Of σ(logit) against who answers, the mean over all candidates, which says whether
            scores hold as probabilities; None where they are no logits.
        each: The reciprocal rank of each question, in their order.
    """

    step: int
    ranks: Mapping[str, float]
    with_context: float | None
    log_loss: float | None = None
    each: Sequence[float] = ()


def development(
    examples: Sequence[RerankExample], scores: Sequence[NDArray[np.float64]], *, step: int
) -> Development:
    """Rank every example's candidates by their scores.

    Args:
        examples: At least one.
        scores: For each example one score per candidate.
        step: After how many steps they were given.
    """
    found: dict[str, list[float]] = {ALL: []}
    context = []
    for example, given in zip(examples, scores, strict=True):
        rank = reciprocal_rank(example, given)
        found[ALL].append(rank)
        found.setdefault(example.source, []).append(rank)
        if example.query.context:
            context.append(rank)
    ranks = {source: round(float(np.mean(each)), 4) for source, each in found.items()}
    return Development(
        step,
        ranks,
        round(float(np.mean(context)), 4) if context else None,
        each=[round(rank, 4) for rank in found[ALL]],
    )


def log_loss(examples: Sequence[RerankExample], logits: Sequence[NDArray[np.float64]]) -> float:
    """Return the binary cross-entropy of σ(logit), the mean over all candidates."""
    relevant = [each.relevant for example in examples for each in example.candidates]
    signed = np.concatenate(logits) * np.where(relevant, -1.0, 1.0)
    return float(np.logaddexp(0, signed).mean())


def reciprocal_rank(example: RerankExample, scores: NDArray[np.float64]) -> float:
    """One by the rank of the best answer; candidates with equal scores rank behind the wrong."""
    relevant = np.array([candidate.relevant for candidate in example.candidates])
    best = scores[relevant].max()
    return 1 / (1 + int((scores[~relevant] >= best).sum()))


def first_stage_scores(example: RerankExample) -> NDArray[np.float64]:
    """Return what ranks without a reranker: BM25 and cosine, z-scored over the candidates."""
    columns = [
        np.array([getattr(candidate, name) for candidate in example.candidates], np.float64)
        for name in ("lexical", "dense")
    ]
    return z_scored_mean(*columns)
