"""A causal language model that answers yes or no, with adapters of low rank to be trained.

Its logit is logit(yes) - logit(no) at the last position. Needs torch and peft.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from ekphory.errors import MissingExtra, ModelError
from ekphory.models.yes_no_prompt import YesNoPrompt
from ekphory.training.contrastive import Tensor
from ekphory.training.reranker.examples import RerankExample
from ekphory.training.reranker.pair_model import PairBatch
from ekphory.training.reranker.reranker_config import LoraShape

ADAPTER_FOLDER = "adapter"


@dataclass(frozen=True, slots=True)
class PromptTokens:
    """One prompt, which ends where the answer begins."""

    ids: list[int]


@dataclass(frozen=True, slots=True)
class YesNoModel:
    """The language model with its adapters.

    Attributes:
        parts: The model, wrapped by peft.
        tokenizer: Its tokenizer.
        prompt: How a pair is asked for.
    """

    parts: Any
    tokenizer: Any
    prompt: YesNoPrompt

    @property
    def workers(self) -> int:
        """One: a chunk fills the machine."""
        return 1

    def pairs(self, example: RerankExample) -> Sequence[PromptTokens]:
        """Write a prompt for each candidate."""
        passages = [candidate.passage for candidate in example.candidates]
        return [PromptTokens(ids) for ids in self.prompt.token_ids(example.query, passages)]

    def batch(self, pairs: Sequence[PromptTokens]) -> PairBatch:
        """Pad on the left, so that all prompts end together."""
        width = max(len(pair.ids) for pair in pairs)
        empty = int(self.tokenizer.pad_token_id or 0)

        def padded(rows: list[list[int]], value: int) -> Tensor:
            table = [[*[value] * (width - len(row)), *row] for row in rows]
            return torch.tensor(table, device=self.parts.device)

        return PairBatch(
            padded([pair.ids for pair in pairs], empty),
            padded([[1] * len(pair.ids) for pair in pairs], 0),
        )

    def logits(self, batch: PairBatch) -> Tensor:
        """Score prompts; shape (prompts,), in float."""
        given = self.parts(
            input_ids=batch.ids, attention_mask=batch.mask, use_cache=False, logits_to_keep=1
        ).logits[:, -1, :]
        return given[:, self.prompt.yes].float() - given[:, self.prompt.no].float()

    def save(self, directory: Path) -> None:
        """Write the adapters alone, and beside them the model with the adapters added in."""
        directory.mkdir(parents=True, exist_ok=True)
        self.parts.save_pretrained(directory / ADAPTER_FOLDER)
        self.parts.merge_and_unload().save_pretrained(directory)
        self.tokenizer.save_pretrained(directory)


def load_yes_no_model(directory: Path, shape: LoraShape) -> YesNoModel:
    """Load a model and put new adapters beside its projections; only they are trained.

    It goes to the GPU where there is one, in bfloat16, else it stays in float.

    Raises:
        MissingExtra: peft is not installed.
        ModelError: The directory cannot be loaded, or the model cannot say yes and no.
    """
    try:
        from peft import LoraConfig, get_peft_model
    except ImportError as error:
        raise MissingExtra("train", "Training by LoRA") from error
    on_gpu = torch.cuda.is_available()
    try:
        tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True)
        model = AutoModelForCausalLM.from_pretrained(
            directory, local_files_only=True, dtype=torch.bfloat16 if on_gpu else torch.float32
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"{directory}: cannot be loaded as a causal language model ({error})."
        ) from error
    adapters = LoraConfig(
        task_type="CAUSAL_LM",
        r=shape.rank,
        lora_alpha=shape.scale,
        # None: chunks are computed twice, and have to come out the same.
        lora_dropout=0.0,
        target_modules=list(shape.targets),
    )
    wrapped = get_peft_model(model.to("cuda" if on_gpu else "cpu"), adapters)
    return YesNoModel(wrapped, tokenizer, YesNoPrompt(tokenizer, most_tokens=shape.most_tokens))
