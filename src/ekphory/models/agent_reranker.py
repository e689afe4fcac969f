"""The reranker that users see: one interface for every reranking model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Self

import numpy as np

from ekphory.errors import InvalidInput
from ekphory.models import loading, reranker
from ekphory.models.model_record import CalibrationCard
from ekphory.models.reranker import Judgement, RerankPassage, RerankQuery
from ekphory.models.torch_embedder import TorchOptions
from ekphory.types import to_utc


@dataclass(frozen=True, slots=True)
class RankedDocument:
    """A document in its place.

    Attributes:
        index: Its position in the list that was given.
        score: Probability in [0, 1] that it answers the question.
        raw_score: What the model itself gave.
        document: As it was given.
    """

    index: int
    score: float
    raw_score: float
    document: reranker.Document


class Reranker:
    """A model that reads a question together with each document. Safe for several threads.

        reranker = Reranker.from_pretrained("models/my-reranker")
        reranker.score("When was that?", ["Ann: in May", "Bob: nice"], context=["Ann: I ran"])

    It follows `RerankingModel`, so that `Memory(path, reranker=reranker)` takes it.

    Attributes:
        name: The model's name.
        bundled_name: The same, if it came with ekphory: searches then know what it is good at.
        is_remote: Whether a service is asked over the network.
    """

    def __init__(self, model: reranker.RerankingModel) -> None:
        """Wrap a loaded model; `from_pretrained` loads one."""
        self._model = model
        self.name = model.name
        self.bundled_name = reranker.bundled_name(model)
        self.is_remote = reranker.is_remote(model)

    @classmethod
    def from_pretrained(  # noqa: PLR0913  what a service must be told
        cls,
        path_or_id: str | Path = "bundled",
        *,
        runtime: loading.RerankRuntime | None = None,
        protocol: str | None = None,
        model: str | None = None,
        api_key: str | None = None,
        scores: reranker.ScoreScale | None = None,
        calibration: str | Path | None = None,
        options: TorchOptions | None = None,
    ) -> Self:
        """Load a model, and check that it ranks known pairs rightly.

        Args:
            path_or_id: `bundled`; a directory with an ONNX reranker, a sentence-transformers
                `CrossEncoder` or a causal language model that answers yes or no (Qwen3-Reranker,
                MemReranker); a hub id of one of the latter two; or the URL of a service, of which
                nothing is asked yet.
            runtime: What runs it; None takes what fits its files.
            protocol: For a URL: what the service speaks.
            model: For a URL: the model that the service is asked for.
            api_key: For a URL: the service's key.
            scores: For a URL: whether it gives `probability`, the default, or `logit`.
            calibration: A file of `ekphory train reranker-calibration` for this reranker.
            options: How torch or vLLM loads it.

        Raises:
            InvalidInput: There is no such model, or not for this runtime.
            MissingExtra: The model needs the `[torch]` extra, or vLLM.
            ModelError: The model cannot be loaded, or ranks known pairs wrongly.
        """
        loaded = loading.load_reranker(
            path_or_id,
            runtime=runtime,
            protocol=protocol,
            model=model,
            api_key=api_key,
            scores=scores,
            options=options,
        )
        if calibration is None:
            return cls(loaded)
        return cls(loading.CalibratedReranker(loaded, loading.read_calibration(calibration)))

    def __repr__(self) -> str:
        return f"Reranker({self._model!r})"

    @property
    def batch_size(self) -> int:
        """How many documents are best given at a time."""
        return self._model.batch_size

    @property
    def is_calibrated(self) -> bool:
        """Whether scores were fitted to be probabilities, comparable between questions."""
        return isinstance(self._model, reranker.LocalReranker) and self._model.is_calibrated

    @property
    def calibration(self) -> CalibrationCard | None:
        """What its scores are worth: method, data, error, thresholds; None where not fitted."""
        card = getattr(self._model, "calibration", None)
        return card if isinstance(card, CalibrationCard) else None

    @property
    def model_id(self) -> str | None:
        """`name@revision`, where the model states one."""
        return reranker.model_id(self._model)

    def score(
        self,
        query: str | RerankQuery,
        documents: Sequence[reranker.Document],
        *,
        context: Sequence[reranker.Turn] | None = None,
        now: str | datetime | None = None,
        instruction: str | None = None,
    ) -> reranker.RelevanceScores:
        """Return the probability that each document answers; shape (len(documents),), in [0, 1].

        Where nobody has fitted a calibration it is what the model takes for a probability.

        Args:
            query: The question; with a `RerankQuery` the other arguments stay away.
            documents: Texts, memories, hits, or dicts; see `Document`.
            context: The dialogue before the question, oldest turn first; None for none.
            now: The moment it is asked.
            instruction: What counts as relevant, for models that can be told.

        Raises:
            InvalidInput: An argument cannot be used, or not by this model.
            ModelError: A local model failed.
            ServiceError: A service failed.
        """
        asked = _read_query(query, context, now, instruction)
        return self._model.score(asked, reranker.read_documents(documents))

    def raw_scores(
        self,
        query: str | RerankQuery,
        documents: Sequence[reranker.Document],
        *,
        context: Sequence[reranker.Turn] | None = None,
        now: str | datetime | None = None,
        instruction: str | None = None,
    ) -> reranker.RelevanceScores:
        """Return what the model itself gives, before calibration; otherwise as `score`.

        A cross-encoder gives what `CrossEncoder.predict` gives, ONNX and yes-or-no models logits,
        a service its scores.
        """
        asked = _read_query(query, context, now, instruction)
        return self.judge(asked, reranker.read_documents(documents)).raw

    def rank(
        self,
        query: str | RerankQuery,
        documents: Sequence[reranker.Document],
        *,
        top_n: int | None = None,
        context: Sequence[reranker.Turn] | None = None,
        now: str | datetime | None = None,
        instruction: str | None = None,
    ) -> list[RankedDocument]:
        """Order documents, best first; equal ones as they were given.

        Args:
            query: As in `score`.
            documents: As in `score`.
            context: As in `score`.
            now: As in `score`.
            instruction: As in `score`.
            top_n: How many to give; None gives all.
        """
        is_count = isinstance(top_n, int) and not isinstance(top_n, bool) and top_n >= 1
        if top_n is not None and not is_count:
            raise InvalidInput("top_n", top_n, "must be 1 or more", "Give a count, or None for all")
        asked = _read_query(query, context, now, instruction)
        judged = self.judge(asked, reranker.read_documents(documents))
        # Far from 0 the probabilities of different raw scores are equal.
        order = np.lexsort((-judged.raw, -judged.scores))[:top_n]
        scores, raw = judged.scores.tolist(), judged.raw.tolist()
        return [RankedDocument(n, scores[n], raw[n], documents[n]) for n in order.tolist()]

    def judge(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> Judgement:
        """Return scores, and beside them what they were made from; of a service the same."""
        return reranker.judge_passages(self._model, query, passages)


def _read_query(
    query: str | RerankQuery,
    context: Sequence[reranker.Turn] | None,
    now: str | datetime | None,
    instruction: str | None,
) -> RerankQuery:
    if isinstance(query, RerankQuery):
        if context or now is not None or instruction is not None:
            problem = "says itself what is known of it"
            raise InvalidInput("query", query, problem, "Give the question as a text")
        return query
    if not isinstance(query, str):
        raise InvalidInput("query", query, "must be a string", "Give a question or some words")
    moment = None if now is None else to_utc(now, field="now")
    return RerankQuery(query, reranker.read_dialogue(context or ()), moment, instruction)
