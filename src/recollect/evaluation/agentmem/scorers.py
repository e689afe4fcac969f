"""What ranks the candidates: an embedder, with age and type where it knows them, or BM25."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from recollect.evaluation.agentmem.cases import Candidate, RankingCase
from recollect.evaluation.baselines import bm25_scorer
from recollect.evaluation.retriever import Setting
from recollect.models.embedder import EmbeddingModel, FloatMatrix
from recollect.models.late_bound import (
    NO_AGE,
    NO_TYPE,
    Codes,
    LateBoundParts,
    age_buckets,
    type_codes,
)
from recollect.models.passage_reading import (
    PassageReading,
    late_bound_of,
    predicted_types,
    read_passages,
    traits_by_memory,
)
from recollect.retrieval.dense import (
    LATER_WINDOW_MARGIN,
    TURN_LENGTH_DISCOUNT,
    best_window,
    length_discounts,
)
from recollect.types import MemoryType

FloatArray = NDArray[np.float64]


class CandidateScorer(Protocol):
    """Scores the candidates of cases; what is greater ranks higher."""

    @property
    def name(self) -> str:
        """What it is called in a report."""
        ...

    @property
    def configuration(self) -> Mapping[str, Setting]:
        """Everything that decides its scores."""
        ...

    def scores(self, cases: Sequence[RankingCase]) -> list[FloatArray]:
        """Score each case's candidates, in the order of `RankingCase.candidates`."""
        ...


class EmbedderScorer:
    """Cosine of query and candidate.

    A late-bound embedder sees each candidate's age and type: the given one, else the type that it
    predicts itself, as the product does when a memory is added without one. Any other embedder
    sees the text alone.
    """

    def __init__(self, name: str, model: EmbeddingModel) -> None:
        self._name = name
        self._model = model
        self._parts = late_bound_of(model)

    @property
    def name(self) -> str:
        """The name that was given."""
        return self._name

    @property
    def configuration(self) -> Mapping[str, Setting]:
        """The embedder, and whether it binds age and type."""
        bound = "text alone" if self._parts is None else "text, age and type"
        return {"embedder": str(self._model.identity), "sees": bound}

    def scores(self, cases: Sequence[RankingCase]) -> list[FloatArray]:
        """Score all cases; each text is embedded once, so equal texts score the same."""
        texts = list(dict.fromkeys(each.text for case in cases for each in case.candidates))
        place = {text: row for row, text in enumerate(texts)}
        reading = read_passages(self._model, texts)
        queries = self._model.encode_query([case.query for case in cases])
        found = []
        for query, case in zip(queries, cases, strict=True):
            rows = [place[each.text] for each in case.candidates]
            vectors = self._bound(reading, rows, case.candidates)
            found.append(np.asarray(vectors @ query, np.float64))
        return found

    def _bound(
        self, reading: PassageReading, rows: list[int], candidates: Sequence[Candidate]
    ) -> FloatMatrix:
        content = reading.content[rows]
        if self._parts is None:
            return content
        logits = None if reading.type_logits is None else reading.type_logits[rows]
        return _bind(self._parts, content, logits, candidates)


class WindowedScorer:
    """As a search scores: by the best window of a candidate, not by its beginning alone.

    A later window has to be better by the search's margin, and a candidate of many windows loses
    what a turn loses (`best_window`). An embedder that binds age and type adds them to each window.
    """

    def __init__(self, name: str, model: EmbeddingModel) -> None:
        self._name = name
        self._model = model
        self._parts = late_bound_of(model)

    @property
    def name(self) -> str:
        """The model's name, and that all windows are read."""
        return f"{self._name}, all windows"

    @property
    def configuration(self) -> Mapping[str, Setting]:
        """The embedder, whether it binds age and type, and how windows are put together."""
        return {
            **EmbedderScorer(self._name, self._model).configuration,
            "later_window_margin": float(LATER_WINDOW_MARGIN),
            "length_discount": float(TURN_LENGTH_DISCOUNT),
        }

    def reads_more(self, cases: Sequence[RankingCase]) -> bool:
        """Tell whether some candidate has more than one window."""
        texts = {each.text for case in cases for each in case.candidates}
        return any(len(self._model.windows(text)) > 1 for text in texts)

    def scores(self, cases: Sequence[RankingCase]) -> list[FloatArray]:
        """Score all cases; equal texts score the same."""
        texts = list(dict.fromkeys(each.text for case in cases for each in case.candidates))
        windows = [self._model.windows(text) for text in texts]
        counts = [len(pieces) for pieces in windows]
        reading = read_passages(self._model, [piece for pieces in windows for piece in pieces])
        rows = np.split(np.arange(sum(counts)), np.cumsum(counts)[:-1])
        traits = traits_by_memory(reading, counts)
        read = {
            text: (reading.content[own], trait.type)
            for text, own, trait in zip(texts, rows, traits, strict=True)
        }
        queries = self._model.encode_query([case.query for case in cases])
        return [
            self._case_scores(query, case.candidates, read)
            for query, case in zip(queries, cases, strict=True)
        ]

    def _case_scores(
        self,
        query: NDArray[np.float32],
        candidates: Sequence[Candidate],
        read: Mapping[str, tuple[FloatMatrix, MemoryType | None]],
    ) -> FloatArray:
        counts = [len(read[each.text][0]) for each in candidates]
        vectors = np.concatenate([read[each.text][0] for each in candidates])
        if self._parts is not None:
            typed = [replace(each, type=each.type or read[each.text][1]) for each in candidates]
            vectors = self._parts.bound(
                vectors,
                buckets=np.repeat(_age_codes(typed), counts),
                types=np.repeat(_type_codes(typed, None), counts),
            )
        owners = np.repeat(np.arange(len(candidates)), counts)
        discounts = length_discounts(np.ones(len(candidates), np.bool_))
        scores = best_window(np.asarray(vectors @ query, np.float32), owners, discounts)
        return np.asarray(scores, np.float64)


class Bm25Scorer:
    """BM25 with the word frequencies of all candidates of all cases."""

    name = "bm25"

    @property
    def configuration(self) -> Mapping[str, Setting]:
        """What the words are weighed by."""
        return {"library": "bm25s", "stemmer": "english", "frequencies": "all candidates"}

    def scores(self, cases: Sequence[RankingCase]) -> list[FloatArray]:
        """Score all cases; a candidate without a word of the query scores 0.

        Raises:
            MissingExtra: bm25s is not installed.
        """
        texts = list(dict.fromkeys(each.text for case in cases for each in case.candidates))
        place = {text: row for row, text in enumerate(texts)}
        score = bm25_scorer(texts)
        return [
            np.nan_to_num(score(case.query)[[place[each.text] for each in case.candidates]])
            for case in cases
        ]


def _bind(
    parts: LateBoundParts,
    content: FloatMatrix,
    logits: FloatMatrix | None,
    candidates: Sequence[Candidate],
) -> FloatMatrix:
    return parts.bound(
        content, buckets=_age_codes(candidates), types=_type_codes(candidates, logits)
    )


def _age_codes(candidates: Sequence[Candidate]) -> Codes:
    codes = np.full(len(candidates), NO_AGE, np.int64)
    known = [place for place, each in enumerate(candidates) if each.days_ago is not None]
    codes[known] = age_buckets([each.days_ago for each in candidates if each.days_ago is not None])
    return codes


def _type_codes(candidates: Sequence[Candidate], logits: FloatMatrix | None) -> Codes:
    if logits is None:
        given = [
            NO_TYPE if each.type is None else type_codes([each.type])[0] for each in candidates
        ]
        return np.array(given, np.int64)
    predicted = predicted_types(logits)
    return type_codes(
        [each.type or guess for each, guess in zip(candidates, predicted, strict=True)]
    )
