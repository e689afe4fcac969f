"""A training run of the embedder: one loop, resumable, with a manifest. Needs torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import torch

from ekphory.training.agent_encoder import AgentEncoder
from ekphory.training.embedder_config import EmbedderConfig
from ekphory.training.encoder_directory import load_agent_encoder, save_agent_encoder
from ekphory.training.group_stream import TrainingData
from ekphory.training.learning_rate import rise_and_fall
from ekphory.training.precision import training_device
from ekphory.training.run_files import (
    CHECKPOINT_FILE,
    MODEL_FOLDER,
    claim_folder,
    forget_losses,
    note_loss,
)
from ekphory.training.run_manifest import run_manifest
from ekphory.training.step_batches import step_batches
from ekphory.training.teacher import BaseModel
from ekphory.training.training_step import StepBatch, accumulate_gradients

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlaces:
    """Where a run reads and writes.

    Attributes:
        base: Directory of the weights to start from, in sentence-transformers' form, with or
            without components.
        target: Gets `manifest.json`, `losses.jsonl`, `checkpoint.pt` and the folder `model`.
    """

    base: Path
    target: Path


@dataclass(frozen=True, slots=True)
class _State:
    encoder: AgentEncoder
    transformer: list[Any]
    trained: list[Any]
    optimizer: Any
    schedule: Any


def train_embedder(
    config: EmbedderConfig,
    data: TrainingData,
    teacher: BaseModel,
    *,
    places: RunPlaces,
    progress: Progress,
) -> Path:
    """Train, on the GPU where there is one, or go on where a run in the same target stopped.

    Resuming on a processor gives the same weights as a run that was never stopped.

    Args:
        config: What is trained, and how.
        data: The sources.
        teacher: The dense half of the teacher and the anchor; the base weights, usually.
        places: Where to read and write.
        progress: Is told the loss, the steps done and the steps in all.

    Returns:
        The trained model's directory.

    Raises:
        InvalidInput: The target holds a run of another configuration or other data.
        ModelError: The base weights cannot be loaded.
    """
    torch.manual_seed(config.seed)
    manifest = run_manifest(config, base=places.base, hashes=data.hashes)
    encoder = load_agent_encoder(places.base)
    places.target.mkdir(parents=True, exist_ok=True)
    claim_folder(places.target, manifest)
    encoder.parts.to(training_device())
    state = _new_state(config, encoder)
    first = _restore(state, places.target)
    batches = step_batches(config, data, teacher, first=first)
    saved = monotonic()
    for step in range(first, config.steps):
        batch = next(batches)
        loss = _step(state, batch, config)
        note_loss(places.target, step, loss, read={"texts": len(batch.texts)})
        progress(f"loss {loss:.3f}", step + 1, config.steps)
        if monotonic() - saved > config.checkpoint_seconds:
            _checkpoint(state, places.target, done=step + 1)
            saved = monotonic()
    _checkpoint(state, places.target, done=config.steps)
    return places.target / MODEL_FOLDER


def _step(state: _State, batch: StepBatch, config: EmbedderConfig) -> float:
    loss = accumulate_gradients(state.encoder, batch, config, state.transformer)
    torch.nn.utils.clip_grad_norm_(state.trained, config.largest_gradient)
    state.optimizer.step()
    state.schedule.step()
    state.optimizer.zero_grad()
    return loss


def _new_state(config: EmbedderConfig, encoder: AgentEncoder) -> _State:
    _freeze(encoder, config.frozen_layers)
    encoder.parts.train()
    transformer, projection = (
        [
            (name, weight)
            for name, weight in encoder.parts[part].named_parameters(prefix=part)
            if weight.requires_grad
        ]
        for part in ("encoder", "projection")
    )
    named = transformer + projection
    spared = [weight for name, weight in named if name.endswith("bias") or "norm" in name.lower()]
    decayed = [weight for name, weight in named if not any(weight is each for each in spared)]
    components = _components(encoder, config)
    optimizer = torch.optim.AdamW(
        [
            {"params": decayed, "weight_decay": config.weight_decay},
            {"params": spared, "weight_decay": 0.0},
            {"params": components, "weight_decay": 0.0, "lr": config.memories.learning_rate},
        ],
        lr=config.learning_rate,
    )
    rate = rise_and_fall(config.steps, warm_up=config.warm_up)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    trained = [weight for _, weight in named] + components
    return _State(encoder, [weight for _, weight in transformer], trained, optimizer, schedule)


def _components(encoder: AgentEncoder, config: EmbedderConfig) -> list[Any]:
    if not config.memories.samples_per_step:
        return []
    names = ("age", "kind", "importance", "memory_type")
    return [weight for name in names for weight in encoder.parts[name].parameters()]


def _freeze(encoder: AgentEncoder, layers: int) -> None:
    transformer = encoder.parts["encoder"]
    frozen = [transformer.get_input_embeddings()]
    if layers:
        frozen = [transformer.embeddings, *_layers(transformer)[:layers]]
    for module in frozen:
        module.requires_grad_(False)
    if getattr(transformer, "pooler", None) is not None:
        transformer.pooler.requires_grad_(False)


def _layers(transformer: Any) -> Any:  # noqa: ANN401  torch's modules
    """Give the layers, where BERT has them or where ModernBERT has them."""
    inner = getattr(transformer, "encoder", None)
    return transformer.layers if inner is None else inner.layer


def _checkpoint(state: _State, target: Path, *, done: int) -> None:
    content = {
        "done": done,
        "parts": state.encoder.parts.state_dict(),
        "optimizer": state.optimizer.state_dict(),
        "schedule": state.schedule.state_dict(),
        "random": torch.get_rng_state(),
    }
    partial = target / f"{CHECKPOINT_FILE}.partial"
    torch.save(content, partial)
    partial.replace(target / CHECKPOINT_FILE)
    save_agent_encoder(state.encoder, target / MODEL_FOLDER)


def _restore(state: _State, target: Path) -> int:
    path = target / CHECKPOINT_FILE
    if not path.is_file():
        return 0
    # The random state belongs on the processor; the rest goes where the weights are.
    content = torch.load(path, weights_only=True, map_location="cpu")
    state.encoder.parts.load_state_dict(content["parts"])
    state.optimizer.load_state_dict(content["optimizer"])
    state.schedule.load_state_dict(content["schedule"])
    torch.set_rng_state(content["random"])
    forget_losses(target, after=int(content["done"]))
    return int(content["done"])
