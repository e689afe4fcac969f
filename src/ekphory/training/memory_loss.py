"""The loss of generated memories: ranking by content, age and type, and the two heads.

Needs torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from ekphory.models.late_bound import Codes, age_buckets, type_codes
from ekphory.training.agent_encoder import AgentEncoder
from ekphory.training.contrastive import Tensor
from ekphory.training.memories.sample import MemorySample
from ekphory.training.sentence_layout import Prompts


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLossWeights:
    """How the loss is put together.

    Attributes:
        ranking: Weight of finding the answer among the candidates.
        kinds: Weight of the type head's cross-entropy.
        importance: Weight of the importance head's squared error.
        lengths: Weight of the squared length of the vectors of age and type, so that they say
            nothing where nothing is to be said.
        temperature: What a cosine is divided by before the softmax.
    """

    ranking: float = 1.0
    kinds: float = 1.0
    importance: float = 4.0
    lengths: float = 0.01
    temperature: float = 0.05


MEMORY_LOSS = MemoryLossWeights()


@dataclass(frozen=True, slots=True)
class SampleLayout:
    """Samples as tensors; their texts are encoded elsewhere, each once.

    Attributes:
        texts: All distinct texts, those of queries first.
        asked: How many of the texts are those of queries.
        queries: Row of each sample's query in `texts`, shape (samples,).
        candidates: Rows of the candidates, the answer first, shape (samples, candidates).
        present: False where a sample has fewer candidates; the answer stands there again.
        ages: Age bucket of each candidate.
        types: Type of each candidate.
        importance: Importance of each candidate, in [0, 1].
    """

    texts: tuple[str, ...]
    asked: int
    queries: Tensor
    candidates: Tensor
    present: Tensor
    ages: Tensor
    types: Tensor
    importance: Tensor

    def prompted(self, prompts: Prompts) -> list[str]:
        """Give the texts, each with what stands before it when the model is used."""
        queries, memories = self.texts[: self.asked], self.texts[self.asked :]
        return [prompts.query + text for text in queries] + [
            prompts.passage + text for text in memories
        ]

    def on(self, device: Any) -> SampleLayout:  # noqa: ANN401  torch's
        """Give the same on a device."""
        return replace(
            self,
            queries=self.queries.to(device),
            candidates=self.candidates.to(device),
            present=self.present.to(device),
            ages=self.ages.to(device),
            types=self.types.to(device),
            importance=self.importance.to(device),
        )

    def at(self, samples: Tensor) -> SampleLayout:
        """Give some of the samples, of the same texts."""
        return replace(
            self,
            queries=self.queries[samples],
            candidates=self.candidates[samples],
            present=self.present[samples],
            ages=self.ages[samples],
            types=self.types[samples],
            importance=self.importance[samples],
        )


def lay_out(samples: Sequence[MemorySample]) -> SampleLayout:
    """Give the samples as tensors."""
    candidates = [
        (sample.positive, *(negative.memory for negative in sample.negatives)) for sample in samples
    ]
    texts = dict.fromkeys(sample.query for sample in samples)
    asked = len(texts)
    texts |= dict.fromkeys(memory.text for memory in chain.from_iterable(candidates))
    rows = {text: row for row, text in enumerate(texts)}
    width = max(map(len, candidates))
    padded = [row + row[:1] * (width - len(row)) for row in candidates]
    return SampleLayout(
        tuple(texts),
        asked,
        torch.tensor([rows[sample.query] for sample in samples]),
        torch.tensor([[rows[memory.text] for memory in row] for row in padded]),
        torch.tensor([[place < len(row) for place in range(width)] for row in candidates]),
        _codes([age_buckets([memory.days_ago for memory in row]) for row in padded]),
        _codes([type_codes([memory.type for memory in row]) for row in padded]),
        torch.tensor([[memory.importance for memory in row] for row in padded]),
    )


def memory_loss(
    encoder: AgentEncoder, pooled: Tensor, layout: SampleLayout, weights: MemoryLossWeights
) -> Tensor:
    """Take the loss of samples whose texts are encoded.

    Args:
        encoder: Its projection, age, type and heads are used.
        pooled: The encoder's mean over each text of the layout, shape (texts, dimension).
        layout: The samples.
        weights: How the parts are put together.
    """
    logits = candidate_scores(encoder, pooled, layout) / weights.temperature
    # The answer is the first candidate.
    first = torch.zeros(len(logits), dtype=torch.long, device=logits.device)
    ranking = functional.cross_entropy(logits, first)
    read = pooled[layout.candidates[layout.present]]
    kinds = functional.cross_entropy(encoder.memory_type_logits(read), layout.types[layout.present])
    importance = functional.mse_loss(encoder.importance(read), layout.importance[layout.present])
    lengths = sum(encoder.parts[name].weight.square().sum(dim=1).mean() for name in ("age", "kind"))
    return (
        weights.ranking * ranking
        + weights.kinds * kinds
        + weights.importance * importance
        + weights.lengths * lengths
    )


def candidate_scores(encoder: AgentEncoder, pooled: Tensor, layout: SampleLayout) -> Tensor:
    """Cosine of each query with its candidates, minus infinity where there is none."""
    queries = functional.normalize(encoder.project(pooled[layout.queries]), dim=1)
    memories = encoder.memory_vectors(pooled[layout.candidates], layout.ages, layout.types)
    scores = torch.einsum("qd,qcd->qc", queries, memories)
    return scores.masked_fill(~layout.present, float("-inf"))


def _codes(codes: Sequence[Codes]) -> Tensor:
    return torch.from_numpy(np.stack(codes))
