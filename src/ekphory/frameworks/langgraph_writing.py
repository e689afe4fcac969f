"""Writing LangGraph's items: put, delete, and their lifetimes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import timedelta

from ekphory.errors import InvalidInput, MemoryNotFound, StoreError
from ekphory.filters.tree import And, Comparison, Field
from ekphory.frameworks.langgraph_item import NewItem, created_at, expiry, minutes_of
from ekphory.frameworks.langgraph_reading import ItemReader
from ekphory.frameworks.langgraph_space import ItemSpace, named
from ekphory.memory import Memory
from ekphory.moments import now_utc
from ekphory.types import MemoryRecord

_ATTEMPTS = 10
_WORTH_WRITING = 0.01
"""A lifetime that is newer by less than this share of itself is left as it is."""


class ItemWriter:
    """Writes items to a memory, and keeps no earlier versions of them."""

    def __init__(self, memory: Memory, reader: ItemReader) -> None:
        self._memory = memory
        self._space = ItemSpace(memory.scope)
        self._reader = reader

    def put(self, items: Sequence[NewItem]) -> None:
        """Write items, in the place of those that are there.

        Raises:
            InvalidInput: An item cannot be stored.
            StoreError: Others wrote the same items all the time.
        """
        left = items
        for _ in range(_ATTEMPTS):
            if not left:
                return
            left = self._left_of(left)
        raise StoreError(
            f"{len(left)} items, {left[0].id} among them, were not put: others write them too, or "
            f"memories that are no items have their ids. Put them again, or rename them."
        )

    def delete(self, ids: Sequence[str]) -> None:
        """Delete those of these items that there are."""
        for where in named(ids):
            self._memory.forget(filter=where)

    def refresh(self, records: Iterable[MemoryRecord]) -> None:
        """Let items live on that were read; one that is gone meanwhile stays gone."""
        for record in records:
            if _is_worth_prolonging(record):
                with suppress(MemoryNotFound):
                    self._prolong(record)

    def sweep(self) -> int:
        """Delete what has expired; returns how many items."""
        expired = Comparison(Field("expires_at"), "le", now_utc())
        return self._memory.forget(filter=And((self._space.items, expired)))

    def _left_of(self, items: Sequence[NewItem]) -> list[NewItem]:
        """Write what nobody else is writing; gives the others."""
        there = self._reader.get([item.id for item in items])
        left = self._add([item for item in items if item.id not in there])
        old = [item for item in items if item.id in there]
        return left + [item for item in old if not self._replace(item, there[item.id])]

    def _add(self, items: Sequence[NewItem]) -> list[NewItem]:
        """Write items that were not there; gives those that somebody else wrote meanwhile."""
        if not items:
            return []
        report = self._memory.add_many(item.record() for item in items)
        if report.failed:
            first = report.failed[0]
            raise InvalidInput(first.field, first.id, first.message, "The others were put")
        if not report.skipped:
            return []
        there = self._reader.get([item.id for item in items])
        return [each for each in items if each.id not in there or there[each.id].at != each.at]

    def _replace(self, item: NewItem, before: MemoryRecord) -> bool:
        """Write an item over the one that is there; False if that is gone."""
        try:
            after = self._memory.update(
                item.id,
                text=item.shown_text,
                at=item.at,
                # Given in any case: what stands there may have a lifetime.
                expires_at=expiry(item.minutes),
                metadata=item.metadata(created_at=created_at(before)),
            )
        except MemoryNotFound:
            return False
        self._drop_version_before(after)
        return True

    def _prolong(self, record: MemoryRecord) -> None:
        while True:
            minutes = minutes_of(record)
            after = self._memory.update(record.id, expires_at=expiry(minutes))
            self._drop_version_before(after)
            if minutes_of(after) == minutes:
                return
            # It was put in between, and has another lifetime now.
            record = after

    def _drop_version_before(self, record: MemoryRecord) -> None:
        if record.supersedes is not None:
            with suppress(MemoryNotFound):
                self._memory.forget(record.supersedes)


def _is_worth_prolonging(record: MemoryRecord) -> bool:
    minutes = minutes_of(record)
    if minutes is None or record.expires_at is None:
        return False
    gain = (expiry(minutes) - record.expires_at) / timedelta(minutes=1)
    return gain >= minutes * _WORTH_WRITING
