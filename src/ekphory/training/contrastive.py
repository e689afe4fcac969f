"""The losses of the embedder, and gradients of large batches in bounded memory.

Needs torch. Scores are cosines; every function returns a scalar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import torch

from ekphory.models.cores import usable_cores

Tensor: TypeAlias = Any
"""A torch tensor; torch is read as untyped."""


def ranking_loss(scores: Tensor, positives: Tensor, *, temperature: float) -> Tensor:
    """Multiple-negatives ranking with any number of positives: -log of their share.

    Source: van den Oord, Li and Vinyals, "Representation Learning with Contrastive Predictive
    Coding", 2018; with several positives Miech et al., "End-to-End Learning of Visual
    Representations from Uncurated Instructional Videos", CVPR 2020 (MIL-NCE).

    Args:
        scores: Shape (questions, passages).
        positives: True where the passage answers the question; same shape.
        temperature: What scores are divided by.
    """
    logits = scores / temperature
    answered = logits.masked_fill(~positives, float("-inf"))
    return (logits.logsumexp(dim=1) - answered.logsumexp(dim=1)).mean()


def teacher_loss(scores: Tensor, teacher: Tensor, *, temperature: float) -> Tensor:
    """Kullback-Leibler divergence of the student's distribution over passages from the teacher's.

    Args:
        scores: The student's, shape (questions, passages).
        teacher: The teacher's logits, same shape.
        temperature: What the student's scores are divided by.
    """
    wanted = teacher.log_softmax(dim=1)
    given = (scores / temperature).log_softmax(dim=1)
    return (wanted.exp() * (wanted - given)).sum(dim=1).mean()


def anchor_loss(vectors: Tensor, base: Tensor) -> Tensor:
    """One minus the mean cosine with the base model's vectors; both of length 1."""
    return 1 - (vectors * base).sum(dim=1).mean()


def plain_gradients(
    encode: Callable[[Any], Tensor],
    chunks: Sequence[Any],
    loss_of: Callable[[Tensor], Tensor],
    weights: Sequence[Tensor],
) -> float:
    """Encode all chunks, take the loss of all vectors together, and add its gradients up.

    Each chunk is encoded by one thread, and as many at once as there are cores: on a busy machine
    no thread waits for another at every layer. A GPU gets one chunk after the other. The sum has a
    fixed order.

    Args:
        encode: Gives the vectors of a chunk.
        chunks: What is encoded; the vectors are put together in this order.
        loss_of: Gives a scalar from all vectors.
        weights: What gets the gradients.
    """
    with _workers(weights) as workers:
        vectors = list(workers.map(encode, chunks))
        loss, parts = _loss_and_parts(vectors, loss_of)
        _add_up(weights, workers.map(lambda v, g: _gradients(v, g, weights), vectors, parts))
    return loss


def cached_gradients(
    encode: Callable[[Any], Tensor],
    chunks: Sequence[Any],
    loss_of: Callable[[Tensor], Tensor],
    weights: Sequence[Tensor],
) -> float:
    """Like `plain_gradients`, with the memory of one chunk and the time of one more encoding.

    Source: Gao, Zhang, Han and Callan, "Scaling Deep Contrastive Learning Batch Size under Memory
    Limited Setup", RepL4NLP 2021 (GradCache). The random state is put back before the second
    encoding, so that dropout is the same.
    """
    states, vectors = [], []
    with torch.no_grad():
        for chunk in chunks:
            states.append(torch.get_rng_state())
            vectors.append(encode(chunk))
    loss, parts = _loss_and_parts(vectors, loss_of)
    after = torch.get_rng_state()
    for chunk, state, part in zip(chunks, states, parts, strict=True):
        torch.set_rng_state(state)
        _add_up(weights, [_gradients(encode(chunk), part, weights)])
    torch.set_rng_state(after)
    return loss


def _loss_and_parts(
    vectors: Sequence[Tensor], loss_of: Callable[[Tensor], Tensor]
) -> tuple[float, Sequence[Tensor]]:
    leaf = torch.cat([part.detach() for part in vectors]).requires_grad_()
    loss = loss_of(leaf)
    loss.backward()
    return float(loss.detach()), leaf.grad.split([len(part) for part in vectors])


def _gradients(vectors: Tensor, part: Tensor, weights: Sequence[Tensor]) -> Sequence[Tensor]:
    gradients: Sequence[Tensor] = torch.autograd.grad(vectors, weights, part)
    return gradients


def _add_up(weights: Sequence[Tensor], found: Iterable[Sequence[Tensor]]) -> None:
    for gradients in found:
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.grad = gradient if weight.grad is None else weight.grad.add_(gradient)


def _workers(weights: Sequence[Tensor]) -> ThreadPoolExecutor:
    threads = 1 if any(weight.is_cuda for weight in weights) else usable_cores()
    return ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
