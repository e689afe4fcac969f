"""The embedder in torch: encoder, mean pooling, age, type, projection, and two heads.

    z(memory, age, type) = W (pooled + age[bucket] + type[t]) + b

A query is W pooled + b. Importance and type are read from `pooled`. Needs torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, AutoModel, AutoTokenizer

from ekphory.errors import ModelError
from ekphory.models.late_bound import AGE_BUCKETS
from ekphory.training.contrastive import Tensor
from ekphory.training.sentence_layout import NO_PROMPTS, Prompts, prompts_of, window_of
from ekphory.types import MEMORY_TYPES

_IMPORTANCE_HIDDEN = 64
_DROPOUTS = (
    *("hidden_dropout_prob", "attention_probs_dropout_prob"),  # BERT's
    *("embedding_dropout", "attention_dropout", "mlp_dropout"),  # ModernBERT's
    "dropout",  # DistilBERT's, beside `attention_dropout`
)


@dataclass(frozen=True, slots=True)
class AgentEncoder:
    """The trainable parts.

    Attributes:
        parts: `encoder`, `projection`, `age`, `kind` (the type's vectors), `importance` and
            `memory_type`.
        tokenizer: The encoder's.
        max_tokens: Longest text when the model is used.
        prompts: What stands before queries and passages, also in training.
    """

    parts: Any
    tokenizer: Any
    max_tokens: int
    prompts: Prompts = NO_PROMPTS

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self.parts["projection"].out_features)

    @property
    def device(self) -> Any:  # noqa: ANN401  torch's
        """Where the weights are, and the tokens go."""
        return self.parts["projection"].weight.device

    def pooled(self, tokens: Any) -> Tensor:  # noqa: ANN401  a tokenizer's batch
        """Mean of the last layer over a batch's tokens, in float; shape (texts, dimension)."""
        states = self.parts["encoder"](**tokens).last_hidden_state.float()
        mask = tokens["attention_mask"].unsqueeze(-1).float()
        return (states * mask).sum(dim=1) / mask.sum(dim=1)

    def vectors(self, tokens: Any) -> Tensor:  # noqa: ANN401  a tokenizer's batch
        """Vectors without age and type, of length 1."""
        return nn.functional.normalize(self.project(self.pooled(tokens)), dim=1)

    def project(self, pooled: Tensor) -> Tensor:
        """W pooled + b, in float."""
        projection = self.parts["projection"]
        return nn.functional.linear(pooled, projection.weight, projection.bias)

    def memory_vectors(self, pooled: Tensor, ages: Tensor, types: Tensor) -> Tensor:
        """Vectors of memories of these age buckets and types, of length 1; any leading shape."""
        added = pooled + self.parts["age"](ages) + self.parts["kind"](types)
        return nn.functional.normalize(self.project(added), dim=-1)

    def importance(self, pooled: Tensor) -> Tensor:
        """Predicted importance in [0, 1]; shape (texts,)."""
        return torch.sigmoid(self.parts["importance"](pooled)).squeeze(-1)

    def memory_type_logits(self, pooled: Tensor) -> Tensor:
        """One logit per type; shape (texts, 4)."""
        return self.parts["memory_type"](pooled)

    def tokens(self, texts: Sequence[str], *, max_tokens: int) -> Any:  # noqa: ANN401
        """Tokenise a batch, padded to its longest text, cut also where the model ends."""
        tokens = self.tokenizer(
            list(texts),
            padding=True,
            truncation=True,
            max_length=min(max_tokens, self.max_tokens),
            return_tensors="pt",
        )
        return tokens.to(self.device)


def load_base_encoder(directory: Path) -> AgentEncoder:
    """Start from a sentence-transformers directory: projection the identity, age and type zero.

    Args:
        directory: A model with mean pooling; what it drops out in training is not dropped.

    Raises:
        ModelError: It cannot be loaded.
    """
    encoder, tokenizer = _load_transformer(directory)
    window = window_of(directory)
    positions = getattr(encoder.config, "max_position_embeddings", None) or window
    return AgentEncoder(
        _new_parts(encoder), tokenizer, min(window, positions), prompts_of(directory)
    )


def _load_transformer(directory: Path) -> tuple[Any, Any]:
    try:
        config = AutoConfig.from_pretrained(directory, local_files_only=True)
        # Each architecture has names of its own, and refuses those of others.
        for name in _DROPOUTS:
            if hasattr(config, name):
                setattr(config, name, 0.0)
        encoder = AutoModel.from_pretrained(
            directory,
            config=config,
            # Seven times as fast as fused attention in bfloat16 on a processor without AMX.
            attn_implementation="eager",
            local_files_only=True,
            dtype=torch.float32,
        )
        tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{directory}: cannot be loaded as an encoder ({error}).") from error
    return encoder, tokenizer


def _new_parts(encoder: Any) -> Any:  # noqa: ANN401  torch's modules
    size = int(encoder.config.hidden_size)
    projection = nn.Linear(size, size)
    age, kind = nn.Embedding(AGE_BUCKETS, size), nn.Embedding(len(MEMORY_TYPES), size)
    nn.init.eye_(projection.weight)
    for tensor in (projection.bias, age.weight, kind.weight):
        nn.init.zeros_(tensor)
    importance = nn.Sequential(
        nn.Linear(size, _IMPORTANCE_HIDDEN), nn.ReLU(), nn.Linear(_IMPORTANCE_HIDDEN, 1)
    )
    return nn.ModuleDict(
        {
            "encoder": encoder,
            "projection": projection,
            "age": age,
            "kind": kind,
            "importance": importance,
            "memory_type": nn.Linear(size, len(MEMORY_TYPES)),
        }
    )
