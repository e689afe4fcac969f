"""Trains layers above the lower ones of the bundled reranker, for a reader of something else.

The lower layers are those that ekphory brings, in 8 bits, and are not trained: their hidden states
are computed as the product does, and kept in memory for later epochs. Needs torch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from ekphory.models.onnx_reranker import PairTokens
from ekphory.models.shared_layers import HIDDEN, SharedLayers
from ekphory_lab.training.encoder import load_transformer, mixed_precision, new_optimizer
from ekphory_lab.training.run_files import RunConfig, note_loss
from ekphory_lab.training.upper_export import HEAD_FILE

KEPT_LAYERS = (2, 3, 4, 5)
"""Of the base encoder's six layers, those that are trained."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpperTraining(RunConfig):
    """How such layers are trained.

    Attributes:
        epochs: How often every pair is read.
        batch: Pairs a step.
        head_rate: Highest learning rate of the classifiers, which are new.
        dropout, smoothing: Of hidden states, and of the labels.
        averaging: What the mean of the weights keeps of itself each step; the model is that mean
            at the end. 0 takes the last weights.
    """

    name: str = "upper-layers"
    base: str = "all-MiniLM-L6-v2"
    mix: Mapping[str, float] = field(default_factory=dict)
    learning_rate: float = 8e-5
    seed: int = 25
    epochs: int = 3
    batch: int = 32
    head_rate: float = 1e-3
    dropout: float = 0.1
    smoothing: float = 0.05
    averaging: float = 0.0


class UpperLayers(nn.Module):  # type: ignore[misc]  # torch is read as untyped
    """The trained layers, a classifier over [CLS] and the mean of the tokens, and one of tokens.

    Args:
        base: The encoder whose upper layers they are, or the folder `model` of an earlier run,
            from which it goes on.
        dropout: Of hidden states.
        kinds: How many logits a pair has.
        tags: How many logits a token has; 0 for none.
    """

    def __init__(self, base: Path, *, dropout: float, kinds: int, tags: int = 0) -> None:
        super().__init__()
        encoder = load_transformer(base)
        width = encoder.config.hidden_size
        layers = encoder.encoder.layer
        goes_on = len(layers) == len(KEPT_LAYERS)
        self.layers = layers if goes_on else nn.ModuleList(layers[n] for n in KEPT_LAYERS)
        self.drop = nn.Dropout(dropout)
        self.out = nn.Linear(2 * width, kinds)
        self.tag = nn.Linear(width, tags) if tags else None
        if goes_on:
            kept = load_file(base / HEAD_FILE)
            for name, tensor in self.heads().items():
                tensor.data.copy_(kept[name])

    def forward(self, hidden: Any, mask: Any) -> tuple[Any, Any]:  # noqa: ANN401  torch's tensors
        """Return logits, shapes (pairs, kinds) and (pairs, tokens, tags)."""
        blocked = (1.0 - mask[:, None, None, :].float()) * torch.finfo(torch.float32).min
        for layer in self.layers:
            found = layer(hidden, attention_mask=blocked)
            hidden = self.drop(found[0] if isinstance(found, tuple) else found)
        counted = mask[:, :, None].float()
        mean = (hidden * counted).sum(dim=1) / counted.sum(dim=1)
        logits = self.out(torch.cat([hidden[:, 0], mean], dim=1).float())
        return logits, None if self.tag is None else self.tag(hidden.float())

    def heads(self) -> dict[str, Any]:
        """Return the classifiers' weights by their name in the file."""
        parts = {"": self.out} | ({} if self.tag is None else {"tag_": self.tag})
        return {
            f"{prefix}{name}": tensor
            for prefix, part in parts.items()
            for name, tensor in part.state_dict(keep_vars=True).items()
        }


class KeptStates:
    """Gives what the shared layers make of pairs, which is kept in 16 bits for later epochs."""

    def __init__(self, shared: SharedLayers, tokens: Sequence[PairTokens]) -> None:
        self._shared = shared
        self._tokens = tokens
        self._kept: dict[int, Any] = {}

    def of(self, places: Sequence[int]) -> tuple[Any, Any]:
        """Return hidden states and mask of some pairs, as tensors, shorter ones filled up."""
        if missing := [place for place in places if place not in self._kept]:
            found = self._shared.run([self._tokens[place] for place in missing])
            for place, hidden in zip(missing, found[HIDDEN], strict=True):
                length = len(self._tokens[place])
                self._kept[place] = torch.from_numpy(hidden[:length]).half()
        hidden = [self._kept[place] for place in places]
        padded = nn.utils.rnn.pad_sequence(hidden, batch_first=True).float()
        lengths = torch.tensor([len(each) for each in hidden])
        return padded, (torch.arange(padded.shape[1]) < lengths[:, None]).long()


def train_upper_layers(  # noqa: PLR0913  what a run needs
    model: UpperLayers,
    tokens: Sequence[PairTokens],
    *,
    shared: SharedLayers,
    loss_of: Callable[[Sequence[int], Any, Any], Any],
    config: UpperTraining,
    target: Path,
    tell: Callable[[str], None],
) -> None:
    """Train, or go on where a checkpoint in `target` stands.

    Args:
        model: What is trained.
        tokens: Of each pair.
        shared: The lower layers.
        loss_of: Gives the loss of some pairs from their places and the model's logits.
        config: How it is trained.
        target: Folder of the run.
        tell: Called with every step.
    """
    states = KeptStates(shared, tokens)
    order = [batch for epoch in range(config.epochs) for batch in _batches(tokens, config, epoch)]
    heads = {"params": list(model.heads().values()), "lr": config.head_rate}
    optimizer = new_optimizer(config, len(order), dict(model.layers.named_parameters()), heads)
    target.mkdir(parents=True, exist_ok=True)
    mean = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(config.averaging))
    restored = optimizer.restore_checkpoint(target)
    done = 0 if restored is None else int(restored["done"])
    if restored is not None:
        model.load_state_dict(restored["model"])
        mean.load_state_dict(restored["mean"])
    started = written = time.monotonic()
    model.train()
    for step, chosen in enumerate(order[done:], start=done + 1):
        hidden, mask = states.of(chosen)
        with mixed_precision():
            logits, tags = model(hidden, mask)
        loss = loss_of(chosen, logits.float(), None if tags is None else tags.float())
        loss.backward()
        optimizer.step()
        mean.update_parameters(model)
        note_loss(target, step, loss.item(), read={"pairs": len(chosen)})
        now = time.monotonic()
        if now - written > config.checkpoint_seconds or step == len(order):
            optimizer.write_checkpoint(
                target, done=step, model=model.state_dict(), mean=mean.state_dict()
            )
            written = now
        left = (now - started) / (step - done) * (len(order) - step)
        tell(f"step {step} of {len(order)}, loss {loss.item():.3f}, {left / 60:.0f} min left")
    model.load_state_dict(mean.module.state_dict())


def weighted_entropy(labels: Any, *, kinds: int, smoothing: float) -> Any:  # noqa: ANN401  torch's
    """Return the cross entropy in which a kind weighs by the root of how rare it is."""
    counts = torch.bincount(labels, minlength=kinds).double()
    weights = (counts.mean() / counts.clamp(min=1)).sqrt().float()
    return nn.CrossEntropyLoss(weight=weights, label_smoothing=smoothing)


def save_upper_layers(model: UpperLayers, base: Path, target: Path) -> None:
    """Write the trained layers as an encoder of their own, and the classifiers beside it."""
    encoder = load_transformer(base)
    encoder.encoder.layer = model.layers
    encoder.config.num_hidden_layers = len(model.layers)
    encoder.save_pretrained(target)
    heads = {name: tensor.detach().contiguous() for name, tensor in model.heads().items()}
    save_file(heads, target / HEAD_FILE)


def _batches(tokens: Sequence[PairTokens], config: UpperTraining, epoch: int) -> list[list[int]]:
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
