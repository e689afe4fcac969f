"""`EkphorySession`: a session of OpenAI's Agents SDK whose dialogue is kept as memories."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ekphory.errors import InvalidInput, MemoryNotFound, MissingExtra
from ekphory.filters.tree import And, Filter, IsNull, MetadataField, Not
from ekphory.frameworks.openai_agents_items import ITEM_KEY, item_of, message_of
from ekphory.memory import Memory
from ekphory.scope import Scope
from ekphory.store.owner import owned_like
from ekphory.types import MemoryRecord

try:
    from agents.memory.session_settings import SessionSettings, resolve_session_limit
except ImportError as error:
    raise MissingExtra("openai-agents", "A session of OpenAI's Agents SDK") from error

if TYPE_CHECKING:
    from agents.items import TResponseInputItem

_ALL = 2**31 - 1


class EkphorySession:
    """A dialogue in the scope of a memory, for `Runner.run(agent, input, session=…)`.

    Every item comes back equal and in order: messages, calls of tools and their output, reasoning.
    They are memories besides: what user and assistant said is found by a search in the session's
    scope, or in a wider one, such as that of the user over all sessions.

    Sessions are told apart by the whole scope of the memory, org, project, agent, user and session.
    A memory that binds no user sees no dialogue of one who does.

    Args:
        memory: Bound to a session, whose name becomes the `session_id`. It is not closed.
        session_settings: As in the SDK: how many items `get_items` gives at most.

    Raises:
        InvalidInput: The memory is bound to no session.
    """

    def __init__(self, memory: Memory, *, session_settings: SessionSettings | None = None) -> None:
        if memory.scope.session is None:
            raise InvalidInput(
                "memory", memory.scope, "is bound to no session", "Open it with Memory(…, session=)"
            )
        self.session_id = memory.scope.session
        self.session_settings = session_settings
        self._memory = memory
        self._items = _items_of(memory.scope)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Give the newest `limit` items, or as many as the settings say, in order."""
        most = resolve_session_limit(limit, self.session_settings)
        return await asyncio.to_thread(self._newest, most)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items, all or none; on return they are durable.

        Raises:
            InvalidInput: An item is no dict that JSON can hold.
        """
        messages = [message_of(item, place=place) for place, item in enumerate(items)]
        if messages:
            await asyncio.to_thread(self._memory.add_messages, messages)

    async def pop_item(self) -> TResponseInputItem | None:
        """Forget the newest item and give it; None where there is none."""
        return await asyncio.to_thread(self._pop)

    async def clear_session(self) -> None:
        """Forget all items, and with them what can be found of the dialogue."""
        await asyncio.to_thread(self._memory.forget, filter=self._items)

    def _newest(self, most: int | None) -> list[TResponseInputItem]:
        records = self._written() if most is None else self._last(most)
        return [item_of(record) for record in records]

    def _last(self, most: int) -> Sequence[MemoryRecord]:
        held = self._memory.count(filter=self._items)
        wanted = min(most, held)
        return self._written(limit=wanted, offset=held - wanted) if wanted > 0 else ()

    def _written(self, *, limit: int = _ALL, offset: int = 0) -> Sequence[MemoryRecord]:
        return self._memory.list(filter=self._items, limit=limit, offset=offset, order="written")

    def _pop(self) -> TResponseInputItem | None:
        while held := self._memory.count(filter=self._items):
            last = self._written(limit=1, offset=held - 1)
            if last and self._forgotten(last[0].id):
                item: TResponseInputItem = item_of(last[0])
                return item
        return None

    def _forgotten(self, memory_id: str) -> bool:
        """Forget an item; False where somebody else has taken it in between."""
        try:
            return self._memory.forget(memory_id) == 1
        except MemoryNotFound:
            return False


def _items_of(scope: Scope) -> Filter:
    """Give the condition for the items of exactly this scope: what it leaves open is missing."""
    return And((owned_like(scope), Not(IsNull(MetadataField(ITEM_KEY)))))
