"""Reranks with a causal language model that answers yes or no, in transformers."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ekphory.errors import MissingExtra, ModelError
from ekphory.models.batching import length_batches
from ekphory.models.platt_scaling import UNCALIBRATED
from ekphory.models.rerank_input import RerankPassage, RerankQuery
from ekphory.models.rerank_probe import check_order
from ekphory.models.reranker import Judgement, RelevanceScores
from ekphory.models.yes_no_prompt import MOST_TOKENS, YesNoPrompt

PASSAGES_AT_A_TIME = {"cpu": 4}
PASSAGES_AT_A_TIME_ON_GPU = 64
TOKENS_PER_RUN = {"cpu": 2048}
TOKENS_PER_RUN_ON_GPU = 32_768
_LOADING_ERRORS = (OSError, ValueError, RuntimeError, KeyError, TypeError)


class YesNoReranker:
    """Qwen3-Reranker, MemReranker or a model like them.

    Its score is P(yes) against P(no) at the last position, so its logit is logit(yes) - logit(no).
    Safe to call from several threads, one at a time computes.
    """

    def __init__(
        self, name_or_path: str, *, device: str | None = None, most_tokens: int = MOST_TOKENS
    ) -> None:
        """Load the model, and check that it ranks known pairs rightly.

        Args:
            name_or_path: A model directory, or a hub id, which may be downloaded.
            device: Torch device; None takes a GPU where there is one. On the CPU it computes in
                float32, else in the weights' own type.
            most_tokens: Longest input; what is longer is cut.

        Raises:
            MissingExtra: transformers is not installed.
            ModelError: It cannot load the model, or the model cannot say yes and no.
        """
        try:
            import torch
            from transformers import AutoModelForCausalLM, AutoTokenizer
        except ImportError as error:
            raise MissingExtra("torch", f"The reranker {name_or_path!r}") from error
        self._device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        try:
            tokenizer = AutoTokenizer.from_pretrained(name_or_path, padding_side="left")
            self._model = AutoModelForCausalLM.from_pretrained(
                name_or_path, dtype=torch.float32 if self._device == "cpu" else "auto"
            )
        except _LOADING_ERRORS as error:
            raise ModelError(
                f"{name_or_path}: transformers cannot load this causal language model ({error}). "
                "Give a model directory, or a hub id with the network at hand."
            ) from error
        self._model = self._model.to(self._device).eval()
        self._tokenizer: Any = tokenizer
        self._prompt = YesNoPrompt(tokenizer, most_tokens=most_tokens)
        self._name = Path(name_or_path).name if Path(name_or_path).is_dir() else name_or_path
        self._lock = threading.Lock()
        check_order(self)

    def __repr__(self) -> str:
        return f"YesNoReranker({self._name!r}, device={self._device!r})"

    @property
    def name(self) -> str:
        """Name of the directory, or the hub id."""
        return self._name

    @property
    def batch_size(self) -> int:
        """Few on the CPU, where each takes long."""
        return PASSAGES_AT_A_TIME.get(self._device, PASSAGES_AT_A_TIME_ON_GPU)

    @property
    def is_calibrated(self) -> bool:
        """Never: a score is what the model takes for a probability."""
        return False

    def score(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> RelevanceScores:
        """Give P(yes) for each passage; shape (len(passages),).

        Raises:
            ModelError: The model gives numbers that are not finite.
        """
        return self.judge(query, passages).scores

    def judge(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> Judgement:
        """Give scores, and beside them logit(yes) - logit(no); otherwise as `score`."""
        inputs = self._prompt.token_ids(query, passages)
        logits = np.empty(len(inputs), np.float32)
        most_tokens = TOKENS_PER_RUN.get(self._device, TOKENS_PER_RUN_ON_GPU)
        for batch in length_batches([len(ids) for ids in inputs], most_tokens=most_tokens):
            logits[batch] = self._run([inputs[position] for position in batch])
        if not np.isfinite(logits).all():
            raise ModelError(
                f"{self!r}: the model gave numbers that are not finite. Take another one."
            )
        return Judgement(UNCALIBRATED.probabilities(logits), logits)

    def _run(self, inputs: list[list[int]]) -> RelevanceScores:
        import torch

        padded = self._tokenizer.pad({"input_ids": inputs}, padding=True, return_tensors="pt")
        with self._lock, torch.inference_mode():
            given = self._model(
                **padded.to(self._device), use_cache=False, logits_to_keep=1
            ).logits[:, -1, :]
            difference = given[:, self._prompt.yes].float() - given[:, self._prompt.no].float()
        return np.asarray(difference.cpu().numpy(), np.float32)
