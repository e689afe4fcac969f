"""An embedder without weights."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ekphory.models.embedder import EmbedderIdentity, FloatMatrix


class HashEmbedder:
    """Embeds a text as the normalised sum of one fixed random vector for each of its words.

    Needs no weights and follows `EmbeddingModel` in full: texts that share words are near.
    """

    def __init__(self, *, dimension: int = 32, window_words: int = 100) -> None:
        self._identity = EmbedderIdentity("hash-embedder", "1", dimension)
        self._window_words = window_words

    @property
    def identity(self) -> EmbedderIdentity:
        """Name, revision and dimension."""
        return self._identity

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        """Embed passages; shape (len(texts), dimension)."""
        rows = [self._vector(text) for text in texts]
        return np.array(rows, np.float32).reshape(len(texts), self._identity.dimension)

    def encode_query(self, texts: Sequence[str]) -> FloatMatrix:
        """Embed queries, the same way as passages."""
        return self.encode(texts)

    def windows(self, text: str, *, prefix: str = "") -> list[str]:
        """Split into runs of `window_words` words, each behind the prefix."""
        words = text.split()
        size = self._window_words
        runs = [words[start : start + size] for start in range(0, len(words), size)]
        return [prefix + " ".join(run) for run in runs] if len(runs) > 1 else [prefix + text]

    def _vector(self, text: str) -> FloatMatrix:
        total = np.zeros(self._identity.dimension)
        for word in re.findall(r"\w+", text.lower()):
            total += _word_vector(word, len(total))
        length = float(np.linalg.norm(total))
        return np.asarray(total / length if length else np.eye(len(total))[0], np.float32)


@lru_cache(maxsize=50_000)
def _word_vector(word: str, dimension: int) -> NDArray[np.float64]:
    return np.random.default_rng(crc32(word.encode())).standard_normal(dimension)
