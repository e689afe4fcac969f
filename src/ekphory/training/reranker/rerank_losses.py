"""The losses of a reranker. Needs torch. All take logits of shape (questions, candidates)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from ekphory.training.contrastive import Tensor, teacher_loss
from ekphory.training.reranker.reranker_config import RerankLossWeights

_NEVER = -1e4
"""Stands for a logit of minus infinity where a difference of two must stay finite."""


@dataclass(frozen=True, slots=True)
class RerankTargets:
    """What is known of the candidates; tensors of shape (questions, candidates).

    Attributes:
        present: False where a question has fewer candidates than the longest list.
        relevant: True where the candidate answers.
        labels: Soft labels in [0, 1].
    """

    present: Tensor
    relevant: Tensor
    labels: Tensor

    def on(self, device: Any) -> RerankTargets:  # noqa: ANN401  torch's
        """Give the same on a device."""
        return RerankTargets(
            self.present.to(device), self.relevant.to(device), self.labels.to(device)
        )


def rerank_loss(
    logits: Tensor, targets: RerankTargets, weights: RerankLossWeights, followed: Tensor | None
) -> Tensor:
    """Put the parts together.

    Args:
        logits: The model's.
        targets: What is known of the candidates.
        weights: How.
        followed: Logits of the model that is followed; None where none is.
    """
    loss = weights.contrast * info_nce(logits, targets, temperature=weights.temperature)
    if weights.soft:
        loss = loss + weights.soft * soft_cross_entropy(logits, targets)
    if followed is not None:
        present = targets.present
        student, teacher = (each.masked_fill(~present, _NEVER) for each in (logits, followed))
        loss = loss + weights.following * teacher_loss(student, teacher, temperature=1.0)
    return loss


def info_nce(logits: Tensor, targets: RerankTargets, *, temperature: float) -> Tensor:
    """Each answer against all wrong candidates of its question, and against no other answer.

    -log(exp(p) / (exp(p) + sum exp(n))), the mean over the answers of a question and then over the
    questions. Source: van den Oord, Li and Vinyals, 2018; several answers as ours.
    """
    scaled = logits / temperature
    wrong = targets.present & ~targets.relevant
    against = scaled.masked_fill(~wrong, float("-inf")).logsumexp(dim=1, keepdim=True)
    each = functional.softplus(against - scaled)
    answers = targets.relevant.float()
    return ((each * answers).sum(dim=1) / answers.sum(dim=1)).mean()


def soft_cross_entropy(logits: Tensor, targets: RerankTargets) -> Tensor:
    """Binary cross-entropy with the soft labels, the mean over all candidates."""
    each = functional.binary_cross_entropy_with_logits(logits, targets.labels, reduction="none")
    return each[targets.present].mean()


def padded(rows: list[list[float]], width: int) -> Tensor:
    """Put rows of different length into one tensor, with zeros at their end."""
    return torch.tensor([[*row, *[0.0] * (width - len(row))] for row in rows])
