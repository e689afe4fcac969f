"""What a model reads out of a passage: its content vector, and what its heads say of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from ekphory.models.embedder import EmbeddingModel, FloatMatrix
from ekphory.models.late_bound import FloatVector, LateBoundParts
from ekphory.types import MEMORY_TYPES, MemoryType


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
        ...

    def read(self, texts: Sequence[str]) -> PassageReading:
        """Read passages in one pass of the encoder."""
        ...


def late_bound_of(model: EmbeddingModel) -> LateBoundParts | None:
    """Give the model's vectors of age and type; None for a model that knows neither."""
    return model.late_bound if isinstance(model, PassageReader) else None


def read_passages(model: EmbeddingModel, texts: Sequence[str]) -> PassageReading:
    """Read passages with any model; one without heads gives their vectors alone."""
    if isinstance(model, PassageReader):
        return model.read(texts)
    return PassageReading(model.encode(texts))


def predicted_types(logits: FloatMatrix) -> list[MemoryType]:
    """Give the most probable type of each passage."""
    return [MEMORY_TYPES[code] for code in np.argmax(logits, axis=1)]


def _rounded(importance: FloatVector) -> list[float]:
    # More digits would say more than the head knows.
    return [round(value, 3) for value in importance.tolist()]


def traits_by_memory(reading: PassageReading, windows: Sequence[int]) -> list[PredictedTraits]:
    """Give the traits of memories from the mean over their windows.

    Args:
        reading: Of all windows, one memory after another.
        windows: How many each memory has, at least 1.
    """
    starts = np.cumsum([0, *windows])[:-1]
    counts = np.array(windows)

    def means(values: FloatMatrix) -> FloatMatrix:
        return np.asarray(np.add.reduceat(values, starts, axis=0) / counts[:, None], np.float32)

    if not len(counts):
        return []
    nothing: list[None] = [None] * len(counts)
    importance, types = reading.importance, reading.type_logits
    return [
        PredictedTraits(*traits)
        for traits in zip(
            nothing if importance is None else _rounded(means(importance[:, None])[:, 0]),
            nothing if types is None else predicted_types(means(types)),
            strict=True,
        )
    ]
