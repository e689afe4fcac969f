"""Messages as mem0's `add` takes them, as messages that a memory takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ekphory.errors import InvalidInput
from ekphory.recalled import without_recalled

Messages = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""A text that the user said, a message, or a list of messages."""

_REMEDY = 'Give [{"role": "user", "content": "…"}]'


def told_messages(messages: Messages) -> list[dict[str, Any]]:
    """Give the messages that say something, each with `content`, `role` and `producer`.

    Left out are, as in mem0, those of the system and those without words, such as calls of tools
    and pictures; and, as everywhere here, those that hold nothing but recalled memories.

    Raises:
        InvalidInput: It is no message, or one without a role.
    """
    if isinstance(messages, str):
        messages = {"role": "user", "content": messages}
    listed = [messages] if isinstance(messages, Mapping) else messages
    if not isinstance(listed, Sequence):
        raise InvalidInput("messages", messages, "is no message", _REMEDY)
    read = [_message(message, place) for place, message in enumerate(listed)]
    return [message for message in read if message is not None]


def _message(message: object, place: int) -> dict[str, Any] | None:
    if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
        raise InvalidInput(f"messages[{place}]", message, "is no message with a role", _REMEDY)
    role, name = message["role"], message.get("name")
    content = _words(message.get("content"))
    if role == "system" or not without_recalled(content).strip():
        return None
    return {"role": role, "producer": name or role, "content": content}


def _words(content: object) -> str:
    """Give a content's text: itself, or that of its parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    texts = (part.get("text") for part in parts if isinstance(part, Mapping))
    return "\n".join(text for text in texts if isinstance(text, str) and text)
