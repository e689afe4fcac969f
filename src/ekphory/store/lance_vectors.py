"""Vectors out of a Lance table's rows, one for each window of a memory's text."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ekphory.store import lance_schema
from ekphory.store.store import KeyedVectors


def no_vectors(dimension: int) -> KeyedVectors:
    """Give the vectors of no memory."""
    return KeyedVectors(np.empty(0, np.int64), np.empty((0, dimension), np.float32))


def keyed_vectors(table: pa.Table, *, dimension: int) -> KeyedVectors:
    """Read the columns key and vector, in the order of the rows."""
    return KeyedVectors(
        lance_schema.integers(table["key"], missing=0),
        lance_schema.vectors(table["vector"], dimension=dimension),
    )


def gathered_vectors(
    batches: Iterable[pa.RecordBatch], *, into: NDArray[np.floating]
) -> KeyedVectors:
    """Read vectors batch by batch into their final place, so that memory holds them once.

    Args:
        batches: Rows with the columns key, passage and vector.
        into: Where the vectors go, shape (rows to read at the most, dimension).

    Returns:
        The vectors by key, those of one memory in the order of its windows.
    """
    total, dimension = into.shape
    order = np.empty((total, 2), np.int64)
    filled = 0
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        end = min(filled + batch.num_rows, total)
        order[filled:end, 0] = lance_schema.integers(rows["key"], missing=0)[: end - filled]
        order[filled:end, 1] = lance_schema.integers(rows["passage"], missing=0)[: end - filled]
        read = lance_schema.vectors(rows["vector"], dimension=dimension)
        into[filled:end] = read[: end - filled]
        filled = end
    ranks = np.lexsort((order[:filled, 1], order[:filled, 0]))
    if np.array_equal(ranks, np.arange(total)):
        return KeyedVectors(order[:, 0], into)
    return KeyedVectors(order[ranks, 0], into[ranks])
