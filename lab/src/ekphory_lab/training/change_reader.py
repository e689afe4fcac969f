"""Trains the change reader: four layers above the lower ones of the bundled reranker.

The lower layers are those that ekphory brings, in 8 bits, and are not trained: their hidden states
are computed as the product does, batch by batch. Needs torch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn

from ekphory.models.changes import CHANGE_KINDS, StatementPair
from ekphory.models.onnx_change_reader import HIDDEN, MASK, SharedLayers, StatementLayout
from ekphory.models.onnx_reranker import PairTokens
from ekphory.models.reranker import SMALL_RERANKER, bundled_directory
from ekphory_lab.training.change_export import HEAD_FILE
from ekphory_lab.training.changes import LabelledPair
from ekphory_lab.training.encoder import load_transformer, mixed_precision, new_optimizer
from ekphory_lab.training.run_files import RunConfig, note_loss

KEPT_LAYERS = (2, 3, 4, 5)
"""Of the base encoder's six layers, those that are trained."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTraining(RunConfig):
    """How it is trained.

    Attributes:
        epochs: How often every pair is read.
        batch: Pairs a step.
        head_rate: Highest learning rate of the classifier, which is new.
        unrelated: Most unrelated pairs of a scenario.
        near_turns: How many pairs of neighbouring talk there are beside those of the scenarios.
        every_conversation: Of the written conversations one in so many gives them.
        dropout, smoothing: Of hidden states, and of the labels.
    """

    name: str = "change-reader"
    base: str = "all-MiniLM-L6-v2"
    mix: Mapping[str, float] = field(default_factory=dict)
    learning_rate: float = 8e-5
    seed: int = 25
    epochs: int = 3
    batch: int = 32
    head_rate: float = 1e-3
    unrelated: int = 6
    near_turns: int = 4000
    every_conversation: int = 3
    dropout: float = 0.1
    smoothing: float = 0.05


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
        found = self.shared.run(tokens)
        return torch.from_numpy(found[HIDDEN]), torch.from_numpy(found[MASK])


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
    states = PairStates()
    tokens = states.tokens([pair for pair, _ in training])
    labels = torch.tensor([CHANGE_KINDS.index(kind) for _, kind in training])
    model = UpperLayers(base, dropout=config.dropout)
    loss_of = _weighted_loss(labels, smoothing=config.smoothing)
    order = [batch for epoch in range(config.epochs) for batch in _batches(tokens, config, epoch)]
    head = {"params": list(model.out.parameters()), "lr": config.head_rate}
    optimizer = new_optimizer(config, len(order), dict(model.layers.named_parameters()), head)
    target.mkdir(parents=True, exist_ok=True)
    restored = optimizer.restore_checkpoint(target)
    done = 0 if restored is None else int(restored["done"])
    if restored is not None:
        model.load_state_dict(restored["model"])
    started = written = time.monotonic()
    model.train()
    for step, chosen in enumerate(order[done:], start=done + 1):
        hidden, mask = states.states([tokens[place] for place in chosen])
        with mixed_precision():
            logits = model(hidden, mask)
        loss = loss_of(logits.float(), labels[chosen])
        loss.backward()
        optimizer.step()
        note_loss(target, step, loss.item(), read={"pairs": len(chosen)})
        now = time.monotonic()
        if now - written > config.checkpoint_seconds or step == len(order):
            optimizer.write_checkpoint(target, done=step, model=model.state_dict())
            written = now
        left = (now - started) / (step - done) * (len(order) - step)
        tell(f"step {step} of {len(order)}, loss {loss.item():.3f}, {left / 60:.0f} min left")
    return model


def _weighted_loss(labels: Any, *, smoothing: float) -> Any:  # noqa: ANN401  torch's
    """Return the cross entropy in which a kind weighs by the root of how rare it is."""
    counts = torch.bincount(labels, minlength=len(CHANGE_KINDS)).double()
    weights = (counts.mean() / counts.clamp(min=1)).sqrt().float()
    return nn.CrossEntropyLoss(weight=weights, label_smoothing=smoothing)


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
