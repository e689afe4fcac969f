"""Reranks with a cross-encoder or a causal language model, by the extras `[torch]` and `[vllm]`."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ekphory.errors import MissingExtra, ModelError
from ekphory.models.embedder import (
    CHARACTERS_PER_TOKEN,
    batch_by_length,
    check_finite,
    replace_lone_surrogates,
)
from ekphory.models.onnx_models import check_order
from ekphory.models.reranker import (
    UNCALIBRATED,
    Judgement,
    JudgingReranker,
    LocalReranker,
    RelevanceScores,
    RerankPassage,
    RerankQuery,
    format_passage,
    format_query,
)
from ekphory.models.torch_embedder import (
    NO_OPTIONS,
    TorchOptions,
    name_model,
    translate_loading_errors,
)

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
        longest = self._room * CHARACTERS_PER_TOKEN
        bodies = [_body(query, passage)[:longest] for passage in passages]
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
    body = f"<Instruct>: {instruction}\n<Query>: {asked}\n<Document>: {told}"
    return replace_lone_surrogates(body)


def _token_id(tokenizer: Any, token: str) -> int:  # noqa: ANN401  transformers'
    known = tokenizer.convert_tokens_to_ids(token)
    if known is None or known == tokenizer.unk_token_id:
        raise ModelError(
            f"The tokenizer of {tokenizer.name_or_path} has no token {token!r}. Take a model that "
            "answers yes or no, such as Qwen3-Reranker or MemReranker."
        )
    return int(known)


class _TorchReranker(JudgingReranker):
    """A model of which one thread at a time computes; it ranks known pairs rightly."""

    batch_size: int
    is_calibrated = False

    def __init__(self, name_or_path: str) -> None:
        self.name = name_model(name_or_path)
        self._lock = threading.Lock()
        check_order(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


# Reranks with a sentence-transformers `CrossEncoder`.

BATCH_SIZE = 32
CHARACTERS_PER_WORD_PIECE = 3
"""Fewer than texts have on average, so that a batch rather has less than it may have."""


class TorchCrossEncoder(_TorchReranker):
    """A `CrossEncoder` with one label. Safe to call from several threads, one at a time computes.

    It reads what is known of question and passage in words; of plain texts it makes exactly what
    `CrossEncoder.predict` makes of them. A score is the sigmoid of the logit.
    """

    batch_size = BATCH_SIZE

    def __init__(self, name_or_path: str, *, options: TorchOptions = NO_OPTIONS) -> None:
        """Load the model, and check that it ranks known pairs rightly.

        Args:
            name_or_path: A model directory, or a hub id, which may be downloaded.
            options: How it is loaded, and how many tokens it reads at once.

        Raises:
            MissingExtra: sentence-transformers is not installed.
            ModelError: It cannot load the model, or the model has several labels.
        """
        problem = "sentence-transformers cannot load this cross-encoder"
        with translate_loading_errors(name_or_path, what="reranker", problem=problem):
            from sentence_transformers import CrossEncoder

            arguments = options.model_arguments()
            self._model = CrossEncoder(name_or_path, device=options.device, model_kwargs=arguments)
        self._tokens_per_batch = options.tokens_per_batch
        if self._model.num_labels != 1:
            problem = f"{name_or_path}: has {self._model.num_labels} labels, a reranker has one"
            raise ModelError(f"{problem}. Take a model that was trained for ranking.")
        super().__init__(name_or_path)

    def judge(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> Judgement:
        """Return scores, and what `CrossEncoder.predict` gives; otherwise as `score`.

        An instruction takes the place of the model's prompt.
        """
        import torch

        if not passages:
            nothing = np.empty(0, np.float32)
            return Judgement(nothing, nothing)
        asked = replace_lone_surrogates(format_query(query))
        pairs = [(asked, replace_lone_surrogates(format_passage(passage))) for passage in passages]
        logits = torch.empty(len(pairs))
        with self._lock:
            for batch in self._batches(pairs):
                found = self._model.predict(
                    [pairs[place] for place in batch],
                    prompt=query.instruction,
                    batch_size=len(batch) if self._tokens_per_batch else BATCH_SIZE,
                    show_progress_bar=False,
                    activation_fn=torch.nn.Identity(),
                    convert_to_tensor=True,
                )
                logits[batch] = found.float().cpu()
            activated = self._model.activation_fn(logits)
        check_finite(logits.numpy(), model=repr(self))
        scores = UNCALIBRATED.probabilities(logits.numpy())
        return Judgement(scores, np.asarray(activated.float().cpu().numpy(), np.float32))

    def _batches(self, pairs: Sequence[tuple[str, str]]) -> Sequence[list[int]]:
        """Return the places of the pairs by run; all at once where only their number counts."""
        if self._tokens_per_batch is None:
            return [list(range(len(pairs)))]
        # As many tokens as characters allow: pairs are tokenised by the model itself.
        lengths = [sum(map(len, pair)) // CHARACTERS_PER_WORD_PIECE + 3 for pair in pairs]
        return batch_by_length(lengths, most_tokens=self._tokens_per_batch)


# Reranks with Qwen3-Reranker, MemReranker or a model like them, which answer yes or no.


class _AnsweringReranker(_TorchReranker):
    """Its score is P(yes) against P(no), so its logit is logit(yes) - logit(no)."""

    _prompt: YesNoPrompt

    def judge(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> Judgement:
        """Return scores, and beside them logit(yes) - logit(no); otherwise as `score`."""
        logits = self._compute_logits(self._prompt.token_ids(query, passages))
        check_finite(logits, model=repr(self))
        return Judgement(UNCALIBRATED.probabilities(logits), logits)

    @abstractmethod
    def _compute_logits(self, inputs: Sequence[list[int]]) -> RelevanceScores: ...


PASSAGES_AT_A_TIME = {"cpu": 4}
"""Few on the CPU, where each takes long."""
PASSAGES_AT_A_TIME_ON_GPU = 64
TOKENS_PER_RUN = {"cpu": 2048}
TOKENS_PER_RUN_ON_GPU = 32_768


class YesNoReranker(_AnsweringReranker):
    """A causal language model in transformers. Safe for several threads, one at a time computes."""

    def __init__(
        self,
        name_or_path: str,
        *,
        options: TorchOptions = NO_OPTIONS,
        most_tokens: int = MOST_TOKENS,
    ) -> None:
        """Load the model, and check that it ranks known pairs rightly.

        Args:
            name_or_path: A model directory, or a hub id, which may be downloaded.
            options: How it is loaded, and how many tokens it reads at once; where they name no
                type it computes in float32 on the CPU, else in the weights' own.
            most_tokens: Longest input; what is longer is cut.

        Raises:
            MissingExtra: transformers is not installed.
            ModelError: It cannot load the model, or the model cannot say yes and no.
        """
        problem = "transformers cannot load this causal language model"
        with translate_loading_errors(name_or_path, what="reranker", problem=problem):
            import torch
            from transformers import AutoModelForCausalLM, AutoTokenizer

            device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
            tokenizer = AutoTokenizer.from_pretrained(name_or_path, padding_side="left")
            given = {"dtype": "float32" if device == "cpu" else "auto"} | options.model_arguments()
            model = AutoModelForCausalLM.from_pretrained(name_or_path, **given)
        self._model = (model if options.device_map else model.to(device)).eval()
        self._device = self._model.device.type
        usual = TOKENS_PER_RUN.get(self._device, TOKENS_PER_RUN_ON_GPU)
        self._tokens_per_run = options.tokens_per_batch or usual
        self._tokenizer: Any = tokenizer
        self.batch_size = PASSAGES_AT_A_TIME.get(self._device, PASSAGES_AT_A_TIME_ON_GPU)
        self._prompt = YesNoPrompt(tokenizer, most_tokens=most_tokens)
        super().__init__(name_or_path)

    def _compute_logits(self, inputs: Sequence[list[int]]) -> RelevanceScores:
        logits = np.empty(len(inputs), np.float32)
        lengths = [len(ids) for ids in inputs]
        for batch in batch_by_length(lengths, most_tokens=self._tokens_per_run):
            logits[batch] = self._run([inputs[position] for position in batch])
        return logits

    def _run(self, inputs: list[list[int]]) -> RelevanceScores:
        import torch

        padded = self._tokenizer.pad({"input_ids": inputs}, padding=True, return_tensors="pt")
        with self._lock, torch.inference_mode():
            given = self._model(
                **padded.to(self._model.device), use_cache=False, logits_to_keep=1
            ).logits[:, -1, :]
            difference = given[:, self._prompt.yes].float() - given[:, self._prompt.no].float()
        return np.asarray(difference.cpu().numpy(), np.float32)


MISSING_LOG_PROBABILITY = -10.0
"""What the model cards take for an answer that vLLM gives no probability of."""
_ROOM = 16
"""Tokens that vLLM wants beyond the longest input: one is generated."""


class VllmReranker(_AnsweringReranker):
    """A causal language model in vLLM, on one or more GPUs.

    vLLM batches by itself and keeps the prefix that all prompts of a query share. Safe to call from
    several threads, one at a time computes.
    """

    batch_size = 256

    def __init__(self, name_or_path: str, *, options: TorchOptions = NO_OPTIONS) -> None:
        """Load the model on all GPUs, and check that it ranks known pairs rightly.

        Args:
            name_or_path: A model directory, or a hub id, which may be downloaded.
            options: Their `dtype` and `engine` go to vLLM; what `engine` names counts in the place
                of what is chosen here.

        Raises:
            MissingExtra: vLLM is not installed.
            ModelError: The model cannot say yes and no, or ranks known pairs wrongly.
        """
        try:
            import torch
            from vllm import LLM, SamplingParams
        except ImportError as error:
            raise MissingExtra("vllm", f"The runtime 'vllm' of {name_or_path!r}") from error
        chosen = {
            "dtype": options.dtype or "auto",
            "tensor_parallel_size": max(1, torch.cuda.device_count()),
            "max_model_len": MOST_TOKENS + _ROOM,
            "enable_prefix_caching": True,
            # After all but the two answers are barred: among the most probable words of a whole
            # vocabulary both may be missing.
            "logprobs_mode": "processed_logprobs",
        } | dict(options.engine)
        self._engine: Any = LLM(model=name_or_path, **chosen)
        room = int(chosen["max_model_len"]) - _ROOM
        self._prompt = YesNoPrompt(self._engine.get_tokenizer(), most_tokens=room)
        allowed = [self._prompt.yes, self._prompt.no]
        one = {"temperature": 0, "max_tokens": 1, "logprobs": 2, "allowed_token_ids": allowed}
        self._sampling = SamplingParams(**one)
        super().__init__(name_or_path)

    def _compute_logits(self, inputs: Sequence[list[int]]) -> RelevanceScores:
        from vllm.inputs import TokensPrompt

        prompts = [TokensPrompt(prompt_token_ids=ids) for ids in inputs]
        with self._lock:
            outputs = self._engine.generate(prompts, self._sampling, use_tqdm=False)
        answers = [output.outputs[0].logprobs[-1] for output in outputs]
        yes, no = self._prompt.yes, self._prompt.no
        return np.array([log_odds(answer, yes=yes, no=no) for answer in answers], np.float32)


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


def load_torch_reranker(
    name_or_path: str,
    *,
    runtime: Literal["sentence-transformers", "transformers", "vllm"] | None = None,
    options: TorchOptions | None = None,
) -> LocalReranker:
    """Load a cross-encoder, or a causal language model that answers yes or no.

    Args:
        name_or_path: A model directory, or a hub id, which may be downloaded.
        runtime: What runs it; None takes transformers for causal language models in a directory
            that sentence-transformers did not write, else sentence-transformers.
        options: How it is loaded.

    Raises:
        MissingExtra: The `[torch]` extra, or vLLM, is not installed.
        ModelError: It cannot be loaded, or ranks known pairs wrongly.
    """
    if runtime is None:
        # A language model may be part of a CrossEncoder, with a prompt and tokens of its own.
        has_modules = (Path(name_or_path) / "modules.json").is_file()
        is_plain = not has_modules and _is_causal(name_or_path)
        runtime = "transformers" if is_plain else "sentence-transformers"
    given = options or NO_OPTIONS
    if runtime == "vllm":
        return VllmReranker(name_or_path, options=given)
    if runtime == "transformers":
        return YesNoReranker(name_or_path, options=given)
    return TorchCrossEncoder(name_or_path, options=given)


def _is_causal(name_or_path: str) -> bool:
    problem = "transformers cannot read the model's configuration"
    with translate_loading_errors(name_or_path, what="reranker", problem=problem):
        from transformers import AutoConfig

        config = AutoConfig.from_pretrained(name_or_path)
    return any(name.endswith("ForCausalLM") for name in config.architectures or ())
