"""The files of a training run, and what it was made from."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from ekphory import __version__
from ekphory.errors import InvalidInput
from ekphory_lab.training.texts import sha256_of

# What a training run was made from: enough to repeat it.

MANIFEST_FILE = "manifest.json"
_LIBRARIES = ("torch", "transformers", "numpy", "bm25s")
_WEIGHTS = "model.safetensors"
_WEIGHT_PARTS = "model-*.safetensors"


Precision = Literal["auto", "float32", "bfloat16", "float16"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """What every run has in its configuration.

    Attributes:
        name: How it is called on the command line.
        base: Which weights it starts from, in words.
        mix: Share of each source.
        learning_rate: Highest rate, after the warm-up; falls linearly to a tenth.
        warm_up: Share of the steps in which the rate rises.
        weight_decay: Of AdamW; biases and normalisations are spared.
        largest_gradient: Norm to which gradients are clipped.
        seed: Decides the data and their order.
        checkpoint_seconds: How often the state is written.
        precision: What products are computed in; `auto` takes bfloat16 where the device has it.
    """

    name: str
    base: str
    mix: Mapping[str, float]
    learning_rate: float = 5e-5
    warm_up: float = 0.06
    weight_decay: float = 0.01
    largest_gradient: float = 1.0
    seed: int = 20
    checkpoint_seconds: float = 180.0
    precision: Precision = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlaces:
    """Where a run reads and writes.

    Attributes:
        base: Directory of the weights to start from: a sentence-transformers model, or for a
            reranker a cross-encoder's or a causal language model's.
        target: Gets `manifest.json`, `losses.jsonl`, `checkpoint.pt` and the folder `model`, of a
            reranker also the examples and `development.jsonl`.
        followed: A cross-encoder whose scores a reranker follows; None for the base, where layers
            are left out of it.
    """

    base: Path
    target: Path
    followed: Path | None = None


def run_manifest(config: RunConfig, *, base: Path, hashes: Mapping[str, str]) -> dict[str, Any]:
    """Describe a run before its first step.

    Args:
        config: The configuration.
        base: Directory of the base weights.
        hashes: SHA-256 of the data files, by name.
    """
    return {
        "config": asdict(config),
        "seed": config.seed,
        "base": {"directory": base.name, "sha256": weights_hash(base)},
        "data": dict(hashes),
        "commit": _commit(),
        "ekphory": __version__,
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in _LIBRARIES},
    }


def weights_hash(directory: Path) -> str:
    """Hash a directory's weights; of a model in several files the hashes of all."""
    if (directory / _WEIGHTS).is_file():
        return sha256_of(directory / _WEIGHTS)
    parts = [sha256_of(path) for path in sorted(directory.glob(_WEIGHT_PARTS))]
    return hashlib.sha256("".join(parts).encode()).hexdigest()


def _commit() -> str | None:
    git = shutil.which("git")
    if git is None:
        return None
    asked = subprocess.run(  # noqa: S603  a fixed command on our own checkout
        [git, "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=40"],
        capture_output=True,
        text=True,
        check=False,
    )
    return asked.stdout.strip() or None


# The files of a training run beside its model.

CHECKPOINT_FILE = "checkpoint.pt"
LOSSES_FILE = "losses.jsonl"
MODEL_FOLDER = "model"


def claim_folder(target: Path, manifest: Mapping[str, Any]) -> None:
    """Write the manifest of a new run, or compare that of the run which is there.

    Raises:
        InvalidInput: The folder holds a run with another configuration, data or base.
    """
    path = target / MANIFEST_FILE
    if not path.is_file():
        path.write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n", "utf-8")
        return
    written = json.loads(path.read_text(encoding="utf-8"))
    same = json.loads(json.dumps({name: manifest[name] for name in ("config", "data", "base")}))
    different = [name for name, value in same.items() if written.get(name) != value]
    if different:
        raise InvalidInput(
            "target",
            str(target),
            f"holds a run with another {' and '.join(different)}",
            "Give an empty folder, or the settings of that run.",
        )


def note_loss(target: Path, step: int, loss: float, *, read: Mapping[str, int]) -> None:
    """Add a line for one step, with how many texts or pairs it read."""
    line = json.dumps({"step": step, "loss": round(loss, 5), **read})
    append_line(target / LOSSES_FILE, line)


def forget_losses(target: Path, *, after: int) -> None:
    """Drop the lines of steps that were taken after the checkpoint and are taken again."""
    path = target / LOSSES_FILE
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:after]), encoding="utf-8")


def append_line(path: Path, line: str) -> None:
    """Add a line to a file."""
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")


# How the learning rate changes over a run.


def rise_and_fall(steps: int, *, warm_up: float) -> Callable[[int], float]:
    """Return the share of the highest rate at each step: up to 1, then linearly down to 0.1.

    Args:
        steps: Length of the run.
        warm_up: Share of the steps in which the rate rises.
    """
    rising = max(1, round(warm_up * steps))

    def share(step: int) -> float:
        if step < rising:
            return (step + 1) / rising
        return 1 - 0.9 * (step - rising) / max(1, steps - rising)

    return share


# The configurations of training, by name.

Config = TypeVar("Config", bound=RunConfig)


def read_configurations(file: Path, kind: type[Config]) -> dict[str, Config]:
    """Read the configurations of a file, by name."""
    given = tomllib.loads(file.read_text(encoding="utf-8"))
    found: dict[str, Config] = {}
    for name, row in given["configurations"].items():
        like = row.pop("like", None)
        begun = found[like] if like else kind(name=name, base="", mix={})
        found[name] = _changed(begun, {"name": name, **row}, given["mixes"])
    return found


def _changed(config: Any, row: Mapping[str, Any], mixes: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Return any dataclass with other values, those of its own dataclasses among them."""
    values: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            values[name] = _changed(getattr(config, name), value, mixes)
        elif name == "mix":
            values[name] = mixes[value]
        else:
            values[name] = tuple(value) if isinstance(value, list) else value
    return replace(config, **values)


def config_named(configs: Mapping[str, Config], name: str, **changes: int | str | None) -> Config:
    """Return a configuration, with the changes that are not None.

    Raises:
        InvalidInput: No configuration has this name, or there is no such precision.
    """
    if name not in configs:
        raise InvalidInput(
            "config", name, "no such configuration", f"Give one of {', '.join(configs)}."
        )
    known = get_args(Precision)
    if (precision := changes.get("precision")) not in (None, *known):
        problem = "must be one that is known"
        raise InvalidInput("precision", precision, problem, f"Give one of {', '.join(known)}.")
    wanted: dict[str, Any] = {field: value for field, value in changes.items() if value is not None}
    return replace(configs[name], **wanted)
