"""A session of OpenAI's Agents SDK whose dialogue is kept in a memory."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ekphory.errors import InvalidInput, MemoryNotFound, MissingExtra
from ekphory.filters.tree import And, IsNull, MetadataField, Not
from ekphory.memory import Memory
from ekphory.prompting.recall_block import strip_recall_blocks
from ekphory.scope import owned_like
from ekphory.types import DEFAULT_POOL, MemoryRecord
from ekphory.write import LONGEST_TEXT

try:
    from agents.memory.session import SessionABC
    from agents.memory.session_settings import SessionSettings, resolve_session_limit
except ImportError as error:
    raise MissingExtra("openai-agents", "A session of OpenAI's Agents SDK") from error


if TYPE_CHECKING:
    from agents.items import TResponseInputItem


ITEM_KEY = "openai_agents_item"
"""The metadata key under which a memory holds its item, as JSON."""
TOOLS_POOL = "agent_tools"
"""Where everything stands that neither the user nor the assistant said."""

_SPEAKERS = ("user", "assistant")
_TEXTS = ("text", "refusal", "transcript")
_TELLING = ("name", "arguments", "input", "action", "output", "summary", "content")
"""What tells a reader about an item that is not a message, in the order in which it is told."""
_LONGEST_TOOL_TEXT = 2_000
"""Characters of a tool's item that are searched; the item is kept whole all the same."""


def make_message(item: object, *, place: int) -> dict[str, Any]:
    """Return an item as a message for `Memory.add_messages`.

    What the user and the assistant said is searched as it is; a call, its output, reasoning and
    the rest in the pool `agent_tools`, by their first words.

    Args:
        item: As the SDK gives it.
        place: Its place among the items, for the error.

    Raises:
        InvalidInput: It is no item that JSON can hold.
    """
    if not isinstance(item, Mapping):
        problem = "must be a mapping"
        raise InvalidInput(f"items[{place}]", item, problem, 'Give {"role": …, "content": …}')
    try:
        # ASCII escapes keep what UTF-8 cannot carry.
        kept = json.dumps(item, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        remedy = "Give what JSON can hold"
        raise InvalidInput(f"items[{place}]", item, f"cannot be kept ({error})", remedy) from error
    role = item.get("role") if _is_said(item) else None
    return {
        "id": uuid.uuid4().hex,
        "content": _extract_text(item),
        "role": role,
        "pool": TOOLS_POOL if role is None else DEFAULT_POOL,
        "metadata": {ITEM_KEY: kept},
    }


def read_item(record: MemoryRecord) -> Any:  # noqa: ANN401  one of the SDK's many dicts
    """Return the item that a memory was made of, equal to what it was."""
    return json.loads(str(record.metadata[ITEM_KEY]))


def _is_said(item: Mapping[str, Any]) -> bool:
    return item.get("role") in _SPEAKERS and item.get("type", "message") == "message"


def _extract_text(item: Mapping[str, Any]) -> str:
    """Return the text to search, which is never empty: the kind where there are no words."""
    if _is_said(item):
        words = "\n".join(_iterate_words(item.get("content")))[:LONGEST_TEXT]
    else:
        told = (" ".join(_iterate_words(item.get(name))) for name in _TELLING)
        words = " ".join(part for part in told if part)[:_LONGEST_TOOL_TEXT]
    text = words.encode(errors="ignore").decode().replace("\0", "")
    # A message that holds nothing but recalled memories would not be stored, and must be.
    return text if strip_recall_blocks(text).strip() else str(item.get("type", "message"))


def _iterate_words(value: object) -> Iterator[str]:
    """Return the texts in a content, however it is built."""
    match value:
        case str() if value:
            yield value
        case list():
            for part in value:
                yield from _iterate_words(part)
        case dict():
            told = [value[name] for name in _TEXTS if name in value]
            for text in told:
                yield from _iterate_words(text)


_ALL = 2**31 - 1


class EkphorySession(SessionABC):  # type: ignore[misc]  # its package is not read: that takes longest
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
            problem = "is bound to no session"
            raise InvalidInput("memory", memory.scope, problem, "Open it with Memory(…, session=)")
        self.session_id = memory.scope.session
        self.session_settings = session_settings
        self._memory = memory
        # Of exactly this scope: what it leaves open is missing in its items.
        held = Not(IsNull(MetadataField(ITEM_KEY)))
        self._items = And((owned_like(memory.scope), held))

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the newest `limit` items, or as many as the settings say, in order."""
        most = resolve_session_limit(limit, self.session_settings)
        records = await asyncio.to_thread(self._read_last, _ALL if most is None else most)
        return [read_item(record) for record in records]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items, all or none; on return they are durable.

        Raises:
            InvalidInput: An item is not a mapping that JSON can hold.
        """
        messages = [make_message(item, place=place) for place, item in enumerate(items)]
        if messages:
            await asyncio.to_thread(self._memory.add_messages, messages)

    async def pop_item(self) -> TResponseInputItem | None:
        """Forget the newest item and give it; None where there is none."""
        return await asyncio.to_thread(self._pop)

    async def clear_session(self) -> None:
        """Forget all items, and with them what can be found of the dialogue."""
        await asyncio.to_thread(self._memory.forget, filter=self._items)

    def _read_last(self, most: int) -> Sequence[MemoryRecord]:
        held = self._memory.count(filter=self._items)
        wanted = min(most, held)
        if wanted <= 0:
            return ()
        return self._memory.list(
            filter=self._items, limit=wanted, offset=held - wanted, order="written"
        )

    def _pop(self) -> TResponseInputItem | None:
        while self._memory.count(filter=self._items):
            last = self._read_last(1)
            if last and self._forget(last[0].id):
                item: TResponseInputItem = read_item(last[0])
                return item
        return None

    def _forget(self, memory_id: str) -> bool:
        """Forget an item; False where somebody else has taken it in between."""
        try:
            return self._memory.forget(memory_id) == 1
        except MemoryNotFound:
            return False
