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
from transformers import AutoModel, AutoTokenizer

from recollect.errors import ModelError
from recollect.models.late_bound import AGE_BUCKETS
from recollect.training.contrastive import Tensor
from recollect.training.encoder_weights import read_json
from recollect.types import MEMORY_TYPES

_IMPORTANCE_HIDDEN = 64


@dataclass(frozen=True, slots=True)
class AgentEncoder:
    """The trainable parts.

    Attributes:
        parts: `encoder`, `projection`, `age`, `kind` (the type's vectors), `importance` and
            `memory_type`.
        tokenizer: The encoder's.
        max_tokens: Longest text when the model is used.
    """

    parts: Any
    tokenizer: Any
    max_tokens: int

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self.parts["projection"].out_features)

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
        return self.tokenizer(
            list(texts),
            padding=True,
            truncation=True,
            max_length=min(max_tokens, self.max_tokens),
            return_tensors="pt",
        )


def load_base_encoder(directory: Path, *, dropout: float = 0.0) -> AgentEncoder:
    """Start from a sentence-transformers directory: projection the identity, age and type zero.

    Args:
        directory: A model with mean pooling.
        dropout: Of the encoder, while it trains.

    Raises:
        ModelError: It cannot be loaded.
    """
    encoder, tokenizer = _load_transformer(directory, dropout)
    return AgentEncoder(_new_parts(encoder), tokenizer, max_tokens_of(directory))


def max_tokens_of(directory: Path) -> int:
    """Give the longest text, in tokens, that the directory's settings name.

    Raises:
        ModelError: They name none.
    """
    path = directory / "sentence_bert_config.json"
    wanted = read_json(path).get("max_seq_length")
    if not isinstance(wanted, int):
        raise ModelError(f"{path}: max_seq_length={wanted!r} is no number of tokens.")
    return wanted


def _load_transformer(directory: Path, dropout: float) -> tuple[Any, Any]:
    try:
        encoder = AutoModel.from_pretrained(
            directory,
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout,
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
