"""Reading LangGraph's items: by their place, by what they hold, and by what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ekphory.errors import InvalidInput
from ekphory.filters.tree import And, Filter
from ekphory.frameworks.langgraph_filter import check_value_filter, lets_through
from ekphory.frameworks.langgraph_item import SEARCHABLE, is_searchable, value_of
from ekphory.frameworks.langgraph_namespace import Namespace, fits
from ekphory.frameworks.langgraph_space import MOST_IDS, ItemSpace, named, place_of
from ekphory.memory import Memory
from ekphory.searching import MOST_HITS
from ekphory.types import MemoryRecord

if TYPE_CHECKING:
    from langgraph.store.base import ListNamespacesOp, SearchOp

_ALL = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Found:
    """An item that a search gives, with its probability where a query asked for one."""

    record: MemoryRecord
    score: float | None = None


class ItemReader:
    """Reads the items of a memory's scope; with a query, by the pipeline `preset`."""

    def __init__(self, memory: Memory, *, preset: str | None) -> None:
        self._memory = memory
        self._space = ItemSpace(memory.scope)
        self._preset = preset

    def get(self, ids: Sequence[str]) -> dict[str, MemoryRecord]:
        """Give those of these items that there are."""
        lists = [self._memory.list(filter=where, limit=_ALL) for where in named(ids)]
        return {record.id: record for records in lists for record in records}

    def search(self, op: SearchOp) -> list[Found]:
        """Give a page of items: the likeliest first with a query, without one the newest.

        Items that a query cannot find stand behind all others.

        Raises:
            InvalidInput: The page or the filter cannot be used.
        """
        _check_page(op.limit, op.offset)
        if not op.limit:
            return []
        where, end = self._space.beneath(op.namespace_prefix), op.offset + op.limit
        query = (op.query or "").strip()
        if query:
            return self._ranked(query, op, where)[op.offset : end]
        if op.filter:
            return [Found(record) for record in self._matching(op, where)[op.offset : end]]
        page = self._memory.list(filter=where, limit=op.limit, offset=op.offset)
        return [Found(record) for record in page]

    def namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        """Give a page of the namespaces that hold items, in order and each once.

        Raises:
            InvalidInput: The page or a condition cannot be used.
        """
        _check_page(op.limit, op.offset)
        conditions = op.match_conditions or ()
        records = self._memory.list(filter=self._space.may_match(conditions), limit=_ALL)
        held = {place_of(record.id)[0] for record in records}
        fitting = (each for each in held if all(fits(wanted, each) for wanted in conditions))
        return sorted({each[: op.max_depth] for each in fitting})[op.offset : op.offset + op.limit]

    def _matching(self, op: SearchOp, where: Filter) -> list[MemoryRecord]:
        check_value_filter(op.filter or {})
        records = self._memory.list(filter=where, limit=_ALL)
        return [each for each in records if lets_through(op.filter or {}, value_of(each))]

    def _ranked(self, query: str, op: SearchOp, where: Filter) -> list[Found]:
        end = op.offset + op.limit
        if op.filter:
            matching = self._matching(op, where)
            ranked = self._ranked_among(query, matching, where)
        else:
            ranked = self._hits(query, where, k=end)
            if len(ranked) >= end:
                return ranked
            matching = self._memory.list(filter=where, limit=end)
        scored = {found.record.id for found in ranked}
        return ranked + [Found(record) for record in matching if record.id not in scored]

    def _ranked_among(
        self, query: str, matching: Sequence[MemoryRecord], where: Filter
    ) -> list[Found]:
        ids = [record.id for record in matching if is_searchable(record)]
        if not ids:
            return []
        if len(ids) <= MOST_IDS:
            return self._hits(query, *named(ids), k=len(ids))
        # Too many to name: they are most of what the namespace holds, or will rarely be ranked.
        wanted = set(ids)
        hits = self._hits(query, where, k=MOST_HITS)
        return [found for found in hits if found.record.id in wanted]

    def _hits(self, query: str, where: Filter, *, k: int) -> list[Found]:
        result = self._memory.search(
            query,
            k=min(k, MOST_HITS),
            filter=And((where, SEARCHABLE)),
            preset=self._preset,
        )
        return [Found(hit.memory, hit.score) for hit in result]


def _check_page(limit: int, offset: int) -> None:
    for name, value in (("limit", limit), ("offset", offset)):
        if value < 0:
            raise InvalidInput(name, value, "is negative", "Give 0 or more")
