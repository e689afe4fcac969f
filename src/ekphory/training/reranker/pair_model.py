"""What the training loop needs of a model, whatever it is made of. Needs torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ekphory.training.contrastive import Tensor
from ekphory.training.precision import mixed_precision
from ekphory.training.reranker.examples import RerankExample


class TokenPair(Protocol):
    """A question and a passage as tokens."""

    @property
    def ids(self) -> list[int]:
        """Token ids of both."""
        ...


@dataclass(frozen=True, slots=True)
class PairBatch:
    """Pairs padded to one length; tensors of shape (pairs, tokens).

    Attributes:
        ids: Token ids.
        mask: 1 for each token, 0 for padding.
        type_ids: Which side a token belongs to; None for models that do not ask.
    """

    ids: Tensor
    mask: Tensor
    type_ids: Tensor | None = None


class PairModel(Protocol):
    """A model that gives one logit for each pair."""

    @property
    def parts(self) -> Any:  # noqa: ANN401  torch's modules
        """A torch module with all weights; those that are trained require gradients."""
        ...

    @property
    def workers(self) -> int:
        """How many chunks are computed at once."""
        ...

    def pairs(self, example: RerankExample) -> Sequence[TokenPair]:
        """Tokenise an example's candidates with its question."""
        ...

    def batch(self, pairs: Sequence[Any]) -> PairBatch:
        """Pad pairs to the longest."""
        ...

    def logits(self, batch: PairBatch) -> Tensor:
        """Score pairs; shape (pairs,), in float."""
        ...

    def save(self, directory: Path) -> None:
        """Write the trained model; it may be used no more in training."""
        ...


def training_logits(model: PairModel, batch: PairBatch) -> Tensor:
    """Score pairs in the device's fastest precision."""
    with mixed_precision(batch.ids.device.type):
        return model.logits(batch)


def trained_weights(model: PairModel) -> dict[str, Tensor]:
    """Give the weights that require gradients, by name."""
    return {name: weight for name, weight in model.parts.named_parameters() if weight.requires_grad}
