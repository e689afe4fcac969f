"""Trains the change reader: four layers above the lower ones of the bundled reranker.

Needs torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ekphory.models.changes import CHANGE_KINDS
from ekphory.models.onnx_change_reader import StatementLayout
from ekphory.models.shared_layers import SharedLayers
from ekphory_lab.training.change_topics import Topic, topic_pairs
from ekphory_lab.training.changes import PLAIN, RARE, LabelledPair, Scenario, pairs_for
from ekphory_lab.training.upper_layers import (
    UpperLayers,
    UpperTraining,
    train_upper_layers,
    weighted_entropy,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTraining(UpperTraining):
    """How it is trained.

    Attributes:
        unrelated: Most unrelated pairs of a scenario that tells changes by their consequences.
        plain_unrelated: The same of one that tells them plainly.
        every_oblique: Of the scenarios of the first kind one in so many.
        every_rare: Of those in files of rare kinds, which are regular, one in so many.
        of_a_topic: Pairs drawn of each topic.
        near_turns: How many pairs of neighbouring talk there are beside those that are written.
        near_memories: How often each memory of a written store is paired with one near it.
        near_answers: The same of each turn of a chat with an assistant.
        asides: Of all pairs one in so many has a turn about something else beside a text.
    """

    name: str = "change-reader"
    unrelated: int = 3
    plain_unrelated: int = 8
    every_oblique: int = 1
    every_rare: int = 4
    epochs: int = 2
    of_a_topic: int = 10
    near_turns: int = 8_000
    near_memories: int = 2
    near_answers: int = 3
    asides: int = 4


def written_pairs(
    scenarios: Sequence[Scenario], topics: Sequence[Topic], config: ChangeTraining
) -> list[LabelledPair]:
    """Return the written pairs that are trained on."""
    plain = [each for each in scenarios if each.name.startswith(PLAIN)]
    rare = [each for each in scenarios if each.name.startswith(RARE)]
    others = [each for each in scenarios if not each.name.startswith((PLAIN, RARE))]
    oblique = [*others[:: config.every_oblique], *rare[:: config.every_rare]]
    return [
        *pairs_for("training", plain, most_unrelated=config.plain_unrelated),
        *pairs_for("training", oblique, most_unrelated=config.unrelated),
        *topic_pairs("training", topics, each=config.of_a_topic),
    ]


def train_change_reader(
    training: Sequence[LabelledPair],
    *,
    base: Path,
    target: Path,
    config: ChangeTraining,
    tell: Callable[[str], None],
) -> UpperLayers:
    """Train, or go on where a checkpoint in `target` stands."""
    torch.manual_seed(config.seed)
    shared = SharedLayers()
    tokens = StatementLayout(shared.tokenizer).pairs([pair for pair, _ in training])
    labels = torch.tensor([CHANGE_KINDS.index(kind) for _, kind in training])
    model = UpperLayers(base, dropout=config.dropout, kinds=len(CHANGE_KINDS))
    entropy = weighted_entropy(labels, kinds=len(CHANGE_KINDS), smoothing=config.smoothing)

    def loss_of(chosen: Sequence[int], logits: Any, _tags: Any) -> Any:  # noqa: ANN401  torch's
        return entropy(logits, labels[chosen])

    train_upper_layers(
        model, tokens, shared=shared, loss_of=loss_of, config=config, target=target, tell=tell
    )
    return model
