"""Trains the change reader: four layers above the lower ones of the bundled reranker.

The lower layers are those that ekphory brings, in 8 bits, and are not trained: their hidden states
are computed as the product does, batch by batch. Needs torch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

from ekphory.models.changes import CHANGE_KINDS, StatementPair
from ekphory.models.onnx_change_reader import SharedLayers, StatementLayout
from ekphory.models.onnx_reranker import PairTokens
from ekphory.models.reranker import SMALL_RERANKER, bundled_directory
from ekphory_lab.training.change_export import HEAD_FILE
from ekphory_lab.training.changes import LabelledPair
from ekphory_lab.training.encoder import load_transformer, mixed_precision
from ekphory_lab.training.run_files import rise_and_fall

KEPT_LAYERS = (2, 3, 4, 5)
"""Of the base encoder's six layers, those that are trained."""
CHECKPOINT = "checkpoint.pt"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTraining:
    """How it is trained.

    Attributes:
        epochs: How often every pair is read.
        batch: Pairs a step.
        rate, head_rate: Highest learning rate of the layers, and of what is new.
        unrelated: Most unrelated pairs of a scenario.
        near_turns: How many pairs of neighbouring talk there are beside those of the scenarios.
        every_conversation: Of the written conversations one in so many gives them.
        dropout, smoothing: Of hidden states, and of the labels.
        seed: Decides the order and what is dropped out.
    """

    epochs: int = 3
    batch: int = 32
    rate: float = 8e-5
    head_rate: float = 1e-3
    unrelated: int = 6
    near_turns: int = 4000
    every_conversation: int = 3
    dropout: float = 0.1
    smoothing: float = 0.05
    seed: int = 25


class UpperLayers(nn.Module):  # type: ignore[misc]  # torch is read as untyped
    """The trained layers and the classifier over [CLS] and the mean of the tokens."""

    def __init__(self, base: Path, *, dropout: float) -> None:
        super().__init__()
        encoder = load_transformer(base)
        self.config = encoder.config
        self.layers = nn.ModuleList(encoder.encoder.layer[number] for number in KEPT_LAYERS)
        self.drop = nn.Dropout(dropout)
        self.out = nn.Linear(2 * encoder.config.hidden_size, len(CHANGE_KINDS))

    def forward(self, hidden: Any, mask: Any) -> Any:  # noqa: ANN401  torch's tensors
        """Return logits, shape (pairs, kinds)."""
        blocked = (1.0 - mask[:, None, None, :].float()) * torch.finfo(torch.float32).min
        for layer in self.layers:
            found = layer(hidden, attention_mask=blocked)
            hidden = self.drop(found[0] if isinstance(found, tuple) else found)
        counted = mask[:, :, None].float()
        mean = (hidden * counted).sum(dim=1) / counted.sum(dim=1)
        return self.out(torch.cat([hidden[:, 0], mean], dim=1).float())


class PairStates:
    """Gives what the shared layers make of pairs."""

    def __init__(self) -> None:
        self.shared = SharedLayers(bundled_directory(SMALL_RERANKER))
        self.layout = StatementLayout(self.shared.tokenizer)

    def tokens(self, pairs: Sequence[StatementPair]) -> list[PairTokens]:
        """Tokenise pairs."""
        return self.layout.pairs(pairs)

    def states(self, tokens: Sequence[PairTokens]) -> tuple[Any, Any]:
        """Return hidden states and mask of a batch, as tensors."""
        hidden = torch.from_numpy(np.array(self.shared.run(tokens)))
        mask = torch.zeros(hidden.shape[:2], dtype=torch.long)
        for row, each in zip(mask, tokens, strict=True):
            row[: len(each)] = 1
        return hidden, mask


def train_change_reader(
    training: Sequence[LabelledPair],
    *,
    base: Path,
    target: Path,
    config: ChangeTraining,
    tell: Callable[[str], None],
    checkpoint_seconds: float = 120.0,
) -> UpperLayers:
    """Train, or go on where a checkpoint in `target` stands."""
    torch.manual_seed(config.seed)
    states = PairStates()
    tokens = states.tokens([pair for pair, _ in training])
    labels = [CHANGE_KINDS.index(kind) for _, kind in training]
    model = UpperLayers(base, dropout=config.dropout)
    counts = np.bincount(labels, minlength=len(CHANGE_KINDS)).astype(np.float64)
    weights = torch.tensor((counts.mean() / np.maximum(counts, 1)) ** 0.5, dtype=torch.float32)
    loss_of = nn.CrossEntropyLoss(weight=weights, label_smoothing=config.smoothing)
    order = [batch for epoch in range(config.epochs) for batch in _batches(tokens, config, epoch)]
    groups = [
        {"params": list(model.layers.parameters()), "lr": config.rate},
        {"params": list(model.out.parameters()), "lr": config.head_rate},
    ]
    adam = torch.optim.AdamW(groups, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(adam, rise_and_fall(len(order), warm_up=0.06))
    done = _restore(target, model, adam, schedule)
    started = written = time.monotonic()
    model.train()
    for step in range(done, len(order)):
        chosen = order[step]
        hidden, mask = states.states([tokens[place] for place in chosen])
        with mixed_precision():
            logits = model(hidden, mask)
        loss = loss_of(logits.float(), torch.tensor([labels[place] for place in chosen]))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        schedule.step()
        adam.zero_grad()
        now = time.monotonic()
        if now - written > checkpoint_seconds or step + 1 == len(order):
            _write(target, step + 1, model, adam, schedule)
            written = now
            left = (now - started) / (step + 1 - done) * (len(order) - step - 1)
            tell(
                f"step {step + 1} of {len(order)}, loss {loss.item():.3f}, {left / 60:.0f} min left"
            )
    return model


def save_upper_layers(model: UpperLayers, base: Path, target: Path) -> None:
    """Write the trained layers as an encoder of their own, and the classifier beside it."""
    encoder = load_transformer(base)
    encoder.encoder.layer = model.layers
    encoder.config.num_hidden_layers = len(model.layers)
    encoder.save_pretrained(target)
    head = {name: tensor.contiguous() for name, tensor in model.out.state_dict().items()}
    save_file(head, target / HEAD_FILE)


def _batches(tokens: Sequence[PairTokens], config: ChangeTraining, epoch: int) -> list[list[int]]:
    """Return batches of about equal lengths, in another order each epoch."""
    chance = Random(config.seed * 1000 + epoch)  # noqa: S311
    places = list(range(len(tokens)))
    chance.shuffle(places)
    near = 40 * config.batch
    parts = [
        sorted(places[start : start + near], key=lambda place: len(tokens[place]))
        for start in range(0, len(places), near)
    ]
    batches = [
        part[start : start + config.batch]
        for part in parts
        for start in range(0, len(part), config.batch)
    ]
    chance.shuffle(batches)
    return batches


def _write(target: Path, done: int, model: Any, adam: Any, schedule: Any) -> None:  # noqa: ANN401
    target.mkdir(parents=True, exist_ok=True)
    content = {
        "done": done,
        "model": model.state_dict(),
        "adam": adam.state_dict(),
        "schedule": schedule.state_dict(),
        "random": torch.get_rng_state(),
    }
    partial = target / f"{CHECKPOINT}.partial"
    torch.save(content, partial)
    partial.replace(target / CHECKPOINT)


def _restore(target: Path, model: Any, adam: Any, schedule: Any) -> int:  # noqa: ANN401
    path = target / CHECKPOINT
    if not path.is_file():
        return 0
    content = torch.load(path, weights_only=True)
    model.load_state_dict(content["model"])
    adam.load_state_dict(content["adam"])
    schedule.load_state_dict(content["schedule"])
    torch.set_rng_state(content["random"])
    return int(content["done"])
