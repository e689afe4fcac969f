"""What the rows of a scope need so that their content vectors score for today's age.

A dense arm multiplies the query with content vectors, as it does for any model. For a model that
binds age and type late, the products then become scores here: exactly those that embedding every
memory anew at that moment would give (`models/late_bound.py` has the formula).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ekphory.models.embedder import FloatMatrix
from ekphory.models.late_bound import (
    Codes,
    FloatVector,
    LateBoundParts,
    age_buckets_at,
    late_bound_scores,
)


@dataclass(frozen=True, slots=True)
class LateBoundRows:
    """Age and type of the memories of a scope, by row.

    Attributes:
        parts: The model's vectors of age and type.
        at: When each memory happened, microseconds since 1970, shape (rows,).
        types: Type code of each memory, shape (rows,).
    """

    parts: LateBoundParts
    at: NDArray[np.int64]
    types: Codes

    def scores(
        self, query: FloatVector, content: FloatMatrix, *, owners: Codes, now: int
    ) -> FloatVector:
        """Score windows that an index found and that were read, shape (windows,)."""
        buckets, types = age_buckets_at(self.at[owners], now), self.types[owners]
        # Not `@`: BLAS splits so small a product over threads, and waits for a busy core.
        products = np.asarray(np.einsum("ij,j->i", content, query), np.float32)
        lengths = self.parts.lengths_at(content, buckets=buckets, types=types)
        offsets = self.parts.offsets(query)
        return late_bound_scores(products, offsets, lengths, buckets=buckets, types=types)

    def vectors(self, content: FloatMatrix, *, owners: Codes, now: int) -> FloatMatrix:
        """Give the vectors of length 1 that embedding these memories now would give."""
        buckets = age_buckets_at(self.at[owners], now)
        return self.parts.bound(content, buckets=buckets, types=self.types[owners])


@dataclass(frozen=True, slots=True)
class LateBoundWindows:
    """All windows of a scope whose vectors are held in memory.

    Attributes:
        rows: Age and type of the memories.
        owners: Row of the memory that each window belongs to, ascending; every row owns one.
        lengths: The ten lengths of each window's z, shape (windows, 10).
    """

    rows: LateBoundRows
    owners: NDArray[np.integer]
    lengths: FloatMatrix

    @classmethod
    def of(
        cls, rows: LateBoundRows, owners: NDArray[np.integer], content: FloatMatrix
    ) -> LateBoundWindows:
        """Compute the lengths of windows from their content vectors."""
        return cls(rows, owners, rows.parts.lengths(content, types=rows.types[owners]))

    def followed_by(self, later: LateBoundWindows) -> LateBoundWindows:
        """Give these windows and later ones, whose `rows` are those of the whole scope."""
        return LateBoundWindows(
            later.rows,
            np.concatenate([self.owners, later.owners]),
            np.concatenate([self.lengths, later.lengths]),
        )

    def scores(self, query: FloatVector, products: FloatVector, *, now: int) -> FloatVector:
        """Score all windows, shape (windows,).

        Args:
            query: The query's vector.
            products: q·c of each window.
            now: Microseconds since 1970.
        """
        buckets, types = age_buckets_at(self.rows.at, now), self.rows.types
        if len(self.owners) != len(buckets):
            buckets, types = buckets[self.owners], types[self.owners]
        lengths = self.lengths[np.arange(len(buckets)), buckets]
        offsets = self.rows.parts.offsets(query)
        return late_bound_scores(products, offsets, lengths, buckets=buckets, types=types)
