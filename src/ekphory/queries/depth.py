"""How deep a query should be searched."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ekphory.queries.query_class import Intent, QueryClass

DEEPEST = 2.0
_EXTRA: Mapping[Intent, float] = MappingProxyType({"temporal": 0.25, "comparison": 0.5, "chain": 1})


def depth_factor(query_class: QueryClass | None) -> float:
    """Give what a search's depth is multiplied by, in [1, `DEEPEST`].

    A plain lookup, and a query of which nothing is known, has 1; a chain 2. Comparisons and
    questions about a time lie between, and complexity adds up to a half.
    """
    if query_class is None:
        return 1.0
    extra = _EXTRA.get(query_class.intent, 0.0) + 0.5 * query_class.complexity
    return min(1.0 + extra, DEEPEST)
