"""What an embedder is: the protocol that every embedding model follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

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
