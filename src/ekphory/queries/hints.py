"""Lifts the memories that a query's words ask for: by importance, and by type."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ekphory.errors import InvalidInput
from ekphory.queries.query_class import QueryClass

_TYPES = ("episodic", "semantic", "procedural")
_STRONGEST = 10.0


def type_importance_boost(
    query_class: QueryClass | None,
    types: ArrayLike,
    importances: ArrayLike,
    *,
    type_bound: float = 0.3,
    importance_strength: float = 3.0,
) -> NDArray[np.float32]:
    """Compute one factor a candidate; exactly 1 without hints.

    The factor is (1 + type_bound·t) · exp(importance_strength·i·(2·importance - 1)): t is the hint
    for the candidate's own type, 0 for the type `unknown`; i is the hint for importance, and an
    importance of .5 is neutral. Who asks for what is most important wants it before what fits the
    other words better, so the lift must reach over several times the probability.
    `ekphory eval cues` measures both numbers (docs/LOG.md, experiments 23 and 33).

    Args:
        query_class: What the query was found to be; None is without hints.
        types: Memory types, shape (candidates,).
        importances: In [0, 1], shape (candidates,).
        type_bound: The most that the type lifts a factor; below 1.
        importance_strength: How far importance lifts or lowers, as a natural logarithm; from 0.

    Raises:
        InvalidInput: The shapes differ, or a number is out of range.
    """
    kinds, weights = np.asarray(types), np.asarray(importances, np.float32)
    if kinds.shape != weights.shape:
        raise InvalidInput(
            "importances",
            weights.shape,
            f"there are types of shape {kinds.shape}",
            "Give one importance for each type",
        )
    if not 0 <= type_bound < 1:
        raise InvalidInput("type_bound", type_bound, "is no bound", "Give it in [0, 1)")
    if not 0 <= importance_strength <= _STRONGEST:
        raise InvalidInput(
            "importance_strength", importance_strength, "is out of range", f"Give 0 to {_STRONGEST}"
        )
    if query_class is None or not query_class.hints.given:
        return np.ones(kinds.shape, np.float32)
    hints = query_class.hints
    by_type = np.zeros(kinds.shape, np.float32)
    for kind, hint in zip(_TYPES, (hints.episodic, hints.semantic, hints.procedural), strict=True):
        by_type += type_bound * hint * (kinds == kind)
    by_importance = np.exp(importance_strength * hints.importance * (2 * weights - 1))
    return np.asarray((1 + by_type) * by_importance, np.float32)
