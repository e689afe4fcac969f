"""Trains the capture reader: four layers above the lower ones of the bundled reranker.

Needs torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ekphory.models.captures import MESSAGE_CLASSES, MOST_REACHED
from ekphory.models.onnx_capture_reader import (
    KINDS,
    OUTCOMES,
    SPAN_KINDS,
    TAG_COUNT,
    CaptureLayout,
    Window,
)
from ekphory.models.shared_layers import SharedLayers
from ekphory_lab.training.capture_texts import LabelledMessage, Transcript
from ekphory_lab.training.upper_layers import (
    UpperLayers,
    UpperTraining,
    train_upper_layers,
    weighted_entropy,
)

_NOT_COUNTED = -100
"""A label that the loss passes over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureTraining(UpperTraining):
    """How it is trained.

    Attributes:
        tag_weight: Of the loss of tokens.
        named_weight: Of tokens that are named things, beside those that are none.
        reach_weight: Of the loss of how many messages before are needed.
    """

    name: str = "capture-reader"
    epochs: int = 4
    averaging: float = 0.998
    tag_weight: float = 4.0
    named_weight: float = 3.0
    reach_weight: float = 0.5


@dataclass(frozen=True, slots=True)
class LabelledWindow:
    """A window with what the model is to say of it.

    Attributes:
        window: What it reads.
        outcome: 0 for nothing, 1 for what steers, then the classes.
        reaches: How many messages before are needed; passed over where nothing is kept.
        tags: Of each token of the message.
    """

    window: Window
    outcome: int
    reaches: int
    tags: list[int]


def labelled_windows(
    transcripts: Sequence[Transcript], layout: CaptureLayout
) -> list[LabelledWindow]:
    """Return the first window of each message, with its labels."""
    found = []
    for transcript in transcripts:
        messages = [each.message for each in transcript.messages]
        seen = set()
        for window in layout.windows(messages):
            if window.place in seen:
                continue
            seen.add(window.place)
            labelled = transcript.messages[window.place]
            reached = min(labelled.reaches, MOST_REACHED)
            reaches = reached if labelled.worth == "keep" else _NOT_COUNTED
            tags = _tags(labelled, window)
            found.append(LabelledWindow(window, outcome_of(labelled), reaches, tags))
    return found


def outcome_of(labelled: LabelledMessage) -> int:
    """Return the place of what a message is worth among the logits."""
    if labelled.class_ is not None:
        return 2 + MESSAGE_CLASSES.index(labelled.class_)
    return int(labelled.worth == "steer")


def _tags(labelled: LabelledMessage, window: Window) -> list[int]:
    tags = []
    for start, end in window.offsets:
        tag = 0
        for span in labelled.spans:
            if span.start < end and start < span.end:
                tag = 1 + 2 * SPAN_KINDS.index(span.kind) + (start > span.start)
        tags.append(tag)
    return tags


def train_capture_reader(
    transcripts: Sequence[Transcript],
    *,
    base: Path,
    target: Path,
    config: CaptureTraining,
    tell: Callable[[str], None],
) -> UpperLayers:
    """Train, or go on where a checkpoint in `target` stands."""
    torch.manual_seed(config.seed)
    shared = SharedLayers()
    labelled = labelled_windows(transcripts, CaptureLayout(shared.tokenizer))
    outcomes = torch.tensor([each.outcome for each in labelled])
    reaches = torch.tensor([each.reaches for each in labelled])
    model = UpperLayers(base, dropout=config.dropout, kinds=KINDS, tags=TAG_COUNT)
    entropy = weighted_entropy(outcomes, kinds=OUTCOMES, smoothing=config.smoothing)
    reached = nn.CrossEntropyLoss(ignore_index=_NOT_COUNTED, reduction="sum")
    weights = torch.full((TAG_COUNT,), config.named_weight)
    weights[0] = 1.0
    tagged = nn.CrossEntropyLoss(weight=weights, ignore_index=_NOT_COUNTED)

    def loss_of(chosen: Sequence[int], logits: Any, tags: Any) -> Any:  # noqa: ANN401  torch's
        wanted = torch.full(tags.shape[:2], _NOT_COUNTED)
        for row, place in enumerate(chosen):
            each = labelled[place]
            begins = each.window.begins
            wanted[row, begins : begins + len(each.tags)] = torch.tensor(each.tags).long()
        parts = logits[:, :OUTCOMES], logits[:, OUTCOMES : OUTCOMES + MOST_REACHED + 1]
        kept = (reaches[chosen] >= 0).sum().clamp(min=1)
        return (
            entropy(parts[0], outcomes[chosen])
            + config.reach_weight * reached(parts[1], reaches[chosen]) / kept
            + config.tag_weight * tagged(tags.flatten(0, 1), wanted.flatten())
        )

    train_upper_layers(
        model,
        [each.window.tokens for each in labelled],
        shared=shared,
        loss_of=loss_of,
        config=config,
        target=target,
        tell=tell,
    )
    return model
