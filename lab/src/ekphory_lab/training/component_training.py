"""Trains what the embedder has beyond its encoder: age, type, importance and the type head.

The encoder and its projection stay as they are, so every text is encoded once and the rest takes
seconds. Needs torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch.nn import functional

from ekphory_lab.training.embedder_run import (
    MEMORY_LOSS,
    MemoryLossWeights,
    SampleLayout,
    candidate_scores,
    lay_out,
    memory_loss,
)
from ekphory_lab.training.encoder import AgentEncoder, Tensor, training_device
from ekphory_lab.training.memories import MemorySample

Progress = Callable[[str, int, int], None]
_CHUNK = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentConfig:
    """How the components are trained.

    Attributes:
        epochs: How often all samples are seen.
        samples_per_step: How many samples one step takes.
        learning_rate: Of Adam.
        kept: What the trained vectors of age and type are multiplied with at the end. Whole, they
            win on generated queries, of which many name a time, and lose on those that name none.
        max_tokens: Where a text is cut.
        loss: How the loss is put together.
        seed: Order of the samples.
    """

    epochs: int = 20
    samples_per_step: int = 256
    learning_rate: float = 2e-3
    kept: float = 0.1
    max_tokens: int = 128
    loss: MemoryLossWeights = MEMORY_LOSS
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


def train_components(
    encoder: AgentEncoder,
    samples: Sequence[MemorySample],
    *,
    config: ComponentConfig,
    progress: Progress,
) -> ComponentReport:
    """Train age, type, importance and type head of `encoder` in place, on the GPU if there is one.

    Args:
        encoder: Its encoder and projection stay as they are.
        samples: Queries with candidates of known age, type and importance.
        config: How.
        progress: Is told what is being done, how much is done, and of how much.
    """
    torch.manual_seed(config.seed)
    encoder.parts.to(training_device()).eval()
    layout = lay_out(samples).on(encoder.device)
    pooled = _pooled(encoder, layout.prompted(encoder.prompts), config, progress)
    weights = [
        weight
        for name in ("age", "kind", "importance", "memory_type")
        for weight in encoder.parts[name].parameters()
    ]
    optimizer = torch.optim.Adam(weights, lr=config.learning_rate)
    for epoch in range(config.epochs):
        order = torch.randperm(len(samples)).to(encoder.device)
        for start in range(0, len(order), config.samples_per_step):
            part = layout.at(order[start : start + config.samples_per_step])
            loss = memory_loss(encoder, pooled, part, config.loss)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        progress("components", epoch + 1, config.epochs)
    with torch.no_grad():
        for name in ("age", "kind"):
            encoder.parts[name].weight.mul_(config.kept)
    return _report(encoder, pooled, layout)


def _report(encoder: AgentEncoder, pooled: Tensor, layout: SampleLayout) -> ComponentReport:
    with torch.no_grad():
        queries = functional.normalize(encoder.project(pooled[layout.queries]), dim=1)
        contents = functional.normalize(encoder.project(pooled[layout.candidates]), dim=2)
        plain = torch.einsum("qd,qcd->qc", queries, contents)
        plain = plain.masked_fill(~layout.present, float("-inf"))
        # Equal texts tie: the answer then counts as first for the share that chance would give.
        ties = (plain == plain[:, :1]).sum(dim=1)
        first = (plain[:, 0] >= plain.max(dim=1).values).float() / ties
        bound = candidate_scores(encoder, pooled, layout).argmax(dim=1) == 0
        read = pooled[layout.candidates[layout.present]]
        kinds = encoder.memory_type_logits(read).argmax(dim=1) == layout.types[layout.present]
        errors = (encoder.importance(read) - layout.importance[layout.present]).abs()
    return ComponentReport(
        float(first.mean()),
        float(bound.float().mean()),
        float(kinds.float().mean()),
        float(errors.mean()),
    )


def _pooled(
    encoder: AgentEncoder, texts: Sequence[str], config: ComponentConfig, progress: Progress
) -> Tensor:
    order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
    vectors = torch.empty(len(texts), encoder.dimension, device=encoder.device)
    for start in range(0, len(order), _CHUNK):
        rows = order[start : start + _CHUNK]
        tokens = encoder.tokens([texts[row] for row in rows], max_tokens=config.max_tokens)
        with torch.no_grad():
            vectors[torch.tensor(rows, device=encoder.device)] = encoder.pooled(tokens)
        progress("encoding", start + len(rows), len(order))
    return vectors
