"""An item of LangGraph's stores as a memory, and back.

The value is kept whole, as JSON, in the memory's metadata; the memory's text is what is searched,
`at` when the item was last put, and its id and path say where it lies.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from langgraph.store.base import Item, SearchItem

from ekphory.errors import InvalidInput
from ekphory.filters.storable_text import is_storable
from ekphory.filters.tree import Comparison, Filter, MetadataField
from ekphory.frameworks.langgraph_namespace import namespace_path
from ekphory.frameworks.langgraph_space import POOL, place_of
from ekphory.frameworks.langgraph_text import searchable_text
from ekphory.moments import now_utc
from ekphory.types import MemoryRecord, Scalar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langgraph.store.base import PutOp

KEPT = datetime(9998, 1, 1, tzinfo=UTC)
"""When a memory expires that shall not: an update can move a moment, and not take it away."""

_VALUE, _CREATED, _MINUTES, _SEARCHABLE = "value", "created_at", "ttl", "searchable"
_NO_TEXT = "(not indexed)"
"""Text of a memory that is not searched, as no memory is without one."""

SEARCHABLE: Filter = Comparison(MetadataField(_SEARCHABLE), "eq", True)


@dataclass(frozen=True, slots=True)
class NewItem:
    """An item that is about to be put, checked.

    Attributes:
        id, path: Where it lies.
        text: What is searched of it; None for nothing.
        value: Its JSON.
        minutes: How long it lives after it was last read or put; None for good.
        at: When it is put.
    """

    id: str
    path: str
    text: str | None
    value: str
    minutes: float | None
    at: datetime

    @property
    def shown_text(self) -> str:
        """The text of its memory."""
        return self.text or _NO_TEXT

    def metadata(self, *, created_at: datetime) -> dict[str, Scalar]:
        """Give the metadata of its memory."""
        lifetime = {} if self.minutes is None else {_MINUTES: self.minutes}
        return {
            _VALUE: self.value,
            _CREATED: created_at.isoformat(),
            _SEARCHABLE: self.text is not None,
            **lifetime,
        }

    def record(self) -> dict[str, Any]:
        """Give its memory, as `Memory.add_many` takes it; its life begins now."""
        return {
            "id": self.id,
            "text": self.shown_text,
            "at": self.at,
            "pool": POOL,
            "path": self.path,
            "expires_at": None if self.minutes is None else expiry(self.minutes),
            "metadata": self.metadata(created_at=self.at),
        }


def new_item(op: PutOp, *, name: str, fields: Sequence[str], now: datetime) -> NewItem:
    """Check what shall be put.

    Args:
        op: The operation; its value is not None.
        name: The id of the item's memory.
        fields: What is searched where the operation does not say it.
        now: The moment.

    Raises:
        InvalidInput: Something cannot be stored.
    """
    if not isinstance(op.value, Mapping):
        raise InvalidInput("value", op.value, "is no dict", 'Give {"text": "…"}')
    searched = fields if op.index is None else op.index or ()
    return NewItem(
        id=name,
        path=namespace_path(op.namespace),
        text=searchable_text(op.value, searched),
        value=_to_json(op.value),
        minutes=_checked_minutes(op.ttl),
        at=now,
    )


def expiry(minutes: float | None) -> datetime:
    """Give the moment when an item of that lifetime expires, which is put or read now."""
    now = now_utc()
    if minutes is None or minutes >= (KEPT - now) / timedelta(minutes=1):
        return KEPT
    return now + timedelta(minutes=minutes)


def minutes_of(record: MemoryRecord) -> float | None:
    """Give an item's lifetime; None for one that is kept for good."""
    given = record.metadata.get(_MINUTES)
    return None if given is None else float(given)


def created_at(record: MemoryRecord) -> datetime:
    """Give the moment at which an item was first put."""
    return datetime.fromisoformat(str(record.metadata[_CREATED]))


def value_of(record: MemoryRecord) -> dict[str, Any]:
    """Give an item's value, a new one each time."""
    value: dict[str, Any] = json.loads(str(record.metadata[_VALUE]))
    return value


def is_searchable(record: MemoryRecord) -> bool:
    """Whether a query can find the item."""
    return record.metadata[_SEARCHABLE] is True


def item_of(record: MemoryRecord) -> Item:
    """Give a stored item as LangGraph has it."""
    namespace, key = place_of(record.id)
    return Item(
        value=value_of(record),
        key=key,
        namespace=namespace,
        created_at=created_at(record),
        updated_at=record.at,
    )


def found_item(record: MemoryRecord, score: float | None) -> SearchItem:
    """Give a stored item as a search has it."""
    namespace, key = place_of(record.id)
    return SearchItem(
        namespace=namespace,
        key=key,
        value=value_of(record),
        created_at=created_at(record),
        updated_at=record.at,
        score=score,
    )


def _to_json(value: Mapping[str, Any]) -> str:
    try:
        readable = json.dumps(dict(value), ensure_ascii=False, allow_nan=False)
        return readable if is_storable(readable) else json.dumps(dict(value), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            "value", value, f"is no JSON ({error})", "Give texts, numbers, lists and dicts"
        ) from error


def _checked_minutes(minutes: float | None) -> float | None:
    if minutes is None:
        return None
    is_number = isinstance(minutes, int | float) and not isinstance(minutes, bool)
    if not is_number or not math.isfinite(minutes) or minutes <= 0:
        raise InvalidInput("ttl", minutes, "is no lifetime", "Give minutes above 0, or None")
    return float(minutes)
