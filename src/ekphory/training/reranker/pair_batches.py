"""Examples as batches of pairs, and their logits put back in order. Needs torch."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch

from ekphory.training.contrastive import Tensor
from ekphory.training.reranker.examples import RerankExample
from ekphory.training.reranker.pair_model import PairBatch, PairModel, training_logits
from ekphory.training.reranker.rerank_losses import RerankTargets, padded


@dataclass(frozen=True, slots=True)
class PairBatches:
    """The pairs of some examples in chunks of similar length.

    Attributes:
        chunks: What is encoded.
        order: Which pair, counted over all examples, stands at each place of the chunks.
        sizes: How many candidates each example has.
    """

    chunks: Sequence[PairBatch]
    order: Tensor
    sizes: Sequence[int]

    @property
    def device(self) -> Any:  # noqa: ANN401  torch's
        """Where the pairs are."""
        return self.chunks[0].ids.device

    def table(self, logits: Tensor) -> Tensor:
        """Bring logits in the order of the chunks to shape (examples, candidates), 0 if absent."""
        order = self.order.to(logits.device)
        ordered = torch.empty_like(logits).index_copy(0, order, logits)
        parts = ordered.split(list(self.sizes))
        return torch.nn.utils.rnn.pad_sequence(parts, batch_first=True)


def pair_batches(
    model: PairModel, examples: Sequence[RerankExample], *, chunk_pairs: int
) -> PairBatches:
    """Tokenise all pairs and cut them into chunks."""
    pairs = [pair for example in examples for pair in model.pairs(example)]
    order = sorted(range(len(pairs)), key=lambda place: len(pairs[place].ids))
    chunks = [
        model.batch([pairs[place] for place in order[start : start + chunk_pairs]])
        for start in range(0, len(order), chunk_pairs)
    ]
    return PairBatches(
        chunks, torch.tensor(order), [len(example.candidates) for example in examples]
    )


def targets_of(examples: Sequence[RerankExample]) -> RerankTargets:
    """Give what is known of the examples' candidates; without soft labels 1 for answers, 0 else."""
    width = max(len(example.candidates) for example in examples)
    relevant = [[float(each.relevant) for each in example.candidates] for example in examples]
    labels = [list(example.labels) or own for example, own in zip(examples, relevant, strict=True)]
    return RerankTargets(
        padded([[1.0] * len(row) for row in relevant], width).bool(),
        padded(relevant, width).bool(),
        padded(labels, width),
    )


def score_batches(model: PairModel, batches: PairBatches) -> Tensor:
    """Score without gradients; shape (examples, candidates)."""

    def score(chunk: PairBatch) -> Tensor:
        with torch.no_grad():
            return training_logits(model, chunk)

    if model.workers == 1:
        return batches.table(torch.cat([score(chunk) for chunk in batches.chunks]))
    threads = {"initializer": torch.set_num_threads, "initargs": (1,)}
    with ThreadPoolExecutor(model.workers, **threads) as workers:
        return batches.table(torch.cat(list(workers.map(score, batches.chunks))))
