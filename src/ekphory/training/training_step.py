"""One step of the embedder's training: encode a few groups together and take their loss.

Needs torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from ekphory.training.agent_encoder import AgentEncoder
from ekphory.training.contrastive import (
    Tensor,
    anchor_loss,
    cached_gradients,
    plain_gradients,
    ranking_loss,
    teacher_loss,
)
from ekphory.training.drawn_ages import DrawnAges
from ekphory.training.embedder_config import EmbedderConfig, LossWeights
from ekphory.training.memory_loss import MEMORY_LOSS, SampleLayout, memory_loss
from ekphory.training.precision import mixed_precision
from ekphory.training.question_groups import QuestionGroup
from ekphory.training.sentence_layout import Prompts
from ekphory.training.teacher import TeacherView
from ekphory.training.written_passages import WrittenPassages


@dataclass(frozen=True, slots=True)
class StepBatch:
    """The groups of one step with what the teacher says of them, and generated memories.

    Attributes:
        groups: They compete with each other.
        views: The teacher's view of each.
        given: Age and type of each group's passages; None where they have neither.
        memories: Generated samples; None for none.
        written: Passages whose vectors are to stay; None for none.
    """

    groups: Sequence[QuestionGroup]
    views: Sequence[TeacherView]
    given: Sequence[DrawnAges | None]
    memories: SampleLayout | None = None
    written: WrittenPassages | None = None

    @property
    def passages(self) -> list[str]:
        """All passages of all groups."""
        return [text for group in self.groups for text in group.passages]

    @property
    def questions(self) -> list[str]:
        """All questions of all groups."""
        return [each.text for group in self.groups for each in group.questions]

    @property
    def texts(self) -> list[str]:
        """All passages, all questions, the texts of the memories, and the written passages."""
        generated = () if self.memories is None else self.memories.texts
        written = () if self.written is None else self.written.texts
        return [*self.passages, *self.questions, *generated, *written]

    def prompted(self, prompts: Prompts) -> list[str]:
        """Give all texts in that order, each with what stands before it when the model is used."""
        generated = () if self.memories is None else self.memories.prompted(prompts)
        written = () if self.written is None else self.written.texts
        return [
            *(prompts.passage + text for text in self.passages),
            *(prompts.query + text for text in self.questions),
            *generated,
            *(prompts.passage + text for text in written),
        ]


def accumulate_gradients(
    encoder: AgentEncoder, batch: StepBatch, config: EmbedderConfig, weights: Sequence[Tensor]
) -> float:
    """Add the gradients of one step to all weights; returns the loss.

    Args:
        encoder: What is trained.
        batch: What it is trained on.
        config: The run's configuration.
        weights: The trained weights of the transformer; those after its mean get theirs directly.
    """
    texts = batch.prompted(encoder.prompts)
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
    places = places.to(encoder.device)

    def encode(tokens: Any) -> Tensor:  # noqa: ANN401  a tokenizer's batch
        with mixed_precision(encoder.device.type):
            return encoder.pooled(tokens)

    def loss_of(pooled: Tensor) -> Tensor:
        return step_loss(encoder, pooled[places], batch, config)

    accumulate = cached_gradients if len(texts) > config.cached_gradients else plain_gradients
    return accumulate(encode, chunks, loss_of, weights)


def step_loss(
    encoder: AgentEncoder, pooled: Tensor, batch: StepBatch, config: EmbedderConfig
) -> Tensor:
    """Put the losses of the questions, the generated memories and the written passages together.

    Args:
        encoder: What comes after the mean is used.
        pooled: The encoder's mean over each text of the batch, in the order of `batch.texts`.
        batch: What the step is trained on.
        config: The run's configuration.
    """
    amounts = [len(batch.passages), len(batch.questions)]
    amounts += [0 if part is None else len(part.texts) for part in (batch.memories, batch.written)]
    read, asked, generated, written = pooled.split(amounts)
    passages = _passage_vectors(encoder, read, batch)
    questions = functional.normalize(encoder.project(asked), dim=1)
    loss = question_loss(torch.cat([passages, questions]), batch, config.loss)
    if batch.memories is not None:
        memories = batch.memories.on(pooled.device)
        learned = memory_loss(encoder, generated, memories, MEMORY_LOSS)
        loss = loss + config.memories.weight * learned
    if batch.written is not None:
        kept = _vectors(encoder, written, batch.written.given)
        base = torch.from_numpy(batch.written.base).to(kept.device)
        loss = loss + config.written.weight * anchor_loss(kept, base)
    return loss


def _passage_vectors(encoder: AgentEncoder, pooled: Tensor, batch: StepBatch) -> Tensor:
    sizes = [len(group.passages) for group in batch.groups]
    parts = zip(pooled.split(sizes), batch.given, strict=True)
    return torch.cat([_vectors(encoder, part, given) for part, given in parts])


def _vectors(encoder: AgentEncoder, pooled: Tensor, given: DrawnAges | None) -> Tensor:
    if given is None:
        return functional.normalize(encoder.project(pooled), dim=1)
    ages, types = torch.from_numpy(given.ages), torch.from_numpy(given.types)
    return encoder.memory_vectors(pooled, ages.to(pooled.device), types.to(pooled.device))


def question_loss(vectors: Tensor, batch: StepBatch, weights: LossWeights) -> Tensor:
    """Ranking over all groups, plus following the teacher inside each, plus the anchor.

    Args:
        vectors: Of all passages, then all questions, of length 1.
        batch: The groups.
        weights: How the parts are put together.
    """
    amount = len(batch.passages)
    scores = vectors[amount:] @ vectors[:amount].T
    positives = _positives(batch, scores.shape).to(scores.device)
    loss = ranking_loss(scores, positives, temperature=weights.temperature)
    if weights.teacher:
        loss = loss + weights.teacher * _teacher_part(scores, positives, batch, weights)
    if weights.anchor:
        loss = loss + weights.anchor * anchor_loss(vectors, _base_vectors(batch).to(vectors.device))
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
        teacher = torch.from_numpy(view.scores).to(scores.device) / weights.teacher_temperature
        teacher = teacher + weights.teacher_bonus * positives[inside]
        part = teacher_loss(scores[inside], teacher, temperature=weights.temperature)
        parts.append(part * len(group.questions))
        row, first = row + len(group.questions), first + len(group.passages)
    return torch.stack(parts).sum() / row


def _base_vectors(batch: StepBatch) -> Tensor:
    passages = [view.passages for view in batch.views]
    return torch.from_numpy(np.concatenate(passages + [view.questions for view in batch.views]))
