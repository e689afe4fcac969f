"""Items of a dialogue in OpenAI's Agents SDK, as messages that a memory takes, and back."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from ekphory.errors import InvalidInput
from ekphory.pools import DEFAULT_POOL
from ekphory.recalled import without_recalled
from ekphory.records import LONGEST_TEXT
from ekphory.types import MemoryRecord

ITEM_KEY = "openai_agents_item"
"""The metadata key under which a memory holds its item, as JSON."""
TOOLS_POOL = "agent_tools"
"""Where everything stands that neither the user nor the assistant said."""

_SPEAKERS = ("user", "assistant")
_TEXTS = ("text", "refusal", "transcript")
_TELLING = ("name", "arguments", "input", "action", "output", "summary", "content")
"""What tells a reader about an item that is no message, in the order in which it is told."""
_LONGEST_TOOL_TEXT = 2_000
"""Characters of a tool's item that are searched; the item is kept whole all the same."""


def message_of(item: object, *, place: int) -> dict[str, Any]:
    """Give an item as a message for `Memory.add_messages`.

    What the user and the assistant said is searched as it is; a call, its output, reasoning and
    the rest in the pool `agent_tools`, by their first words.

    Args:
        item: As the SDK gives it.
        place: Its place among the items, for the error.

    Raises:
        InvalidInput: It is no item that JSON can hold.
    """
    if not isinstance(item, Mapping):
        raise InvalidInput(f"items[{place}]", item, "is no dict", 'Give {"role": …, "content": …}')
    try:
        # ASCII escapes keep what UTF-8 cannot carry.
        kept = json.dumps(item, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"items[{place}]", item, f"cannot be kept ({error})", "Give what JSON can hold"
        ) from error
    role = item.get("role") if _is_said(item) else None
    return {
        "id": uuid.uuid4().hex,
        "content": _searched(item),
        "role": role,
        "pool": TOOLS_POOL if role is None else DEFAULT_POOL,
        "metadata": {ITEM_KEY: kept},
    }


def item_of(record: MemoryRecord) -> Any:  # noqa: ANN401  one of the SDK's many dicts
    """Give the item back that a memory was made of, equal to what it was."""
    return json.loads(str(record.metadata[ITEM_KEY]))


def _is_said(item: Mapping[str, Any]) -> bool:
    return item.get("role") in _SPEAKERS and item.get("type", "message") == "message"


def _searched(item: Mapping[str, Any]) -> str:
    """Give the text to search, which is never empty: the kind where there are no words."""
    if _is_said(item):
        words = "\n".join(_words(item.get("content")))[:LONGEST_TEXT]
    else:
        told = (" ".join(_words(item.get(name))) for name in _TELLING)
        words = " ".join(part for part in told if part)[:_LONGEST_TOOL_TEXT]
    text = words.encode(errors="ignore").decode().replace("\0", "")
    # A message that holds nothing but recalled memories would not be stored, and must be.
    return text if without_recalled(text).strip() else str(item.get("type", "message"))


def _words(value: object) -> Iterator[str]:
    """Give the texts in a content, however it is built."""
    match value:
        case str() if value:
            yield value
        case list():
            for part in value:
                yield from _words(part)
        case dict():
            told = [value[name] for name in _TEXTS if name in value]
            for text in told:
                yield from _words(text)
