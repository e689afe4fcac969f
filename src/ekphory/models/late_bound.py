"""Time and type bound late: what an embedder has beyond its encoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ekphory import legacy
from ekphory.errors import InvalidInput, MissingExtra, ModelError
from ekphory.models.embedder import EmbeddingModel, FloatMatrix, check_finite
from ekphory.types import MEMORY_TYPES, MemoryType

# What a stored content vector scores for its age of this moment.
#
# AgentRank adds the vectors of an age bucket and of a memory type before a linear projection.
# Because the projection W is linear, the parts separate:
#
#     z(m, age) = c(m) + τ[bucket(age)] + y[type]        τ = W·age, y = W·type
#     score     = q · z / ‖z‖  =  (q·c + q·(τ + y)) / ‖z‖
#     ‖z‖²      = ‖c‖² + ‖τ + y‖² + 2 c·(τ + y)
#
# So c is stored once, unnormalised. The ten lengths ‖z‖ that a memory can have in its life depend
# on nothing but c and its type, and are computed when it is written or read. What is left for a
# search is one addition and one division for each candidate.

FloatVector = NDArray[np.float32]
Codes = NDArray[np.int64]

AGE_LIMITS_DAYS = (1, 3, 7, 14, 30, 60, 90, 180, 365)
"""The last age in days that belongs to each bucket but the oldest."""
AGE_BUCKETS = len(AGE_LIMITS_DAYS) + 1
NO_AGE, NO_TYPE = AGE_BUCKETS, len(MEMORY_TYPES)
"""Codes of a memory to which no age, or no type, is added."""
_DAY = 86_400_000_000
_LIMITS = np.array(AGE_LIMITS_DAYS, np.int64) * _DAY
_TYPE_CODES: dict[str, int] = {name: code for code, name in enumerate(MEMORY_TYPES)}
_PIECE = 512
"""Memories whose vectors are read together."""
_SHORTEST = np.float32(1e-12)
"""Shorter vectors are divided by this, as torch's `normalize` does."""


@dataclass(frozen=True, slots=True)
class LateBoundParts:
    """The vectors of age and type, projected, so that they can be added to a content vector.

    Attributes:
        age: τ, shape (10, dimension).
        type: y, in the order of `MEMORY_TYPES`, shape (4, dimension).
    """

    age: FloatMatrix
    type: FloatMatrix

    def __post_init__(self) -> None:
        dimension = self.age.shape[-1]
        for name, rows in (("age", AGE_BUCKETS), ("type", len(MEMORY_TYPES))):
            shape = getattr(self, name).shape
            if shape != (rows, dimension):
                problem = f"must be of shape {(rows, dimension)}"
                raise InvalidInput(name, shape, problem, "Give one row for each")

    def bound(self, content: FloatMatrix, *, buckets: Codes, types: Codes) -> FloatMatrix:
        """Return z / ‖z‖: the vectors that embedding the memories at these ages would give.

        Args:
            content: c, shape (memories, dimension).
            buckets: Age bucket of each, or `NO_AGE`.
            types: Type code of each, or `NO_TYPE`.
        """
        nothing = np.zeros((1, content.shape[1]), np.float32)
        added = np.concatenate([self.age, nothing])[buckets]
        return normalised(content + added + np.concatenate([self.type, nothing])[types])

    def lengths(self, content: FloatMatrix, *, types: Codes) -> FloatMatrix:
        """Return ‖z‖ of each memory in each age bucket, shape (memories, 10).

        That of a memory without a vector, whose c is zero, is infinite, so that it scores 0.

        Args:
            content: c, shape (memories, dimension).
            types: Type code of each memory.
        """
        lengths = np.empty((len(content), len(self.age)), np.float32)
        # Ten times over what fits the cache, rather than ten times over all.
        for start in range(0, len(content), _PIECE):
            piece = slice(start, start + _PIECE)
            lengths[piece] = self._lengths(content[piece], types[piece])
        return lengths

    def _lengths(self, content: FloatMatrix, types: Codes) -> FloatMatrix:
        typed = content + self.type[types]
        # Not one matrix product: BLAS splits it over threads, and waits for a busy core.
        crossed = np.stack([np.einsum("ij,j->i", typed, age) for age in self.age], axis=1)
        squares = 2 * crossed + np.square(self.age).sum(axis=1)
        lengths = _roots(squares + _squares(typed)[:, None])
        return np.where(_squares(content)[:, None] > 0, lengths, np.float32(np.inf))

    def lengths_at(self, content: FloatMatrix, *, buckets: Codes, types: Codes) -> FloatVector:
        """Return ‖z‖ of each memory in one age bucket, shape (memories,).

        For candidates whose ten lengths are not at hand; a third of a millisecond for 1,000.
        """
        added = (self.age[:, None] + self.type).reshape(-1, self.age.shape[1])
        codes = buckets * len(self.type) + types
        crossed = np.einsum("ij,ij->i", content, added[codes])
        own = _squares(content)
        lengths = _roots(own + 2 * crossed + _squares(added)[codes])
        return np.where(own > 0, lengths, np.float32(np.inf))

    def offsets(self, query: FloatVector) -> FloatMatrix:
        """Return q·(τ + y) for every age bucket and type, shape (10, 4)."""
        return np.asarray((self.age @ query)[:, None] + self.type @ query, np.float32)


def late_bound_scores(
    products: FloatVector,
    offsets: FloatMatrix,
    lengths: FloatVector,
    *,
    buckets: Codes,
    types: Codes,
) -> FloatVector:
    """Return q·z / ‖z‖ of each memory, shape (memories,).

    Args:
        products: q·c of each memory, c unnormalised.
        offsets: What `LateBoundParts.offsets` gives for the query.
        lengths: ‖z‖ of each memory at that moment.
        buckets: Age bucket of each memory at the moment of the search.
        types: Type code of each memory.
    """
    return np.asarray((products + offsets[buckets, types]) / lengths, np.float32)


def normalised(vectors: FloatMatrix) -> FloatMatrix:
    """Return the rows with length 1; a row of zeros stays one."""
    return np.asarray(vectors / _roots(_squares(vectors))[:, None], np.float32)


def _squares(vectors: FloatMatrix) -> FloatVector:
    return np.asarray(np.einsum("ij,ij->i", vectors, vectors), np.float32)


def _roots(squares: NDArray[np.floating]) -> NDArray[np.float32]:
    return np.asarray(np.sqrt(np.maximum(squares, _SHORTEST**2)), np.float32)


def age_buckets(days: NDArray[np.floating] | Sequence[float]) -> Codes:
    """Return the bucket of each age in days; the limits belong to the younger bucket.

    Ages below 0, of memories about what is still to come, are in the youngest bucket.

    Raises:
        InvalidInput: An age is not a number.
    """
    ages = np.asarray(days, np.float64)
    if np.isnan(ages).any():
        raise InvalidInput("days_ago", days, "must be numbers", "Give days, or None")
    return np.searchsorted(np.array(AGE_LIMITS_DAYS), ages, side="left")


def age_buckets_at(at: NDArray[np.int64], now: int) -> Codes:
    """Return the bucket of each moment as seen from `now`, both in microseconds since 1970."""
    return np.searchsorted(_LIMITS, now - at, side="left")


def type_codes(types: NDArray[np.str_] | Sequence[str]) -> Codes:
    """Return the code of each memory type: its place in `MEMORY_TYPES`.

    Raises:
        InvalidInput: There is no such type.
    """
    given = np.asarray(types, np.str_)
    names = np.array(sorted(set(given.tolist())), np.str_)
    for name in names.tolist():
        if name not in _TYPE_CODES:
            remedy = f"Use one of {', '.join(MEMORY_TYPES)}"
            raise InvalidInput("memory_type", name, "must be a type", remedy)
    codes = np.array([_TYPE_CODES[name] for name in names.tolist()], np.int64)
    return codes[np.searchsorted(names, given)]


# The components of an embedder: vectors of age and type, a projection, two heads.

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
        """Return c, which is stored: W·pooled + b, unnormalised."""
        return self.projection(pooled)

    def importance_of(self, pooled: Array) -> Array | None:
        """Return each passage's importance in [0, 1], shape (passages,); None without the head."""
        if self.importance is None:
            return None
        first, second = self.importance
        logits = second(np.maximum(first(pooled), 0))[:, 0].astype(np.float64)
        return np.asarray(1 / (1 + np.exp(-logits)), np.float32)

    def type_logits_of(self, pooled: Array) -> Array | None:
        """Return the logits of each passage's type, shape (passages, 4); None without the head."""
        return None if self.memory_type is None else self.memory_type(pooled)

    def late_bound(self) -> LateBoundParts:
        """Return τ = W·age and y = W·type."""
        weight = self.projection.weight.astype(np.float64)
        age, kind = (np.asarray(each @ weight.T, np.float32) for each in (self.age, self.type))
        return LateBoundParts(age, kind)


def build_components(tensors: Mapping[str, NDArray[Any]], *, where: Path) -> EmbedderComponents:
    """Put the tensors of a components file together.

    Raises:
        ModelError: A tensor is missing, or has another shape than the others ask for.
    """
    age = tensors.get("age.weight")
    if age is None or age.ndim != 2:
        raise ModelError(f"{where}: tensor age.weight is missing. Train or save the model again.")
    width = int(age.shape[1])
    half = tensors["importance.0.weight"].shape[0] if "importance.0.weight" in tensors else 0

    def tensor(name: str, *shape: int) -> Array:
        if name not in tensors or tensors[name].shape != shape:
            found = tensors[name].shape if name in tensors else "nothing"
            problem = f"{where}: tensor {name} is {found}, not {shape}"
            raise ModelError(f"{problem}. Train or save the model again.")
        return np.ascontiguousarray(tensors[name], np.float32)

    def linear(name: str, outputs: int, inputs: int) -> Linear:
        return Linear(tensor(f"{name}.weight", outputs, inputs), tensor(f"{name}.bias", outputs))

    types = len(MEMORY_TYPES)
    ages, kinds = tensor("age.weight", AGE_BUCKETS, width), tensor("type.weight", types, width)
    projection = linear("projection", width, width)
    head = (linear("importance.0", half, width), linear("importance.2", 1, half)) if half else None
    has_types = "memory_type.weight" in tensors
    type_head = linear("memory_type", types, width) if has_types else None
    return EmbedderComponents(ages, kinds, projection, head, type_head)


def read_components(directory: Path) -> EmbedderComponents | None:
    """Read the components file of a model directory; None where there is none.

    Raises:
        MissingExtra: safetensors is not installed.
        ModelError: The file is broken.
    """
    path = directory / legacy.find_written_name(
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
        return build_components(load_file(path), where=path)
    except (OSError, SafetensorError) as error:
        problem = f"{path}: cannot be read as safetensors ({error})"
        raise ModelError(f"{problem}. Save the model again.") from error


def write_components(components: EmbedderComponents, directory: Path) -> None:
    """Write the components file.

    Raises:
        MissingExtra: safetensors is not installed.
    """
    try:
        from safetensors.numpy import save_file
    except ImportError as error:
        raise MissingExtra("torch", f"Writing {directory / COMPONENTS_FILE}") from error
    save_file(component_tensors(components), directory / COMPONENTS_FILE)


def component_tensors(components: EmbedderComponents) -> dict[str, Array]:
    """Return the tensors of a components file by their names."""
    layers = {"projection": components.projection}
    if components.importance is not None:
        layers |= dict(zip(("importance.0", "importance.2"), components.importance, strict=True))
    if components.memory_type is not None:
        layers["memory_type"] = components.memory_type
    tensors = {"age.weight": components.age, "type.weight": components.type}
    for name, layer in layers.items():
        tensors |= {f"{name}.weight": layer.weight, f"{name}.bias": layer.bias}
    return {name: np.ascontiguousarray(value) for name, value in tensors.items()}


# What a model reads out of a passage.


@dataclass(frozen=True, slots=True)
class PassageReading:
    """What one pass of the encoder says of some passages.

    Attributes:
        content: What is stored, shape (passages, dimension): c, unnormalised, where the model binds
            age and type late, else rows of length 1.
        importance: In [0, 1], shape (passages,); None where the model has no such head.
        type_logits: In the order of `MEMORY_TYPES`, shape (passages, 4); None without the head.
    """

    content: FloatMatrix
    importance: FloatVector | None = None
    type_logits: FloatMatrix | None = None


@dataclass(frozen=True, slots=True)
class PredictedTraits:
    """What a model says of a memory that may have several windows; None where it has no such head.

    Attributes:
        importance: In [0, 1].
        type: The most probable type.
    """

    importance: float | None
    type: MemoryType | None


@runtime_checkable
class PassageReader(Protocol):
    """An embedding model that can give more than a vector."""

    @property
    def late_bound(self) -> LateBoundParts | None:
        """Vectors of age and type; None for a model that knows neither."""

    def read(self, texts: Sequence[str]) -> PassageReading:
        """Read passages in one pass of the encoder."""


def find_late_bound(model: EmbeddingModel) -> LateBoundParts | None:
    """Return the model's vectors of age and type; None for a model that knows neither."""
    return model.late_bound if isinstance(model, PassageReader) else None


def read_passages(model: EmbeddingModel, texts: Sequence[str]) -> PassageReading:
    """Read passages with any model; one without heads gives their vectors alone.

    Raises:
        ModelError: It did not give one vector of its dimension, of finite numbers, for each.
    """
    if isinstance(model, PassageReader):
        reading = model.read(texts)
    else:
        reading = PassageReading(model.encode(texts))
    given, wanted = np.shape(reading.content), (len(texts), model.identity.dimension)
    if len(texts) and given != wanted:
        raise ModelError(
            f"{model.identity}: the model gave vectors of shape {given}, not {wanted}. It must "
            "give one of the dimension of its identity for each text."
        )
    check_finite(reading.content, model=str(model.identity))
    return reading


def predict_types(logits: FloatMatrix) -> list[MemoryType]:
    """Return the most probable type of each passage."""
    return [MEMORY_TYPES[code] for code in np.argmax(logits, axis=1)]


def average_traits(reading: PassageReading, windows: Sequence[int]) -> list[PredictedTraits]:
    """Return the traits of memories from the mean over their windows.

    Args:
        reading: Of all windows, one memory after another.
        windows: How many each memory has, at least 1.
    """
    if not windows:
        return []
    starts = np.cumsum([0, *windows])[:-1]

    def average(values: FloatMatrix) -> FloatMatrix:
        sums = np.add.reduceat(values, starts, axis=0)
        return np.asarray(sums / np.array(windows)[:, None], np.float32)

    importance: Sequence[float | None] = [None] * len(windows)
    types: Sequence[MemoryType | None] = [None] * len(windows)
    if reading.importance is not None:
        # More digits would say more than the head knows.
        means = average(reading.importance[:, None])[:, 0]
        importance = [round(value, 3) for value in means.tolist()]
    if reading.type_logits is not None:
        types = predict_types(average(reading.type_logits))
    return [PredictedTraits(*traits) for traits in zip(importance, types, strict=True)]
