"""What ranks the candidates: an embedder, with age and type where it knows them, or BM25."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ekphory.evaluation.agentmem.cases import Candidate, RankingCase
from ekphory.evaluation.baselines import bm25_scorer
from ekphory.evaluation.retriever import Setting
from ekphory.models.embedder import EmbeddingModel, FloatMatrix
from ekphory.models.late_bound import NO_AGE, NO_TYPE, Codes, age_buckets, type_codes
from ekphory.models.passage_reading import late_bound_of, read_passages, traits_by_memory
from ekphory.retrieval.dense import (
    LATER_WINDOW_MARGIN,
    TURN_LENGTH_DISCOUNT,
    best_window,
    length_discounts,
)
from ekphory.types import MemoryType

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
    """Cosine of query and candidate, of which the model reads the beginning.

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
        read = self._read(_texts(cases))
        queries = self._model.encode_query([case.query for case in cases])
        return [
            self._case_scores(query, case.candidates, read)
            for query, case in zip(queries, cases, strict=True)
        ]

    def _pieces(self, text: str) -> list[str]:
        """Give what the model reads of a text."""
        return [text]

    def _read(self, texts: Sequence[str]) -> Mapping[str, _ReadText]:
        pieces = [self._pieces(text) for text in texts]
        counts = [len(each) for each in pieces]
        reading = read_passages(self._model, [piece for each in pieces for piece in each])
        vectors = np.split(reading.content, np.cumsum(counts)[:-1])
        traits = traits_by_memory(reading, counts)
        return {
            text: _ReadText(own, each.type)
            for text, own, each in zip(texts, vectors, traits, strict=True)
        }

    def _case_scores(
        self,
        query: NDArray[np.float32],
        candidates: Sequence[Candidate],
        read: Mapping[str, _ReadText],
    ) -> FloatArray:
        texts = [read[each.text] for each in candidates]
        counts = [len(each.windows) for each in texts]
        vectors = np.concatenate([each.windows for each in texts])
        if self._parts is not None:
            types = [own.type or each.type for own, each in zip(candidates, texts, strict=True)]
            vectors = self._parts.bound(
                vectors,
                buckets=np.repeat(_age_codes(candidates), counts),
                types=np.repeat(_type_codes(types), counts),
            )
        owners = np.repeat(np.arange(len(candidates)), counts)
        discounts = length_discounts(np.ones(len(candidates), np.bool_))
        scores = best_window(np.asarray(vectors @ query, np.float32), owners, discounts)
        return np.asarray(scores, np.float64)


class WindowedScorer(EmbedderScorer):
    """As a search scores: by the best window of a candidate, not by its beginning alone.

    A later window has to be better by the search's margin, and a candidate of many windows loses
    what a turn loses (`best_window`). An embedder that binds age and type adds them to each window.
    """

    @property
    def name(self) -> str:
        """The model's name, and that all windows are read."""
        return windowed_name(self._name)

    @property
    def configuration(self) -> Mapping[str, Setting]:
        """The embedder, whether it binds age and type, and how windows are put together."""
        return {
            **super().configuration,
            "later_window_margin": float(LATER_WINDOW_MARGIN),
            "length_discount": float(TURN_LENGTH_DISCOUNT),
        }

    def reads_more(self, cases: Sequence[RankingCase]) -> bool:
        """Tell whether some candidate has more than one window."""
        return any(len(self._pieces(text)) > 1 for text in _texts(cases))

    def _pieces(self, text: str) -> list[str]:
        return self._model.windows(text)


@dataclass(frozen=True, slots=True)
class _ReadText:
    """A text's windows as vectors, shape (windows, dimension), and its predicted type."""

    windows: FloatMatrix
    type: MemoryType | None


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
        texts = _texts(cases)
        place = {text: row for row, text in enumerate(texts)}
        score = bm25_scorer(texts)
        return [
            np.nan_to_num(score(case.query)[[place[each.text] for each in case.candidates]])
            for case in cases
        ]


def windowed_name(model: str) -> str:
    """Give what a model is called where all windows are read."""
    return f"{model}, all windows"


def _texts(cases: Sequence[RankingCase]) -> list[str]:
    """Give each candidate's text once, in the order of the cases."""
    return list(dict.fromkeys(each.text for case in cases for each in case.candidates))


def _age_codes(candidates: Sequence[Candidate]) -> Codes:
    codes = np.full(len(candidates), NO_AGE, np.int64)
    known = [place for place, each in enumerate(candidates) if each.days_ago is not None]
    codes[known] = age_buckets([each.days_ago for each in candidates if each.days_ago is not None])
    return codes


def _type_codes(types: Sequence[MemoryType | None]) -> Codes:
    codes = [NO_TYPE if each is None else type_codes([each])[0] for each in types]
    return np.array(codes, np.int64)
