"""What a change reader is: it reads two dated statements, and says what the newer one means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from ekphory.types import MemoryRecord

ChangeKind = Literal[
    "replaces",
    "corrects",
    "ends",
    "restates",
    "adds",
    "plans",
    "excepts",
    "other subject",
    "unrelated",
]
CHANGE_KINDS: tuple[ChangeKind, ...] = get_args(ChangeKind)


@dataclass(frozen=True, slots=True)
class StatementPair:
    """Two memories, of which the second one is the newer."""

    older: MemoryRecord
    newer: MemoryRecord


class ChangeReader(Protocol):
    """What reads pairs of statements.

    Attributes:
        name: What the ledger calls it.
        thresholds: From which probability on a decision acts, and from which on it is shown.
    """

    name: str
    thresholds: ChangeThresholds

    def read(self, pairs: Sequence[StatementPair]) -> NDArray[np.float32]:
        """Return the probability of each kind, shape (pairs, kinds), in the order of the kinds."""


@dataclass(frozen=True, slots=True)
class ChangeThresholds:
    """What becomes of a decision, by its probability.

    Attributes:
        acts: From here on a decision acts.
        shows: From here on it is a conflict to look at.
    """

    acts: float
    shows: float


BUNDLED = Path(str(files("ekphory.models"))) / "bundled" / "change-reader"


@lru_cache(1)
def bundled_change_reader() -> ChangeReader:
    """Return the change reader that ekphory brings; it is loaded once."""
    # Importing ONNX Runtime takes a tenth of a second, and touches the home folder.
    from ekphory.models.onnx_change_reader import OnnxChangeReader

    return OnnxChangeReader(BUNDLED)
