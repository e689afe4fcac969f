"""The items of LangGraph that one scope holds, and how each is named among all memories."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ekphory.errors import InvalidInput
from ekphory.filters.storable_text import is_storable
from ekphory.filters.tree import And, Comparison, Field, Filter, In
from ekphory.frameworks.langgraph_namespace import (
    END_OF_LABEL,
    Namespace,
    checked_labels,
    fixed_labels,
    namespace_path,
)
from ekphory.scope import LONGEST_NAME, SCOPE_FIELDS, Scope
from ekphory.store.owner import owned_like

if TYPE_CHECKING:
    from langgraph.store.base import MatchCondition

POOL = "langgraph"
"""What stores of LangGraph hold stands in this pool."""

_IN_POOL = Comparison(Field("pool"), "eq", POOL)

MOST_IDS = 900
"""Ids in one condition, of which a filter takes a thousand values."""
_FOLLOWING = chr(ord(END_OF_LABEL) + 1)


@dataclass(frozen=True, slots=True)
class ItemSpace:
    """The items that handles of exactly this scope put.

    Neither a wider nor a narrower scope shares them: of one namespace and key there is one item.
    """

    scope: Scope

    @property
    def items(self) -> Filter:
        """Holds for all of them."""
        return And((_IN_POOL, owned_like(self.scope)))

    def id_of(self, namespace: Sequence[str], key: str) -> str:
        """Give the id of an item's memory: the JSON list of its scope, all labels and the key.

        Raises:
            InvalidInput: A label or the key is no text, or they are too long together.
        """
        if not isinstance(key, str):
            raise InvalidInput("key", key, "is no text", "Give a str")
        bound = {name: getattr(self.scope, name) for name in SCOPE_FIELDS}
        owner = {name: value for name, value in bound.items() if value is not None}
        parts = [owner, *checked_labels(namespace), key]
        readable = json.dumps(parts, ensure_ascii=False)
        # Half of a surrogate pair is text in Python, and cannot be stored as it is.
        name = readable if is_storable(readable) else json.dumps(parts)
        if len(name) > LONGEST_NAME:
            raise InvalidInput(
                "key", key, "is too long with its namespace", f"Give up to {LONGEST_NAME:,}"
            )
        return name

    def beneath(self, prefix: Sequence[str]) -> Filter:
        """Give the condition for items in this namespace and in all within it."""
        path = namespace_path(prefix)
        if not path:
            return self.items
        end = path.removesuffix(END_OF_LABEL) + _FOLLOWING
        within = (Comparison(Field("path"), "ge", path), Comparison(Field("path"), "lt", end))
        return And((self.items, *within))

    def may_match(self, conditions: Iterable[MatchCondition]) -> Filter:
        """Give a condition for all items whose namespace fits, and perhaps for some more."""
        fixed = (fixed_labels(each.path) for each in conditions if each.match_type == "prefix")
        return And((self.items, *map(self.beneath, fixed)))


def named(ids: Sequence[str]) -> Iterator[Filter]:
    """Give conditions that together hold for the items with these ids, which say whose they are."""
    for start in range(0, len(ids), MOST_IDS):
        yield And((_IN_POOL, In(Field("id"), tuple(ids[start : start + MOST_IDS]))))


def place_of(name: str) -> tuple[Namespace, str]:
    """Give the namespace and the key that an id was made of."""
    _owner, *namespace, key = json.loads(name)
    return tuple(namespace), key
