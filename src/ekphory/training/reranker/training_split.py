"""Which rows of a training file are held back for measuring and calibrating, decided by hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Literal

from ekphory.training.training_rows import Row

Part = Literal["trained", "held_back"]

_ONE_OF = 16
# Rows that share an answer go to the same side.
_ANSWER_FIELDS = ("sentence", "passage")


def rows_of(part: Part, rows: Sequence[Row]) -> list[Row]:
    """Give the rows of one part; the same rows always belong to the same part."""
    return [row for row in rows if part_of(row) == part]


def part_of(row: Row) -> Part:
    """Hold one row of sixteen back, by the SHA-256 of its answer, or of all of it."""
    answer = next((row[field] for field in _ANSWER_FIELDS if field in row), row)
    digest = hashlib.sha256(json.dumps(answer, sort_keys=True).encode()).digest()
    return "held_back" if digest[0] % _ONE_OF == 0 else "trained"
