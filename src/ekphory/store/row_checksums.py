"""A checksum of each row, so that a byte that flipped on disk is found when rows are verified."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

CHECKSUM = "checksum"
RECORD = "record"
_APART = ("metadata", "terms", "vector", RECORD, CHECKSUM)
"""Columns whose values do not go into the checksum as JSON does.

The metadata are in the record as well, and their own column comes back in Lance's own spelling.
"""
_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
_MICROSECOND = timedelta(microseconds=1)


def row_checksum(row: Mapping[str, Any], vector: NDArray[np.float32]) -> int:
    """Return the first eight bytes of BLAKE2b over all that a row holds.

    Args:
        row: Values by column. One that is missing counts as one that is None, so that columns may
            be added.
        vector: The row's vector.
    """
    told = {name: row[name] for name in sorted(row) if name not in _APART and row[name] is not None}
    if "importance" in told:
        # Given as 1, it is read as 1.0.
        told["importance"] = float(told["importance"])
    text = json.dumps(told, ensure_ascii=False, default=_plain, separators=(",", ":"))
    digest = blake2b(digest_size=8)
    parts = [text, row.get(RECORD) or ""]
    terms = row.get("terms")
    numbers = np.asarray([] if terms is None else terms, "<u4").tobytes()
    for part in (*(each.encode() for each in parts), numbers, vector.astype("<f4").tobytes()):
        digest.update(len(part).to_bytes(8, "little") + part)
    return int.from_bytes(digest.digest(), "little", signed=True)


def rows_with_vectors(
    table: pa.Table, *, dimension: int
) -> Iterator[tuple[dict[str, Any], NDArray[np.float32]]]:
    """Yield the values of each row by column, and its vector, shape (dimension,)."""
    flat = table["vector"].combine_chunks().flatten()
    vectors = np.asarray(flat.to_numpy(zero_copy_only=False), np.float32).reshape(-1, dimension)
    yield from zip(table.drop_columns(["vector"]).to_pylist(), vectors, strict=True)


def _plain(value: object) -> int:
    if isinstance(value, datetime):
        return (value - _EPOCH) // _MICROSECOND
    if isinstance(value, np.integer):
        return int(value)
    raise TypeError(f"{value!r} is no value of a row")
