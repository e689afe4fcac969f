"""LangGraph's long-term memory, `BaseStore`, kept in an ekphory store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from ekphory.errors import InvalidInput, MissingExtra

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        ListNamespacesOp,
        Op,
        PutOp,
        Result,
        SearchOp,
        TTLConfig,
    )
except ImportError as error:
    raise MissingExtra("langgraph", "A store of LangGraph") from error

from ekphory.frameworks.langgraph_item import NewItem, found_item, item_of, new_item
from ekphory.frameworks.langgraph_reading import ItemReader
from ekphory.frameworks.langgraph_space import ItemSpace
from ekphory.frameworks.langgraph_sweeper import Sweeper
from ekphory.frameworks.langgraph_text import WHOLE
from ekphory.frameworks.langgraph_writing import ItemWriter
from ekphory.memory import Memory
from ekphory.moments import now_utc
from ekphory.types import MemoryRecord


class EkphoryStore(BaseStore):
    """A store for LangGraph whose items are durable, and found by what they mean.

        with Memory("./memories", user="mara") as memory:
            graph = builder.compile(store=EkphoryStore(memory))

    Items belong to exactly the scope of `memory`: neither a wider nor a narrower one shares them.
    They are memories of the pool `langgraph`, which the memory's own searches find too. Items that
    have expired are hidden at once.

    Args:
        memory: Where items are kept. It stays the caller's to close.
        fields: What is searched of a value where `put` does not say it: paths such as `title` or
            `messages[*].content`; `$` is the whole value.
        ttl: How long items live: `default_ttl` in minutes, `refresh_on_read`, and
            `sweep_interval_minutes` for `start_ttl_sweeper`.
        preset: The pipeline that answers queries; None for the default.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: Memory,
        *,
        fields: Sequence[str] = (WHOLE,),
        ttl: TTLConfig | None = None,
        preset: str | None = None,
    ) -> None:
        if isinstance(fields, str):
            raise InvalidInput("fields", fields, "is no list", "Give ['title', 'text']")
        self.ttl_config = ttl
        self._fields = tuple(fields)
        self._space = ItemSpace(memory.scope)
        self._reader = ItemReader(memory, preset=preset)
        self._writer = ItemWriter(memory, self._reader)
        self._sweeper: Sweeper | None = None

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Answer operations, in order.

        As in LangGraph's own stores, all of them read what was there before, and of several that
        put one item the last counts. Nothing is done when something cannot be stored.

        Raises:
            InvalidInput: An operation cannot be understood, or a value not be stored.
        """
        asked = list(ops)
        puts = {self._name(op): op for op in asked if isinstance(op, PutOp)}
        new = [self._new(name, op) for name, op in puts.items() if op.value is not None]
        gets = [self._name(op) for op in asked if isinstance(op, GetOp)]
        there = self._reader.get(gets)
        read: dict[str, MemoryRecord] = {}
        results = [self._answer(op, there, read) for op in asked]
        self._writer.refresh(read.values())
        self._writer.delete([name for name, op in puts.items() if op.value is None])
        self._writer.put(new)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do the same in a thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def sweep_ttl(self) -> int:
        """Delete the items that have expired from the store; returns how many."""
        return self._writer.sweep()

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> None:
        """Sweep every so many minutes, in the background, until `stop_ttl_sweeper`.

        Args:
            sweep_interval_minutes: None for the one that the store was made with.

        Raises:
            InvalidInput: There is no interval, or none above 0.
        """
        minutes = sweep_interval_minutes
        if minutes is None:
            minutes = (self.ttl_config or {}).get("sweep_interval_minutes")
        if minutes is None or minutes <= 0:
            raise InvalidInput(
                "sweep_interval_minutes", minutes, "is no interval", "Give minutes above 0"
            )
        self.stop_ttl_sweeper()
        self._sweeper = Sweeper(self.sweep_ttl, minutes=minutes)

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """End the sweeping; False where one is still under way after that many seconds."""
        return self._sweeper is None or self._sweeper.stop(timeout)

    def _name(self, op: GetOp | PutOp) -> str:
        return self._space.id_of(op.namespace, op.key)

    def _new(self, name: str, op: PutOp) -> NewItem:
        return new_item(op, name=name, fields=self._fields, now=now_utc())

    def _answer(
        self, op: Op, there: Mapping[str, MemoryRecord], read: dict[str, MemoryRecord]
    ) -> Result:
        """Give an operation's result, and note in `read` what shall live on for it."""
        match op:
            case GetOp():
                record = there.get(self._name(op))
                if record is None:
                    return None
                read |= {record.id: record} if op.refresh_ttl else {}
                return item_of(record)
            case SearchOp():
                found = self._reader.search(op)
                read |= {each.record.id: each.record for each in found if op.refresh_ttl}
                return [found_item(each.record, each.score) for each in found]
            case ListNamespacesOp():
                return self._reader.namespaces(op)
            case PutOp():
                return None
            case _:
                raise InvalidInput("ops", op, "is no operation", "Give GetOp, PutOp, SearchOp …")
