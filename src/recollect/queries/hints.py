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
    type_bound: float = 0.3,
    importance_bound: float = 0.7,
) -> NDArray[np.float32]:
    """Compute one factor a candidate; exactly 1 without hints.

    The factor is 1 + type_bound·t + importance_bound·i: t is the hint for the candidate's own type,
    0 for the type `unknown`; i is the hint for importance times 2·importance - 1, so that .5 is
    neutral. `recollect eval cues` measures the bounds; a tenth each decides next to nothing there.

    Args:
        query_class: What the query was found to be; None is without hints.
        types: Memory types, shape (candidates,).
        importances: In [0, 1], shape (candidates,).
        type_bound: The most that the type lifts a factor; below 1.
        importance_bound: The most that the importance lifts or lowers a factor; below 1.

    Raises:
        InvalidInput: The shapes differ, or a bound lies outside [0, 1).
    """
    kinds, weights = np.asarray(types), np.asarray(importances, np.float32)
    if kinds.shape != weights.shape:
        raise InvalidInput(
            "importances",
            weights.shape,
            f"there are types of shape {kinds.shape}",
            "Give one importance for each type",
        )
    for name, bound in (("type_bound", type_bound), ("importance_bound", importance_bound)):
        if not 0 <= bound < 1:
            raise InvalidInput(name, bound, "a factor must stay positive", "Give it in [0, 1)")
    if query_class is None or not query_class.hints.given:
        return np.ones(kinds.shape, np.float32)
    hints = query_class.hints
    lift = importance_bound * hints.importance * (2 * weights - 1)
    for kind, hint in zip(_TYPES, (hints.episodic, hints.semantic, hints.procedural), strict=True):
        lift = lift + type_bound * hint * (kinds == kind)
    return np.asarray(1 + lift, np.float32)
