"""Reranks with a cross-encoder or a causal language model, through the `[torch]` extra."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ekphory.errors import ModelError
from ekphory.models.embedder import (
    CHARACTERS_PER_TOKEN,
    batch_by_length,
    check_finite,
    replace_lone_surrogates,
)
from ekphory.models.onnx_reranker import check_order
from ekphory.models.reranker import (
    UNCALIBRATED,
    Judgement,
    LocalReranker,
    RelevanceScores,
    RerankPassage,
    RerankQuery,
    format_passage,
    format_query,
)
from ekphory.models.torch_embedder import name_model, translate_loading_errors

# How Qwen3-Reranker and MemReranker are asked whether a document is what a query wants.
#
# Source of the texts: the model cards of Qwen/Qwen3-Reranker-4B and IAAR-Shanghai/MemReranker-4B,
# section Transformers. Their section vLLM ends the user's turn twice and has empty lines between
# the parts; here both runtimes get the same.

MOST_TOKENS = 8192
INSTRUCTION = "Given a web search query, retrieve relevant passages that answer the query"
PREFIX = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and "
    'the Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>\n'
    "<|im_start|>user\n"
)
SUFFIX = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"


class YesNoPrompt:
    """Turns queries and passages into token ids that end where the answer begins."""

    def __init__(self, tokenizer: Any, *, most_tokens: int = MOST_TOKENS) -> None:  # noqa: ANN401  transformers'
        """Look up what the tokenizer calls prefix, suffix, yes and no.

        Args:
            tokenizer: A tokenizer of transformers.
            most_tokens: Longest input, prefix and suffix included.

        Raises:
            ModelError: It has no single token for `yes` or for `no`.
        """
        self._tokenizer = tokenizer
        self.yes, self.no = _token_id(tokenizer, "yes"), _token_id(tokenizer, "no")
        self._prefix: list[int] = tokenizer.encode(PREFIX, add_special_tokens=False)
        self._suffix: list[int] = tokenizer.encode(SUFFIX, add_special_tokens=False)
        self._room = most_tokens - len(self._prefix) - len(self._suffix)

    def token_ids(self, query: RerankQuery, passages: Sequence[RerankPassage]) -> list[list[int]]:
        """Return the token ids for each passage; of what is too long the end is cut off.

        A mark of the dialogue's format, such as `<|im_end|>`, in a text is text.
        """
        if not passages:
            return []
        bodies = [
            _body(query, passage)[: self._room * CHARACTERS_PER_TOKEN] for passage in passages
        ]
        encoded = self._tokenizer(
            bodies,
            padding=False,
            truncation="longest_first",
            return_attention_mask=False,
            max_length=self._room,
            split_special_tokens=True,
        )
        return [[*self._prefix, *ids, *self._suffix] for ids in encoded["input_ids"]]


def _body(query: RerankQuery, passage: RerankPassage) -> str:
    instruction = INSTRUCTION if query.instruction is None else query.instruction
    asked, told = format_query(query), format_passage(passage)
    return replace_lone_surrogates(
        f"<Instruct>: {instruction}\n<Query>: {asked}\n<Document>: {told}"
    )


def _token_id(tokenizer: Any, token: str) -> int:  # noqa: ANN401  transformers'
    known = tokenizer.convert_tokens_to_ids(token)
    if known is None or known == tokenizer.unk_token_id:
        raise ModelError(
            f"The tokenizer of {tokenizer.name_or_path} has no token {token!r}. Take a model that "
            "answers yes or no, such as Qwen3-Reranker or MemReranker."
        )
    return int(known)


# Reranks with a sentence-transformers `CrossEncoder`, through the `[torch]` extra.

BATCH_SIZE = 32


class TorchCrossEncoder:
    """A `CrossEncoder` with one label. Safe to call from several threads, one at a time computes.

    It reads what is known of question and passage in words; of plain texts it makes exactly what
    `CrossEncoder.predict` makes of them. A score is the sigmoid of the logit.
    """

    batch_size = BATCH_SIZE
    is_calibrated = False

    def __init__(self, name_or_path: str, *, device: str | None = None) -> None:
        """Load the model, and check that it ranks known pairs rightly.

        Args:
            name_or_path: A model directory, or a hub id, which may be downloaded.
            device: Torch device; None lets sentence-transformers choose.

        Raises:
            MissingExtra: sentence-transformers is not installed.
            ModelError: It cannot load the model, or the model has several labels.
        """
        problem = "sentence-transformers cannot load this cross-encoder"
        with translate_loading_errors(name_or_path, what="reranker", problem=problem):
            from sentence_transformers import CrossEncoder

            self._model = CrossEncoder(name_or_path, device=device)
        if self._model.num_labels != 1:
            raise ModelError(
                f"{name_or_path}: has {self._model.num_labels} labels, a reranker has one. "
                "Take a model that was trained for ranking."
            )
        self.name = name_model(name_or_path)
        self._lock = threading.Lock()
        check_order(self)

    def __repr__(self) -> str:
        return f"TorchCrossEncoder({self.name!r})"

    def score(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> RelevanceScores:
        """Return the sigmoid of each passage's logit; shape (len(passages),).

        An instruction takes the place of the model's prompt.

        Raises:
            ModelError: The model gives numbers that are not finite.
        """
        return self.judge(query, passages).scores

    def judge(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> Judgement:
        """Return scores, and what `CrossEncoder.predict` gives; otherwise as `score`."""
        import torch

        if not passages:
            nothing = np.empty(0, np.float32)
            return Judgement(nothing, nothing)
        asked = replace_lone_surrogates(format_query(query))
        pairs = [(asked, replace_lone_surrogates(format_passage(passage))) for passage in passages]
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
        found = logits.cpu().numpy()
        check_finite(found, model=repr(self))
        scores = UNCALIBRATED.probabilities(found)
        return Judgement(scores, np.asarray(activated.float().cpu().numpy(), np.float32))


# Reranks with a causal language model that answers yes or no, in transformers.

PASSAGES_AT_A_TIME = {"cpu": 4}
"""Few on the CPU, where each takes long."""
PASSAGES_AT_A_TIME_ON_GPU = 64
TOKENS_PER_RUN = {"cpu": 2048}
TOKENS_PER_RUN_ON_GPU = 32_768


class YesNoReranker:
    """Qwen3-Reranker, MemReranker or a model like them.

    Its score is P(yes) against P(no) at the last position, so its logit is logit(yes) - logit(no).
    Safe to call from several threads, one at a time computes.
    """

    is_calibrated = False

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
        problem = "transformers cannot load this causal language model"
        with translate_loading_errors(name_or_path, what="reranker", problem=problem):
            import torch
            from transformers import AutoModelForCausalLM, AutoTokenizer

            self._device = device or ("cuda" if torch.cuda.is_available() else "cpu")
            tokenizer = AutoTokenizer.from_pretrained(name_or_path, padding_side="left")
            model = AutoModelForCausalLM.from_pretrained(
                name_or_path, dtype=torch.float32 if self._device == "cpu" else "auto"
            )
        self._model = model.to(self._device).eval()
        self._tokenizer: Any = tokenizer
        self.batch_size = PASSAGES_AT_A_TIME.get(self._device, PASSAGES_AT_A_TIME_ON_GPU)
        self._prompt = YesNoPrompt(tokenizer, most_tokens=most_tokens)
        self.name = name_model(name_or_path)
        self._lock = threading.Lock()
        check_order(self)

    def __repr__(self) -> str:
        return f"YesNoReranker({self.name!r}, device={self._device!r})"

    def score(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> RelevanceScores:
        """Return P(yes) for each passage; shape (len(passages),).

        Raises:
            ModelError: The model gives numbers that are not finite.
        """
        return self.judge(query, passages).scores

    def judge(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> Judgement:
        """Return scores, and beside them logit(yes) - logit(no); otherwise as `score`."""
        inputs = self._prompt.token_ids(query, passages)
        logits = np.empty(len(inputs), np.float32)
        most_tokens = TOKENS_PER_RUN.get(self._device, TOKENS_PER_RUN_ON_GPU)
        for batch in batch_by_length([len(ids) for ids in inputs], most_tokens=most_tokens):
            logits[batch] = self._run([inputs[position] for position in batch])
        check_finite(logits, model=repr(self))
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


def load_torch_reranker(
    name_or_path: str, *, runtime: Literal["sentence-transformers", "transformers"] | None = None
) -> LocalReranker:
    """Load a cross-encoder, or a causal language model that answers yes or no.

    Args:
        name_or_path: A model directory, or a hub id, which may be downloaded.
        runtime: What runs it; None takes transformers for causal language models in a directory
            that sentence-transformers did not write, else sentence-transformers.

    Raises:
        MissingExtra: The `[torch]` extra is not installed.
        ModelError: It cannot be loaded, or ranks known pairs wrongly.
    """
    if runtime is None:
        # A language model may be part of a CrossEncoder, with a prompt and tokens of its own.
        has_modules = (Path(name_or_path) / "modules.json").is_file()
        is_plain = not has_modules and _is_causal(name_or_path)
        runtime = "transformers" if is_plain else "sentence-transformers"
    if runtime == "transformers":
        return YesNoReranker(name_or_path)
    return TorchCrossEncoder(name_or_path)


def _is_causal(name_or_path: str) -> bool:
    problem = "transformers cannot read the model's configuration"
    with translate_loading_errors(name_or_path, what="reranker", problem=problem):
        from transformers import AutoConfig

        config = AutoConfig.from_pretrained(name_or_path)
    return any(name.endswith("ForCausalLM") for name in config.architectures or ())
