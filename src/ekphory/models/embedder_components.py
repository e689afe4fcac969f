"""What an embedder has beyond its encoder: vectors of age and type, a projection, two heads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ekphory import legacy
from ekphory.errors import MissingExtra, ModelError
from ekphory.models.late_bound import AGE_BUCKETS, LateBoundParts
from ekphory.types import MEMORY_TYPES

COMPONENTS_FILE = "ekphory_components.safetensors"

Array = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Linear:
    """`x @ weight.T + bias`; weight has shape (outputs, inputs), as torch stores it."""

    weight: Array
    bias: Array

    def __call__(self, inputs: Array) -> Array:
        """Apply it to rows."""
        return np.asarray(inputs @ self.weight.T + self.bias, np.float32)


@dataclass(frozen=True, slots=True)
class EmbedderComponents:
    """The parts that read or follow the pooled output of an encoder of `dimension` channels.

    Attributes:
        age: Vector of each age bucket, added before the projection, shape (10, dimension).
        type: Vector of each memory type, likewise, shape (4, dimension).
        projection: W and b of z = W(pooled + age + type) + b.
        importance: Two layers with a ReLU between them and a sigmoid behind; None for no head.
        memory_type: Logits of the types; None for no head.
    """

    age: Array
    type: Array
    projection: Linear
    importance: tuple[Linear, Linear] | None = None
    memory_type: Linear | None = None

    @property
    def dimension(self) -> int:
        """Channels of the pooled vector and of what comes out."""
        return int(self.age.shape[1])

    def content(self, pooled: Array) -> Array:
        """Give c, which is stored: W·pooled + b, unnormalised."""
        return self.projection(pooled)

    def importance_of(self, pooled: Array) -> Array | None:
        """Give each passage's importance in [0, 1], shape (passages,); None without the head."""
        if self.importance is None:
            return None
        first, second = self.importance
        logits = second(np.maximum(first(pooled), 0))[:, 0].astype(np.float64)
        return np.asarray(1 / (1 + np.exp(-logits)), np.float32)

    def type_logits_of(self, pooled: Array) -> Array | None:
        """Give the logits of each passage's type, shape (passages, 4); None without the head."""
        return None if self.memory_type is None else self.memory_type(pooled)

    def late_bound(self) -> LateBoundParts:
        """Give τ = W·age and y = W·type."""
        weight = self.projection.weight.astype(np.float64)
        return LateBoundParts(
            np.asarray(self.age @ weight.T, np.float32),
            np.asarray(self.type @ weight.T, np.float32),
        )


def components_of(tensors: Mapping[str, NDArray[Any]], *, where: Path) -> EmbedderComponents:
    """Put the tensors of a components file together.

    Raises:
        ModelError: A tensor is missing, or has another shape than the others ask for.
    """
    width = _width(tensors, where)
    half = tensors["importance.0.weight"].shape[0] if "importance.0.weight" in tensors else 0

    def tensor(name: str, *shape: int) -> Array:
        if name not in tensors or tensors[name].shape != shape:
            found = tensors[name].shape if name in tensors else "nothing"
            raise ModelError(
                f"{where}: tensor {name} is {found}, not {shape}. Train or save the model again."
            )
        return np.ascontiguousarray(tensors[name], np.float32)

    def linear(name: str, outputs: int, inputs: int) -> Linear:
        return Linear(tensor(f"{name}.weight", outputs, inputs), tensor(f"{name}.bias", outputs))

    importance, memory_type = None, None
    if half:
        importance = (linear("importance.0", half, width), linear("importance.2", 1, half))
    if "memory_type.weight" in tensors:
        memory_type = linear("memory_type", len(MEMORY_TYPES), width)
    return EmbedderComponents(
        age=tensor("age.weight", AGE_BUCKETS, width),
        type=tensor("type.weight", len(MEMORY_TYPES), width),
        projection=linear("projection", width, width),
        importance=importance,
        memory_type=memory_type,
    )


def read_components(directory: Path) -> EmbedderComponents | None:
    """Read the components file of a model directory; None where there is none.

    Raises:
        MissingExtra: safetensors is not installed.
        ModelError: The file is broken.
    """
    path = directory / legacy.written_name(
        COMPONENTS_FILE, lambda name: (directory / name).is_file()
    )
    if not path.is_file():
        return None
    try:
        from safetensors import SafetensorError
        from safetensors.numpy import load_file
    except ImportError as error:
        raise MissingExtra("torch", f"Reading {path}") from error
    try:
        return components_of(load_file(path), where=path)
    except (OSError, SafetensorError) as error:
        raise ModelError(
            f"{path}: cannot be read as safetensors ({error}). Save the model again."
        ) from error


def write_components(components: EmbedderComponents, directory: Path) -> None:
    """Write the components file.

    Raises:
        MissingExtra: safetensors is not installed.
    """
    try:
        from safetensors.numpy import save_file
    except ImportError as error:
        raise MissingExtra("torch", f"Writing {directory / COMPONENTS_FILE}") from error
    layers = {"projection": components.projection}
    if components.importance is not None:
        layers |= dict(zip(("importance.0", "importance.2"), components.importance, strict=True))
    if components.memory_type is not None:
        layers["memory_type"] = components.memory_type
    tensors = {"age.weight": components.age, "type.weight": components.type}
    for name, layer in layers.items():
        tensors |= {f"{name}.weight": layer.weight, f"{name}.bias": layer.bias}
    save_file(
        {name: np.ascontiguousarray(value) for name, value in tensors.items()},
        directory / COMPONENTS_FILE,
    )


def _width(tensors: Mapping[str, NDArray[Any]], where: Path) -> int:
    age = tensors.get("age.weight")
    if age is None or age.ndim != 2:
        raise ModelError(f"{where}: tensor age.weight is missing. Train or save the model again.")
    return int(age.shape[1])
