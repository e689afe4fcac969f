"""Time and type bound late: what a stored content vector scores for its age of this moment.

AgentRank adds the vectors of an age bucket and of a memory type before a linear projection. Because
the projection W is linear, the parts separate:

    z(m, age) = c(m) + τ[bucket(age)] + y[type]        τ = W·age, y = W·type
    score     = q · z / ‖z‖  =  (q·c + q·(τ + y)) / ‖z‖
    ‖z‖²      = ‖c‖² + ‖τ + y‖² + 2 c·(τ + y)

So c is stored once, unnormalised. The ten lengths ‖z‖ that a memory can have in its life depend on
nothing but c and its type, and are computed when it is written or read. What is left for a search
is one addition and one division for each candidate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ekphory.errors import InvalidInput
from ekphory.models.embedder import FloatMatrix
from ekphory.types import MEMORY_TYPES

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
                raise InvalidInput(
                    name, shape, f"is not {(rows, dimension)}", "Give one row for each"
                )

    def bound(self, content: FloatMatrix, *, buckets: Codes, types: Codes) -> FloatMatrix:
        """Give z / ‖z‖: the vectors that embedding the memories at these ages would give.

        Args:
            content: c, shape (memories, dimension).
            buckets: Age bucket of each, or `NO_AGE`.
            types: Type code of each, or `NO_TYPE`.
        """
        nothing = np.zeros((1, content.shape[1]), np.float32)
        added = np.concatenate([self.age, nothing])[buckets]
        return normalised(content + added + np.concatenate([self.type, nothing])[types])

    def lengths(self, content: FloatMatrix, *, types: Codes) -> FloatMatrix:
        """Give ‖z‖ of each memory in each age bucket, shape (memories, 10).

        Args:
            content: c, shape (memories, dimension).
            types: Type code of each memory.
        """
        typed = content + self.type[types]
        # Not one matrix product: BLAS splits it over threads, and waits for a busy core.
        crossed = np.stack([np.einsum("ij,j->i", typed, age) for age in self.age], axis=1)
        squares = 2 * crossed + np.square(self.age).sum(axis=1)
        return _roots(squares + _squares(typed)[:, None])

    def lengths_at(self, content: FloatMatrix, *, buckets: Codes, types: Codes) -> FloatVector:
        """Give ‖z‖ of each memory in one age bucket, shape (memories,).

        For candidates whose ten lengths are not at hand; a third of a millisecond for 1,000.
        """
        added = (self.age[:, None] + self.type).reshape(-1, self.age.shape[1])
        codes = buckets * len(self.type) + types
        crossed = np.einsum("ij,ij->i", content, added[codes])
        return _roots(_squares(content) + 2 * crossed + _squares(added)[codes])

    def offsets(self, query: FloatVector) -> FloatMatrix:
        """Give q·(τ + y) for every age bucket and type, shape (10, 4)."""
        return np.asarray((self.age @ query)[:, None] + self.type @ query, np.float32)


def late_bound_scores(
    products: FloatVector,
    offsets: FloatMatrix,
    lengths: FloatVector,
    *,
    buckets: Codes,
    types: Codes,
) -> FloatVector:
    """Give q·z / ‖z‖ of each memory, shape (memories,).

    Args:
        products: q·c of each memory, c unnormalised.
        offsets: What `LateBoundParts.offsets` gives for the query.
        lengths: ‖z‖ of each memory at that moment.
        buckets: Age bucket of each memory at the moment of the search.
        types: Type code of each memory.
    """
    return np.asarray((products + offsets[buckets, types]) / lengths, np.float32)


def normalised(vectors: FloatMatrix) -> FloatMatrix:
    """Give the rows with length 1; a row of zeros stays one."""
    return np.asarray(vectors / _roots(_squares(vectors))[:, None], np.float32)


def _squares(vectors: FloatMatrix) -> FloatVector:
    return np.asarray(np.einsum("ij,ij->i", vectors, vectors), np.float32)


def _roots(squares: NDArray[np.floating]) -> NDArray[np.float32]:
    return np.asarray(np.sqrt(np.maximum(squares, _SHORTEST**2)), np.float32)


def age_buckets(days: NDArray[np.floating] | Sequence[float]) -> Codes:
    """Give the bucket of each age in days; the limits belong to the younger bucket.

    Ages below 0, of memories about what is still to come, are in the youngest bucket.

    Raises:
        InvalidInput: An age is not a number.
    """
    ages = np.asarray(days, np.float64)
    if np.isnan(ages).any():
        raise InvalidInput("days_ago", days, "holds what is not a number", "Give days, or None")
    return np.searchsorted(np.array(AGE_LIMITS_DAYS), ages, side="left")


def age_buckets_at(at: NDArray[np.int64], now: int) -> Codes:
    """Give the bucket of each moment as seen from `now`, both in microseconds since 1970."""
    return np.searchsorted(_LIMITS, now - at, side="left")


def type_codes(types: NDArray[np.str_] | Sequence[str]) -> Codes:
    """Give the code of each memory type: its place in `MEMORY_TYPES`.

    Raises:
        InvalidInput: There is no such type.
    """
    names, places = np.unique(np.asarray(types, np.str_), return_inverse=True)
    for name in names:
        if str(name) not in _TYPE_CODES:
            raise InvalidInput(
                "memory_type", str(name), "no such type", f"Use one of {', '.join(MEMORY_TYPES)}"
            )
    codes = np.array([_TYPE_CODES[str(name)] for name in names], np.int64)
    return codes[places] if len(codes) else np.empty(0, np.int64)
