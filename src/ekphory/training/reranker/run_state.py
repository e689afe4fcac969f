"""What changes while a reranker is trained, and how it is written down. Needs torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ekphory.errors import InvalidInput
from ekphory.training.contrastive import Tensor
from ekphory.training.learning_rate import rise_and_fall
from ekphory.training.reranker.cross_encoder import (
    HEAD_PARTS,
    CrossEncoder,
    load_cross_encoder,
    with_layers,
)
from ekphory.training.reranker.cross_encoder_graph import HEAD_FILE
from ekphory.training.reranker.pair_model import PairModel, trained_weights
from ekphory.training.reranker.reranker_config import RerankerConfig
from ekphory.training.reranker.weight_mean import WeightMean
from ekphory.training.run_files import CHECKPOINT_FILE, forget_losses


@dataclass(frozen=True, slots=True)
class RunState:
    """A run between two steps.

    Attributes:
        model: What is trained.
        followed: The model whose scores it follows; None where it follows none.
        trained: The weights that are trained.
        optimizer, schedule: torch's.
        mean: The mean of the last weights.
    """

    model: PairModel
    followed: PairModel | None
    trained: list[Tensor]
    optimizer: Any
    schedule: Any
    mean: WeightMean


def new_state(config: RerankerConfig, base: Path, followed: Path | None = None) -> RunState:
    """Load the base, and the model that is followed, and begin.

    Raises:
        InvalidInput: The base has not the layers that are to be kept, or the configuration follows
            a model and there is none, or the reverse.
        MissingExtra: The architecture needs peft, which is not installed.
        ModelError: The base cannot be loaded.
    """
    model, larger = _models(config, base, followed)
    named = trained_weights(model)
    head = [weight for name, weight in named.items() if name.partition(".")[0] in HEAD_PARTS[1:]]
    body = {name: weight for name, weight in named.items() if not _among(weight, head)}
    spared = [weight for name, weight in body.items() if _is_spared(name)]
    decayed = [weight for weight in body.values() if not _among(weight, spared)]
    head_rate = config.head_factor * config.learning_rate
    optimizer = torch.optim.AdamW(
        [
            {"params": decayed, "weight_decay": config.weight_decay},
            {"params": spared, "weight_decay": 0.0},
            {"params": head, "weight_decay": config.weight_decay, "lr": head_rate},
        ],
        lr=config.learning_rate,
    )
    rate = rise_and_fall(config.steps, warm_up=config.warm_up)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    return RunState(model, larger, list(named.values()), optimizer, schedule, WeightMean())


def write_checkpoint(state: RunState, target: Path, *, done: int) -> None:
    """Write all that a run needs to go on; frozen weights are the base's."""
    content = {
        "done": done,
        "weights": [weight.detach() for weight in state.trained],
        "optimizer": state.optimizer.state_dict(),
        "schedule": state.schedule.state_dict(),
        "mean": state.mean.state(),
        "random": torch.get_rng_state(),
    }
    partial = target / f"{CHECKPOINT_FILE}.partial"
    torch.save(content, partial)
    partial.replace(target / CHECKPOINT_FILE)


def restore_checkpoint(state: RunState, target: Path) -> int:
    """Bring the state to the run's last checkpoint; returns how many steps it has done."""
    path = target / CHECKPOINT_FILE
    if not path.is_file():
        return 0
    content = torch.load(path, weights_only=True)
    with torch.no_grad():
        for weight, saved in zip(state.trained, content["weights"], strict=True):
            weight.copy_(saved)
    state.optimizer.load_state_dict(content["optimizer"])
    state.schedule.load_state_dict(content["schedule"])
    state.mean.restore(content["mean"])
    torch.set_rng_state(content["random"])
    forget_losses(target, after=int(content["done"]))
    return int(content["done"])


def _models(
    config: RerankerConfig, base: Path, followed: Path | None
) -> tuple[PairModel, PairModel | None]:
    if followed is not None and not config.loss.following:
        raise InvalidInput(
            "followed",
            str(followed),
            f"the configuration {config.name} follows no model",
            "Leave it out, or take `--config following`.",
        )
    if config.architecture == "yes_no":
        from ekphory.training.reranker.yes_no_model import load_yes_no_model

        language_model = load_yes_no_model(base, config.lora)
        language_model.parts.train()
        return language_model, None
    whole = load_cross_encoder(base)
    model = with_layers(whole, config.layers) if config.layers else whole
    model.parts["encoder"].get_input_embeddings().requires_grad_(False)
    model.parts.train()
    return model, _followed(config, whole, followed)


def _followed(
    config: RerankerConfig, whole: CrossEncoder, followed: Path | None
) -> CrossEncoder | None:
    if not config.loss.following:
        return None
    if followed is not None:
        return _reading_alike(whole, followed)
    if not config.layers:
        raise InvalidInput(
            "followed",
            None,
            f"the configuration {config.name} follows the scores of a larger model",
            "Give its directory as `--followed`.",
        )
    return whole


def _reading_alike(model: CrossEncoder, place: Path) -> CrossEncoder:
    remedy = "Give the directory of a reranker of the same vocabulary."
    if not (place / HEAD_FILE).is_file():
        raise InvalidInput("followed", str(place), f"has no {HEAD_FILE}, so no scores", remedy)
    followed = load_cross_encoder(place)
    if followed.tokenizer.get_vocab() != model.tokenizer.get_vocab():
        raise InvalidInput("followed", str(place), "reads other tokens than the base", remedy)
    return followed


def _is_spared(name: str) -> bool:
    return name.endswith("bias") or "LayerNorm" in name


def _among(weight: Tensor, weights: list[Tensor]) -> bool:
    return any(weight is each for each in weights)
