"""What an embedder is: the protocol that every embedding model follows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ekphory.threads import ForkSafeLock

# What an embedder is: the protocol that every embedding model follows.

FloatMatrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """What decides whether two vectors can be compared; stored with every table.

    Attributes:
        name: The model's name.
        revision: Hash or version of its weights and prompts.
        dimension: Length of a vector.
    """

    name: str
    revision: str
    dimension: int

    @property
    def model_id(self) -> str:
        """`name@revision`: how files of fitted constants name the model."""
        return f"{self.name}@{self.revision}"

    def __str__(self) -> str:
        return f"{self.model_id} ({self.dimension}-d)"


class EmbeddingModel(Protocol):
    """Turns texts into vectors. Safe to call from several threads."""

    @property
    def identity(self) -> EmbedderIdentity:
        """What is bound to the table that holds these vectors."""
        ...

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        """Embed passages; returns shape (len(texts), dimension), rows of length 1."""
        ...

    def encode_query(self, texts: Sequence[str]) -> FloatMatrix:
        """Embed queries, with the model's query prompt; same shape and length."""
        ...

    def windows(self, text: str, *, prefix: str = "") -> list[str]:
        """Split `prefix + text` into pieces that fit the model, each starting with `prefix`.

        A text that fits comes back as one piece. Nothing of the text is lost; pieces may share some
        words. Of a prefix no more is kept than leaves half of the model's window to the text.
        """
        ...


# A bounded cache of query vectors.

Vector = NDArray[np.float32]
LONGEST_KEY = 2_000
"""Longer texts are not cached, so that the cache's size in bytes is bounded too."""


class VectorCache:
    """Keeps the vectors of the texts that were asked for last. Safe to use from several threads."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._vectors: OrderedDict[str, Vector] = OrderedDict()
        self._lock = ForkSafeLock()

    def __len__(self) -> int:
        return len(self._vectors)

    def encode(
        self, texts: Sequence[str], *, missing: Callable[[list[str]], FloatMatrix]
    ) -> FloatMatrix:
        """Return the texts' vectors, computing only those that are not kept.

        Args:
            texts: What to embed; repeats are computed once.
            missing: Embeds the texts that are not kept; called with at least one text, if at all.
        """
        if not texts:
            return missing([])
        found = {text: self._get(text) for text in texts}
        unknown = [text for text, vector in found.items() if vector is None]
        if unknown:
            for text, vector in zip(unknown, missing(unknown), strict=True):
                found[text] = vector
                self._put(text, vector)
        return np.stack([vector for text in texts if (vector := found[text]) is not None])

    def _get(self, text: str) -> Vector | None:
        with self._lock:
            vector = self._vectors.get(text)
            if vector is not None:
                self._vectors.move_to_end(text)
            return vector

    def _put(self, text: str, vector: Vector) -> None:
        if len(text) > LONGEST_KEY:
            return
        with self._lock:
            self._vectors[text] = vector.copy()
            self._vectors.move_to_end(text)
            while len(self._vectors) > self._capacity:
                self._vectors.popitem(last=False)
