"""Trains what the embedder has beyond its encoder: age, type, importance and the type head.

The encoder and its projection stay as they are, so every text is encoded once and the rest takes
seconds. Needs torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from torch.nn import functional

from recollect.models.late_bound import Codes, age_buckets, type_codes
from recollect.training.agent_encoder import AgentEncoder
from recollect.training.contrastive import Tensor
from recollect.training.memories.sample import MemorySample

Progress = Callable[[str, int, int], None]
_CHUNK = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentConfig:
    """How the components are trained.

    Attributes:
        epochs: How often all samples are seen.
        samples_per_step: How many samples one step takes.
        learning_rate: Of Adam.
        temperature: What a cosine is divided by before the softmax.
        decay: Weight of the squared length of the vectors of age and type, so that they say
            nothing where nothing is to be said.
        kept: What the trained vectors of age and type are multiplied with at the end. Whole, they
            win on generated queries, of which many name a time, and lose on those that name none.
        max_tokens: Where a text is cut.
        seed: Order of the samples.
    """

    epochs: int = 20
    samples_per_step: int = 256
    learning_rate: float = 2e-3
    temperature: float = 0.05
    decay: float = 0.01
    kept: float = 0.1
    max_tokens: int = 128
    seed: int = 20


@dataclass(frozen=True, slots=True)
class ComponentReport:
    """How well the components do on the samples that they were trained on.

    Attributes:
        first_without: Share of queries whose answer came first among its candidates by content.
        first_with: The same with age and type.
        type_accuracy: Of the type head.
        importance_error: Mean absolute error of the importance head.
    """

    first_without: float
    first_with: float
    type_accuracy: float
    importance_error: float


@dataclass(frozen=True, slots=True)
class _Encoded:
    queries: Tensor
    candidates: Tensor
    present: Tensor
    ages: Tensor
    types: Tensor
    importance: Tensor

    def at(self, rows: Tensor) -> _Encoded:
        """Give some of the samples."""
        return _Encoded(
            self.queries[rows],
            self.candidates[rows],
            self.present[rows],
            self.ages[rows],
            self.types[rows],
            self.importance[rows],
        )


def train_components(
    encoder: AgentEncoder,
    samples: Sequence[MemorySample],
    *,
    config: ComponentConfig,
    progress: Progress,
) -> ComponentReport:
    """Train age, type, importance and type head of `encoder` in place.

    Args:
        encoder: Its encoder and projection stay as they are.
        samples: Queries with candidates of known age, type and importance.
        config: How.
        progress: Is told what is being done, how much is done, and of how much.
    """
    torch.manual_seed(config.seed)
    encoder.parts.eval()
    encoded = _encode(encoder, samples, config, progress)
    weights = [
        weight
        for name in ("age", "kind", "importance", "memory_type")
        for weight in encoder.parts[name].parameters()
    ]
    optimizer = torch.optim.Adam(weights, lr=config.learning_rate)
    for epoch in range(config.epochs):
        order = torch.randperm(len(samples))
        for start in range(0, len(order), config.samples_per_step):
            loss = _loss(
                encoder, encoded.at(order[start : start + config.samples_per_step]), config
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        progress("components", epoch + 1, config.epochs)
    with torch.no_grad():
        for name in ("age", "kind"):
            encoder.parts[name].weight.mul_(config.kept)
    return _report(encoder, encoded)


def _loss(encoder: AgentEncoder, part: _Encoded, config: ComponentConfig) -> Tensor:
    logits = _scores(encoder, part) / config.temperature
    # The answer is the first candidate.
    ranking = functional.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long))
    pooled, types = part.candidates[part.present], part.types[part.present]
    kind = functional.cross_entropy(encoder.memory_type_logits(pooled), types)
    importance = functional.mse_loss(encoder.importance(pooled), part.importance[part.present])
    lengths = sum(encoder.parts[name].weight.square().sum(dim=1).mean() for name in ("age", "kind"))
    return ranking + kind + 4 * importance + config.decay * lengths


def _scores(encoder: AgentEncoder, part: _Encoded) -> Tensor:
    queries = functional.normalize(encoder.project(part.queries), dim=1)
    memories = encoder.project(
        part.candidates + encoder.parts["age"](part.ages) + encoder.parts["kind"](part.types)
    )
    scores = torch.einsum("qd,qcd->qc", queries, functional.normalize(memories, dim=2))
    return scores.masked_fill(~part.present, float("-inf"))


def _report(encoder: AgentEncoder, encoded: _Encoded) -> ComponentReport:
    with torch.no_grad():
        queries = functional.normalize(encoder.project(encoded.queries), dim=1)
        contents = functional.normalize(encoder.project(encoded.candidates), dim=2)
        plain = torch.einsum("qd,qcd->qc", queries, contents)
        plain = plain.masked_fill(~encoded.present, float("-inf"))
        # Equal texts tie: the answer then counts as first for the share that chance would give.
        ties = (plain == plain[:, :1]).sum(dim=1)
        first = (plain[:, 0] >= plain.max(dim=1).values).float() / ties
        bound = _scores(encoder, encoded).argmax(dim=1) == 0
        pooled = encoded.candidates[encoded.present]
        kinds = encoder.memory_type_logits(pooled).argmax(dim=1) == encoded.types[encoded.present]
        errors = (encoder.importance(pooled) - encoded.importance[encoded.present]).abs()
    return ComponentReport(
        float(first.mean()),
        float(bound.float().mean()),
        float(kinds.float().mean()),
        float(errors.mean()),
    )


def _encode(
    encoder: AgentEncoder,
    samples: Sequence[MemorySample],
    config: ComponentConfig,
    progress: Progress,
) -> _Encoded:
    candidates = [
        (sample.positive, *(negative.memory for negative in sample.negatives)) for sample in samples
    ]
    texts = dict.fromkeys(sample.query for sample in samples)
    texts |= dict.fromkeys(memory.text for memory in chain.from_iterable(candidates))
    vectors = _pooled(encoder, list(texts), config, progress)
    rows = {text: row for row, text in enumerate(texts)}
    width = max(map(len, candidates))
    # Missing candidates repeat the answer and are masked.
    padded = [row + row[:1] * (width - len(row)) for row in candidates]
    present = [[place < len(row) for place in range(width)] for row in candidates]
    return _Encoded(
        vectors[torch.tensor([rows[sample.query] for sample in samples])],
        vectors[torch.tensor([[rows[memory.text] for memory in row] for row in padded])],
        torch.tensor(present),
        _codes([age_buckets([memory.days_ago for memory in row]) for row in padded]),
        _codes([type_codes([memory.type for memory in row]) for row in padded]),
        torch.tensor([[memory.importance for memory in row] for row in padded]),
    )


def _codes(codes: Sequence[Codes]) -> Tensor:
    return torch.from_numpy(np.stack(codes))


def _pooled(
    encoder: AgentEncoder, texts: Sequence[str], config: ComponentConfig, progress: Progress
) -> Tensor:
    order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
    vectors = torch.empty(len(texts), encoder.dimension)
    for start in range(0, len(order), _CHUNK):
        rows = order[start : start + _CHUNK]
        tokens = encoder.tokens([texts[row] for row in rows], max_tokens=config.max_tokens)
        with torch.no_grad():
            vectors[torch.tensor(rows)] = encoder.pooled(tokens)
        progress("encoding", start + len(rows), len(order))
    return vectors
