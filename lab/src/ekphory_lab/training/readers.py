"""Trains the readers of statements and dialogues: layers above the lower ones of a reranker.

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

from ekphory.models import onnx_capture_reader as capture
from ekphory.models.captures import MOST_REACHED
from ekphory.models.changes import CHANGE_KINDS
from ekphory.models.onnx_change_reader import StatementLayout
from ekphory.models.onnx_models import PairTokens
from ekphory.models.shared_layers import HIDDEN, SharedLayers
from ekphory_lab.training import run_files
from ekphory_lab.training.capture_texts import NOT_COUNTED, Transcript, labelled_windows
from ekphory_lab.training.changes import LabelledPair
from ekphory_lab.training.encoder import load_transformer, mixed_precision, new_optimizer
from ekphory_lab.training.reader_export import HEAD_FILE

KEPT_LAYERS = (2, 3, 4, 5)
"""Of the base encoder's six layers, those that are trained."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpperTraining(run_files.RunConfig):
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
        self.tokens = tokens
        self._kept: dict[int, Any] = {}

    def of(self, places: Sequence[int]) -> tuple[Any, Any]:
        """Return hidden states and mask of some pairs, as tensors, shorter ones filled up."""
        if missing := [place for place in places if place not in self._kept]:
            found = self._shared.run([self.tokens[place] for place in missing])
            for place, hidden in zip(missing, found[HIDDEN], strict=True):
                length = len(self.tokens[place])
                self._kept[place] = torch.from_numpy(hidden[:length]).half()
        hidden = [self._kept[place] for place in places]
        padded = nn.utils.rnn.pad_sequence(hidden, batch_first=True).float()
        lengths = torch.tensor([len(each) for each in hidden])
        return padded, (torch.arange(padded.shape[1]) < lengths[:, None]).long()


def _train_upper_layers(
    model: UpperLayers,
    states: KeptStates,
    *,
    loss_of: Callable[[Sequence[int], Any, Any], Any],
    config: UpperTraining,
    places: run_files.RunPlaces,
    tell: Callable[[str], None],
) -> Path:
    """Train, or go on where a checkpoint in the target stands; return the folder of the model.

    Args:
        model: What is trained.
        states: What it reads.
        loss_of: Gives the loss of some pairs from their places and the model's logits.
        config: How it is trained.
        places: The encoder whose upper layers they are, and the folder of the run.
        tell: Called with every step.
    """
    tokens, target = states.tokens, places.target
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
        run_files.note_loss(target, step, loss.item(), read={"pairs": len(chosen)})
        now = time.monotonic()
        if now - written > config.checkpoint_seconds or step == len(order):
            parts = {"model": model.state_dict(), "mean": mean.state_dict()}
            optimizer.write_checkpoint(target, done=step, **parts)
            written = now
        left = (now - started) / (step - done) * (len(order) - step)
        tell(f"step {step} of {len(order)}, loss {loss.item():.3f}, {left / 60:.0f} min left")
    model.load_state_dict(mean.module.state_dict())
    return _save_upper_layers(model, places.base, target / run_files.MODEL_FOLDER)


def _weighted_entropy(labels: Any, *, kinds: int, smoothing: float) -> Any:  # noqa: ANN401  torch's
    """Return the cross entropy in which a kind weighs by the root of how rare it is."""
    counts = torch.bincount(labels, minlength=kinds).double()
    weights = (counts.mean() / counts.clamp(min=1)).sqrt().float()
    return nn.CrossEntropyLoss(weight=weights, label_smoothing=smoothing)


def _save_upper_layers(model: UpperLayers, base: Path, target: Path) -> Path:
    """Write the trained layers as an encoder of their own, and the classifiers beside it."""
    encoder = load_transformer(base)
    encoder.encoder.layer = model.layers
    encoder.config.num_hidden_layers = len(model.layers)
    encoder.save_pretrained(target)
    heads = {name: tensor.detach().contiguous() for name, tensor in model.heads().items()}
    save_file(heads, target / HEAD_FILE)
    return target


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


# The change reader: of two statements, what the newer one means for the older one.


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTraining(UpperTraining):
    """How the change reader is trained."""

    name: str = "change-reader"
    epochs: int = 2


def train_change_reader(
    training: Sequence[LabelledPair],
    *,
    places: run_files.RunPlaces,
    config: ChangeTraining,
    tell: Callable[[str], None],
) -> Path:
    """Train, or go on where a checkpoint in the target stands; return the folder of the model."""
    torch.manual_seed(config.seed)
    shared = SharedLayers()
    tokens = StatementLayout(shared.tokenizer).pairs([pair for pair, _ in training])
    labels = torch.tensor([CHANGE_KINDS.index(kind) for _, kind in training])
    model = UpperLayers(places.base, dropout=config.dropout, kinds=len(CHANGE_KINDS))
    entropy = _weighted_entropy(labels, kinds=len(CHANGE_KINDS), smoothing=config.smoothing)

    def loss_of(chosen: Sequence[int], logits: Any, _tags: Any) -> Any:  # noqa: ANN401  torch's
        return entropy(logits, labels[chosen])

    states = KeptStates(shared, tokens)
    return _train_upper_layers(
        model, states, loss_of=loss_of, config=config, places=places, tell=tell
    )


# The capture reader: what of a dialogue's messages is worth keeping, and what they name.


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureTraining(UpperTraining):
    """How the capture reader is trained.

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


def train_capture_reader(
    transcripts: Sequence[Transcript],
    *,
    places: run_files.RunPlaces,
    config: CaptureTraining,
    tell: Callable[[str], None],
) -> Path:
    """Train, or go on where a checkpoint in the target stands; return the folder of the model."""
    torch.manual_seed(config.seed)
    shared = SharedLayers()
    labelled = labelled_windows(transcripts, capture.CaptureLayout(shared.tokenizer))
    outcomes = torch.tensor([each.outcome for each in labelled])
    reaches = torch.tensor([each.reaches for each in labelled])
    sizes = {"kinds": capture.KINDS, "tags": capture.TAG_COUNT}
    model = UpperLayers(places.base, dropout=config.dropout, **sizes)
    entropy = _weighted_entropy(outcomes, kinds=capture.OUTCOMES, smoothing=config.smoothing)
    reached = nn.CrossEntropyLoss(ignore_index=NOT_COUNTED, reduction="sum")
    weights = torch.full((capture.TAG_COUNT,), config.named_weight)
    weights[0] = 1.0
    tagged = nn.CrossEntropyLoss(weight=weights, ignore_index=NOT_COUNTED)

    def loss_of(chosen: Sequence[int], logits: Any, tags: Any) -> Any:  # noqa: ANN401  torch's
        wanted = torch.full(tags.shape[:2], NOT_COUNTED)
        for row, place in enumerate(chosen):
            each = labelled[place]
            begins = each.window.begins
            wanted[row, begins : begins + len(each.tags)] = torch.tensor(each.tags).long()
        said = logits[:, : capture.OUTCOMES]
        reach = logits[:, capture.OUTCOMES : capture.OUTCOMES + MOST_REACHED + 1]
        kept = (reaches[chosen] >= 0).sum().clamp(min=1)
        return (
            entropy(said, outcomes[chosen])
            + config.reach_weight * reached(reach, reaches[chosen]) / kept
            + config.tag_weight * tagged(tags.flatten(0, 1), wanted.flatten())
        )

    states = KeptStates(shared, [each.window.tokens for each in labelled])
    return _train_upper_layers(
        model, states, loss_of=loss_of, config=config, places=places, tell=tell
    )
