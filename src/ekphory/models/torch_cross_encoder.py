"""Reranks with a sentence-transformers `CrossEncoder`, through the `[torch]` extra."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ekphory.errors import MissingExtra, ModelError
from ekphory.models.encodable import encodable
from ekphory.models.platt_scaling import UNCALIBRATED
from ekphory.models.rerank_input import RerankPassage, RerankQuery
from ekphory.models.rerank_probe import check_order
from ekphory.models.rerank_wording import passage_in_words, query_in_words
from ekphory.models.reranker import Judgement, RelevanceScores

BATCH_SIZE = 32
_LOADING_ERRORS = (OSError, ValueError, RuntimeError, KeyError, TypeError)


class TorchCrossEncoder:
    """A `CrossEncoder` with one label. Safe to call from several threads, one at a time computes.

    It reads what is known of question and passage in words; of plain texts it makes exactly what
    `CrossEncoder.predict` makes of them.
    """

    def __init__(self, name_or_path: str, *, device: str | None = None) -> None:
        """Load the model, and check that it ranks known pairs rightly.

        Args:
            name_or_path: A model directory, or a hub id, which may be downloaded.
            device: Torch device; None lets sentence-transformers choose.

        Raises:
            MissingExtra: sentence-transformers is not installed.
            ModelError: It cannot load the model, or the model has several labels.
        """
        try:
            from sentence_transformers import CrossEncoder
        except ImportError as error:
            raise MissingExtra("torch", f"The reranker {name_or_path!r}") from error
        try:
            self._model = CrossEncoder(name_or_path, device=device)
        except _LOADING_ERRORS as error:
            raise ModelError(
                f"{name_or_path}: sentence-transformers cannot load this cross-encoder ({error}). "
                "Give a model directory, or a hub id with the network at hand."
            ) from error
        if self._model.num_labels != 1:
            raise ModelError(
                f"{name_or_path}: has {self._model.num_labels} labels, a reranker has one. "
                "Take a model that was trained for ranking."
            )
        self._name = Path(name_or_path).name if Path(name_or_path).is_dir() else name_or_path
        self._lock = threading.Lock()
        check_order(self)

    def __repr__(self) -> str:
        return f"TorchCrossEncoder({self._name!r})"

    @property
    def name(self) -> str:
        """Name of the directory, or the hub id."""
        return self._name

    @property
    def batch_size(self) -> int:
        """That of sentence-transformers."""
        return BATCH_SIZE

    @property
    def is_calibrated(self) -> bool:
        """Never: a score is the sigmoid of the logit."""
        return False

    def score(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> RelevanceScores:
        """Give the sigmoid of each passage's logit; shape (len(passages),).

        An instruction takes the place of the model's prompt.

        Raises:
            ModelError: The model gives numbers that are not finite.
        """
        return self.judge(query, passages).scores

    def judge(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> Judgement:
        """Give scores, and beside them what `CrossEncoder.predict` gives; otherwise as `score`."""
        import torch

        if not passages:
            nothing = np.empty(0, np.float32)
            return Judgement(nothing, nothing)
        asked = encodable(query_in_words(query))
        pairs = [(asked, encodable(passage_in_words(passage))) for passage in passages]
        with self._lock:
            logits = self._model.predict(
                pairs,
                prompt=query.instruction,
                batch_size=BATCH_SIZE,
                show_progress_bar=False,
                activation_fn=torch.nn.Identity(),
                convert_to_tensor=True,
            ).float()
            activated = self._model.activation_fn(logits)
        if not torch.isfinite(logits).all():
            raise ModelError(
                f"{self!r}: the model gave numbers that are not finite. Take another one."
            )
        scores = UNCALIBRATED.probabilities(logits.cpu().numpy())
        return Judgement(scores, np.asarray(activated.float().cpu().numpy(), np.float32))
