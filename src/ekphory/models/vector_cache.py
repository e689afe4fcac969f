"""A bounded cache of query vectors."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ekphory.fork_safe import ForkSafeLock
from ekphory.models.embedder import FloatMatrix

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
        """Give the texts' vectors, computing only those that are not kept.

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
