"""One step of the embedder's training: encode a few groups together and take their loss.

Needs torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from recollect.training.agent_encoder import AgentEncoder
from recollect.training.contrastive import (
    Tensor,
    anchor_loss,
    cached_gradients,
    plain_gradients,
    ranking_loss,
    teacher_loss,
)
from recollect.training.embedder_config import EmbedderConfig, LossWeights
from recollect.training.question_groups import QuestionGroup
from recollect.training.teacher import TeacherView


@dataclass(frozen=True, slots=True)
class StepBatch:
    """The groups of one step with what the teacher says of them.

    Attributes:
        groups: They compete with each other.
        views: The teacher's view of each.
    """

    groups: Sequence[QuestionGroup]
    views: Sequence[TeacherView]

    @property
    def texts(self) -> list[str]:
        """All passages of all groups, then all questions."""
        passages = [text for group in self.groups for text in group.passages]
        return passages + [each.text for group in self.groups for each in group.questions]


def accumulate_gradients(
    encoder: AgentEncoder, batch: StepBatch, config: EmbedderConfig, weights: Sequence[Tensor]
) -> float:
    """Add the gradients of one step to the weights; returns the loss."""
    texts = batch.texts
    lengths = [len(text) for text in texts]
    order = sorted(range(len(texts)), key=lengths.__getitem__)
    chunks = [
        encoder.tokens(
            [texts[place] for place in order[start : start + config.chunk_texts]],
            max_tokens=config.max_tokens,
        )
        for start in range(0, len(order), config.chunk_texts)
    ]
    places = torch.empty(len(order), dtype=torch.long)
    places[torch.tensor(order)] = torch.arange(len(order))

    def encode(tokens: Any) -> Tensor:  # noqa: ANN401  a tokenizer's batch
        with torch.autocast("cpu", dtype=torch.bfloat16):
            pooled = encoder.pooled(tokens)
        return torch.nn.functional.normalize(encoder.project(pooled), dim=1)

    def loss_of(vectors: Tensor) -> Tensor:
        return step_loss(vectors[places], batch, config.loss)

    accumulate = cached_gradients if len(texts) > config.cached_gradients else plain_gradients
    return accumulate(encode, chunks, loss_of, weights)


def step_loss(vectors: Tensor, batch: StepBatch, weights: LossWeights) -> Tensor:
    """Ranking over all groups, plus following the teacher inside each, plus the anchor.

    Args:
        vectors: Of `batch.texts`, in that order, of length 1.
        batch: The groups.
        weights: How the parts are put together.
    """
    amount = sum(len(group.passages) for group in batch.groups)
    scores = vectors[amount:] @ vectors[:amount].T
    positives = _positives(batch, scores.shape)
    loss = ranking_loss(scores, positives, temperature=weights.temperature)
    if weights.teacher:
        loss = loss + weights.teacher * _teacher_part(scores, positives, batch, weights)
    if weights.anchor:
        loss = loss + weights.anchor * anchor_loss(vectors, _base_vectors(batch))
    return loss


def _positives(batch: StepBatch, shape: tuple[int, int]) -> Tensor:
    positives = torch.zeros(shape, dtype=torch.bool)
    row = first = 0
    for group in batch.groups:
        for question in group.questions:
            positives[row, [first + place for place in question.positives]] = True
            row += 1
        first += len(group.passages)
    return positives


def _teacher_part(
    scores: Tensor, positives: Tensor, batch: StepBatch, weights: LossWeights
) -> Tensor:
    parts, row, first = [], 0, 0
    for group, view in zip(batch.groups, batch.views, strict=True):
        inside = slice(row, row + len(group.questions)), slice(first, first + len(group.passages))
        teacher = torch.from_numpy(view.scores) / weights.teacher_temperature
        teacher = teacher + weights.teacher_bonus * positives[inside]
        part = teacher_loss(scores[inside], teacher, temperature=weights.temperature)
        parts.append(part * len(group.questions))
        row, first = row + len(group.questions), first + len(group.passages)
    return torch.stack(parts).sum() / row


def _base_vectors(batch: StepBatch) -> Tensor:
    passages = [view.passages for view in batch.views]
    return torch.from_numpy(np.concatenate(passages + [view.questions for view in batch.views]))
