"""Lifts the memories that a query's words ask for: by importance, and by type."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recollect.errors import InvalidInput
from recollect.queries.query_class import QueryClass

_TYPES = ("episodic", "semantic", "procedural")


def type_importance_boost(
    query_class: QueryClass | None,
    types: ArrayLike,
    importances: ArrayLike,
    *,
    bound: float = 0.1,
) -> NDArray[np.float32]:
    """Compute one factor a candidate, in [1 - bound, 1 + bound]; exactly 1 without hints.

    The factor is 1 + bound·clip(t + i, -1, 1): t is the hint for the candidate's own type, 0 for
    the type `unknown`; i is the hint for importance times 2·importance - 1, so that .5 is neutral.

    Args:
        query_class: What the query was found to be; None is without hints.
        types: Memory types, shape (candidates,).
        importances: In [0, 1], shape (candidates,).
        bound: The most that a factor may differ from 1; below 1.

    Raises:
        InvalidInput: The shapes differ, or `bound` lies outside [0, 1).
    """
    kinds, weights = np.asarray(types), np.asarray(importances, np.float32)
    if kinds.shape != weights.shape:
        raise InvalidInput(
            "importances",
            weights.shape,
            f"there are types of shape {kinds.shape}",
            "Give one importance for each type",
        )
    if not 0 <= bound < 1:
        raise InvalidInput("bound", bound, "a factor must stay positive", "Give it in [0, 1)")
    if query_class is None or not query_class.hints.given:
        return np.ones(kinds.shape, np.float32)
    hints = query_class.hints
    lift = hints.importance * (2 * weights - 1)
    for kind, hint in zip(_TYPES, (hints.episodic, hints.semantic, hints.procedural), strict=True):
        lift = lift + hint * (kinds == kind)
    return np.asarray(1 + bound * np.clip(lift, -1, 1), np.float32)
