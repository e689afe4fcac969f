"""How well a model tells importance and type, beside the length of a text and a constant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ekphory.evaluation.agentmem.labels import LabelledText
from ekphory.evaluation.stats import Estimate, bootstrap_intervals
from ekphory.models.embedder import EmbeddingModel
from ekphory.models.passage_reading import predicted_types, read_passages

FloatArray = NDArray[np.float64]
LENGTH, CONSTANT = "length", "constant"
_RESAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class TraitScores:
    """How well one source tells importance and type on one set of labelled texts.

    Attributes:
        source: A model's name, `length` or `constant`.
        set_name: The set's name.
        texts: How many there are.
        importance: Spearman's correlation with the labelled importance; None where the source says
            nothing about it, or the same of every text.
        typed_texts: How many have a type other than `unknown`; only these count for `type`.
        type: Share of these whose type is told; of `constant` the share of the commonest type.
            None where the source says nothing about it.
    """

    source: str
    set_name: str
    texts: int
    importance: Estimate | None
    typed_texts: int
    type: Estimate | None


def score_traits(
    sets: Mapping[str, Sequence[LabelledText]], models: Mapping[str, EmbeddingModel]
) -> tuple[TraitScores, ...]:
    """Compare the heads of every model that has any with length and a constant, set by set."""
    found = []
    for name, texts in sets.items():
        if not texts:
            continue
        found += [_by_length(name, texts), _by_constant(name, texts)]
        for source, model in models.items():
            found += _by_model(name, texts, source, model)
    return tuple(found)


def spearman(first: FloatArray, second: FloatArray) -> float:
    """Correlate the ranks of two variables; equal values share their mean rank.

    Source: Spearman, "The proof and measurement of association between two things", 1904. NaN
    where one of them does not vary.
    """
    ranks = _ranks(first), _ranks(second)
    deviations = [each - each.mean() for each in ranks]
    scale = np.sqrt(np.square(deviations[0]).sum() * np.square(deviations[1]).sum())
    return float(deviations[0] @ deviations[1] / scale) if scale else float("nan")


def _ranks(values: FloatArray) -> FloatArray:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[places], np.float64)


def _by_length(name: str, texts: Sequence[LabelledText]) -> TraitScores:
    lengths = np.array([len(each.text) for each in texts], np.float64)
    return _scores(LENGTH, name, texts, importance=_correlation(texts, lengths))


def _by_constant(name: str, texts: Sequence[LabelledText]) -> TraitScores:
    types = [each.type for each in texts if each.type != "unknown"]
    commonest = Counter(types).most_common(1)[0][0]
    hits = [each == commonest for each in types]
    return _scores(CONSTANT, name, texts, type_=_share(hits))


def _by_model(
    name: str, texts: Sequence[LabelledText], source: str, model: EmbeddingModel
) -> list[TraitScores]:
    reading = read_passages(model, [each.text for each in texts])
    importance = type_ = None
    if reading.importance is not None:
        importance = _correlation(texts, reading.importance.astype(np.float64))
    if reading.type_logits is not None:
        said = predicted_types(reading.type_logits)
        pairs = zip(texts, said, strict=True)
        type_ = _share([each.type == guess for each, guess in pairs if each.type != "unknown"])
    if importance is None and type_ is None:
        return []
    return [_scores(source, name, texts, importance=importance, type_=type_)]


def _scores(
    source: str,
    name: str,
    texts: Sequence[LabelledText],
    *,
    importance: Estimate | None = None,
    type_: Estimate | None = None,
) -> TraitScores:
    typed = sum(each.type != "unknown" for each in texts)
    return TraitScores(source, name, len(texts), importance, typed, type_)


def _correlation(texts: Sequence[LabelledText], said: FloatArray) -> Estimate | None:
    labels = np.array([each.importance for each in texts], np.float64)
    found = spearman(said, labels)
    if np.isnan(found):
        return None
    generator = np.random.default_rng(0)
    draws = generator.integers(0, len(texts), (_RESAMPLES, len(texts)))
    resampled = [spearman(said[rows], labels[rows]) for rows in draws]
    low, high = np.nanquantile(resampled, [0.025, 0.975])
    return Estimate(found, float(low), float(high))


def _share(hits: Sequence[bool]) -> Estimate | None:
    if not hits:
        return None
    return bootstrap_intervals(np.array(hits, np.float64)[:, np.newaxis])[0]
