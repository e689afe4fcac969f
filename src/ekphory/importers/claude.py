"""Import of Claude's data export: `conversations.json`, unpacked or inside the zip archive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from ekphory.importers.chat import (
    ChatConversation,
    ChatMessage,
    Role,
    file_names,
    read_export,
    read_moment,
    read_text,
    records_of,
)
from ekphory.importers.record import Readable, Unreadable

_ROLES: dict[object, Role] = {"human": "user", "user": "user", "assistant": "assistant"}


def read_claude(path: Path) -> Iterator[Readable]:
    """Read the messages of a Claude export, one conversation at a time.

    Only the blocks of kind `text` are read: calls to tools, their results and thinking are left
    out, and so are messages without text. Names of attached files go into the metadata.

    Args:
        path: `conversations.json`, the export's zip archive, or the folder it was unpacked into.

    Returns:
        One record per message, or one `Unreadable` per broken message or conversation.
    """
    return read_export(path, _read_conversation)


def _read_conversation(element: object, place: str) -> Iterator[Readable]:
    if not isinstance(element, dict) or not isinstance(element.get("chat_messages"), list):
        yield Unreadable(place, "chat_messages", "a conversation must hold chat_messages.")
        return
    identity = element.get("uuid")
    if not isinstance(identity, str) or not identity:
        yield Unreadable(place, "uuid", "the conversation has no uuid.")
        return
    conversation = ChatConversation(
        id=identity,
        title=read_text(element.get("name")),
        at=read_moment(element.get("created_at")),
        source="claude",
        place=f"{place} ({identity})",
    )
    yield from records_of(conversation, _messages(element["chat_messages"], conversation.place))


def _messages(messages: list[object], place: str) -> Iterator[ChatMessage | Unreadable]:
    for position, message in enumerate(messages):
        where = f"{place}, message {position}"
        if not isinstance(message, dict):
            yield Unreadable(where, "message", "not an object.", str(message)[:500])
        elif message.get("sender") not in _ROLES:
            reason = f"unknown sender {message.get('sender')!r}; expected human or assistant."
            yield Unreadable(where, "sender", reason, str(message.get("text"))[:500])
        elif text := _text_of(message):
            yield _read_message(message, text, position)


def _read_message(message: Mapping[str, object], text: str, position: int) -> ChatMessage:
    identity = message.get("uuid")
    names = [file_names(message.get(kind), "file_name") for kind in ("attachments", "files")]
    attached = ", ".join(name for name in names if name)
    return ChatMessage(
        id=identity if isinstance(identity, str) and identity else str(position),
        role=_ROLES[message.get("sender")],
        text=text,
        at=read_moment(message.get("created_at")),
        metadata={"attachments": attached} if attached else {},
    )


def _text_of(message: Mapping[str, object]) -> str:
    blocks = message.get("content")
    kept = [
        read_text(block.get("text"))
        for block in (blocks if isinstance(blocks, list) else [])
        if isinstance(block, dict) and block.get("type") == "text"
    ]
    if joined := "\n\n".join(text for text in kept if text):
        return joined
    # The flat text also holds stand-ins for tool blocks, so it counts only where no blocks are.
    return "" if blocks else read_text(message.get("text"))
