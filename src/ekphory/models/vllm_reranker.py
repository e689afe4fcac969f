"""Reranks with a causal language model that answers yes or no, in vLLM."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ekphory.errors import MissingExtra
from ekphory.models.embedder import check_finite
from ekphory.models.onnx_reranker import check_order
from ekphory.models.reranker import (
    UNCALIBRATED,
    Judgement,
    RelevanceScores,
    RerankPassage,
    RerankQuery,
)
from ekphory.models.torch_embedder import name_model
from ekphory.models.torch_reranker import MOST_TOKENS, YesNoPrompt

MISSING_LOG_PROBABILITY = -10.0
"""What the model cards take for an answer that vLLM gives no probability of."""
_ROOM = 16
"""Tokens that vLLM wants beyond the longest input: one is generated."""


class VllmReranker:
    """Qwen3-Reranker, MemReranker or a model like them on one or more GPUs.

    vLLM batches by itself and keeps the prefix that all prompts of a query share. Safe to call from
    several threads, one at a time computes.
    """

    batch_size = 256
    is_calibrated = False

    def __init__(self, name_or_path: str) -> None:
        """Load the model on all GPUs, and check that it ranks known pairs rightly.

        Args:
            name_or_path: A model directory, or a hub id, which may be downloaded.

        Raises:
            MissingExtra: vLLM is not installed.
            ModelError: The model cannot say yes and no, or ranks known pairs wrongly.
        """
        try:
            import torch
            from vllm import LLM, SamplingParams
        except ImportError as error:
            raise MissingExtra("vllm", f"The runtime 'vllm' of {name_or_path!r}") from error
        self._engine: Any = LLM(
            model=name_or_path,
            tensor_parallel_size=max(1, torch.cuda.device_count()),
            max_model_len=MOST_TOKENS + _ROOM,
            enable_prefix_caching=True,
        )
        self._prompt = YesNoPrompt(self._engine.get_tokenizer())
        self._sampling = SamplingParams(
            temperature=0,
            max_tokens=1,
            logprobs=20,
            allowed_token_ids=[self._prompt.yes, self._prompt.no],
        )
        self.name = name_model(name_or_path)
        self._lock = threading.Lock()
        check_order(self)

    def __repr__(self) -> str:
        return f"VllmReranker({self.name!r})"

    def score(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> RelevanceScores:
        """Return P(yes) for each passage; shape (len(passages),).

        Raises:
            ModelError: vLLM gives numbers that are not finite.
        """
        return self.judge(query, passages).scores

    def judge(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> Judgement:
        """Return scores, and beside them logit(yes) - logit(no); otherwise as `score`."""
        from vllm.inputs import TokensPrompt

        prompts = [
            TokensPrompt(prompt_token_ids=ids) for ids in self._prompt.token_ids(query, passages)
        ]
        with self._lock:
            outputs = self._engine.generate(prompts, self._sampling, use_tqdm=False)
        answers = [output.outputs[0].logprobs[-1] for output in outputs]
        yes, no = self._prompt.yes, self._prompt.no
        logits = np.array([log_odds(answer, yes=yes, no=no) for answer in answers], np.float32)
        check_finite(logits, model=repr(self))
        return Judgement(UNCALIBRATED.probabilities(logits), logits)


def log_odds(answer: Mapping[int, Any], *, yes: int, no: int) -> float:
    """Return log P(yes) - log P(no) from vLLM's log probabilities of the first answered token.

    Args:
        answer: By token id an object with `logprob`; an answer that is missing counts as
            `MISSING_LOG_PROBABILITY`.
        yes, no: The two token ids.
    """
    found = {token: float(answer[token].logprob) for token in (yes, no) if token in answer}
    missing = MISSING_LOG_PROBABILITY
    return found.get(yes, missing) - found.get(no, missing)
