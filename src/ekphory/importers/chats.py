"""Imports of the chat exports of ChatGPT and Claude."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from ekphory.errors import InvalidInput
from ekphory.importers.source import (
    ImportedRecord,
    Readable,
    Unreadable,
    open_exports,
    stream_elements,
)
from ekphory.types import Scalar, to_utc

# The part that the importers of chat exports share: conversations read, messages into records.

Role = Literal["user", "assistant"]
_OTHER: dict[Role, Role] = {"user": "assistant", "assistant": "user"}


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One visible message of an export.

    Attributes:
        id: The product's id, unique within the conversation.
        role: Who wrote it.
        text: What was written, never blank.
        at: When, in UTC; None where the export does not say.
        metadata: Further facts, for example names of attached files.
    """

    id: str
    role: Role
    text: str
    at: datetime | None
    metadata: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ChatConversation:
    """What an export says about a conversation as a whole.

    Attributes:
        id: The product's id of the conversation.
        title: Its title, possibly empty.
        at: When it began, in UTC, where the export says so.
        source: The product: `chatgpt` or `claude`.
        place: Where it was found, for people.
    """

    id: str
    title: str
    at: datetime | None
    source: str
    place: str


def read_export(
    path: Path, read_conversation: Callable[[object, str], Iterator[Readable]]
) -> Iterator[Readable]:
    """Read a product's export, one conversation at a time.

    Args:
        path: `conversations.json`, the export's zip archive, or the folder it was unpacked into.
        read_conversation: Reads one conversation as the product writes it; is told its place.

    Yields:
        What was read of each conversation, or one `Unreadable` where the file breaks off.
    """
    for name, stream in open_exports(path):
        for position, element in stream_elements(stream, name):
            if isinstance(element, Unreadable):
                yield element
            else:
                yield from read_conversation(element, f"{name}: conversation {position}")


def records_of(
    conversation: ChatConversation, messages: Iterable[ChatMessage | Unreadable]
) -> Iterator[Readable]:
    """Turn the messages of one conversation, in order, into records.

    A message without a moment takes that of the message before it, or else the conversation's.
    """
    latest = conversation.at
    sequence = 0
    for message in messages:
        if isinstance(message, Unreadable):
            yield message
            continue
        latest = message.at or latest
        place = f"{conversation.place}, message {message.id}"
        if latest is None:
            reason = "neither the message nor its conversation says when it was. Add create_time."
            yield Unreadable(place, "at", reason, message.text[:500])
        else:
            yield ImportedRecord(_fields(conversation, message, sequence, latest), place)
        sequence += 1


def _fields(
    conversation: ChatConversation, message: ChatMessage, sequence: int, at: datetime
) -> dict[str, object]:
    title: dict[str, Scalar] = {"title": conversation.title} if conversation.title else {}
    return {
        "id": f"{conversation.id}/{message.id}",
        "text": message.text,
        "at": at,
        "producer": message.role,
        "produced_for": _OTHER[message.role],
        "role": message.role,
        "session": conversation.id,
        "sequence": sequence,
        "source": conversation.source,
        "metadata": {**title, **message.metadata},
    }


def read_moment(value: object) -> datetime | None:
    """Read a Unix time in seconds or an ISO 8601 text; None where it is missing or impossible."""
    try:
        if isinstance(value, str):
            return to_utc(value, field="at")
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, tz=UTC)
    except (InvalidInput, ValueError, OverflowError, OSError):
        return None
    return None


def read_text(value: object) -> str:
    """Return a text without the white space around it; an empty one where it is missing."""
    return value.strip() if isinstance(value, str) else ""


def file_names(files: object, key: str) -> str:
    """Join the names of attached files, kept under `key`, into one text."""
    if not isinstance(files, list):
        return ""
    names = [file.get(key) for file in files if isinstance(file, dict)]
    return ", ".join(name for name in names if isinstance(name, str) and name)


# Import of ChatGPT's data export: `conversations.json`, unpacked or inside the zip archive.

_ROLES: dict[object, Role] = {"user": "user", "assistant": "assistant"}
_VISIBLE_CONTENT = ("text", "multimodal_text", "code")


def read_chatgpt(path: Path) -> Iterator[Readable]:
    """Read the visible messages of a ChatGPT export, one conversation at a time.

    A conversation is a tree of messages; what is read is the branch that the product shows, from
    `current_node` up to the root. Messages of the system and of tools, calls to tools, reasoning,
    hidden and empty messages are left out. Pictures and files are named in the metadata.

    Args:
        path: `conversations.json`, the export's zip archive, or the folder it was unpacked into.

    Returns:
        One record per message, or one `Unreadable` per broken message or conversation.
    """
    return read_export(path, _read_conversation)


def _read_conversation(element: object, place: str) -> Iterator[Readable]:
    if not isinstance(element, dict) or not isinstance(element.get("mapping"), dict):
        yield Unreadable(place, "mapping", "no messages: a conversation must hold a mapping.")
        return
    identity = element.get("conversation_id") or element.get("id")
    if not isinstance(identity, str):
        yield Unreadable(place, "conversation_id", "the conversation has no id.")
        return
    conversation = ChatConversation(
        id=identity,
        title=read_text(element.get("title")),
        at=read_moment(element.get("create_time")) or read_moment(element.get("update_time")),
        source="chatgpt",
        place=f"{place} ({identity})",
    )
    branch = _shown_branch(element["mapping"], element.get("current_node"))
    yield from records_of(conversation, _messages(branch, conversation.place))


def _shown_branch(mapping: Mapping[str, object], current: object) -> list[tuple[str, object]]:
    """Follow the parents from the current node to the root; give (node id, message) root first."""
    node_id = current if isinstance(current, str) and current in mapping else _latest_leaf(mapping)
    branch: list[tuple[str, object]] = []
    seen: set[str] = set()
    while isinstance(node_id, str) and node_id in mapping and node_id not in seen:
        seen.add(node_id)
        node = mapping[node_id]
        if not isinstance(node, dict):
            branch.append((node_id, "not an object"))
            break
        branch.append((node_id, node.get("message")))
        node_id = node.get("parent")
    return branch[::-1]


def _latest_leaf(mapping: Mapping[str, object]) -> str | None:
    leaves = [
        node_id
        for node_id, node in mapping.items()
        if isinstance(node, dict) and not node.get("children")
    ]
    return max(leaves, key=lambda node_id: _seconds(mapping[node_id]), default=None)


def _seconds(node: object) -> float:
    message = node.get("message") if isinstance(node, dict) else None
    moment = read_moment(message.get("create_time")) if isinstance(message, dict) else None
    return moment.timestamp() if moment else 0.0


def _messages(branch: list[tuple[str, object]], place: str) -> Iterator[ChatMessage | Unreadable]:
    for node_id, message in branch:
        if message is None:
            continue
        if not isinstance(message, dict) or not isinstance(message.get("content"), dict):
            reason = "the message has no content that can be read."
            yield Unreadable(f"{place}, message {node_id}", "message", reason, str(message)[:500])
        elif read := _read_message(message, node_id):
            yield read


def _read_message(message: Mapping[str, object], node_id: str) -> ChatMessage | None:
    author = message.get("author")
    role = _ROLES.get(author.get("role")) if isinstance(author, dict) else None
    content = message.get("content")
    if role is None or not isinstance(content, dict) or not _is_shown(message, content):
        return None
    text = _text_of(content)
    if not text:
        return None
    identity = message.get("id")
    return ChatMessage(
        id=identity if isinstance(identity, str) and identity else node_id,
        role=role,
        text=text,
        at=read_moment(message.get("create_time")),
        metadata=_enclosures(message, content),
    )


def _is_shown(message: Mapping[str, object], content: Mapping[str, object]) -> bool:
    metadata = message.get("metadata")
    hidden = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation")
    return (
        not hidden
        and message.get("weight") != 0
        and message.get("recipient") in (None, "all")
        and content.get("content_type", "text") in _VISIBLE_CONTENT
    )


def _text_of(content: Mapping[str, object]) -> str:
    parts = content.get("parts")
    if not isinstance(parts, list):
        return read_text(content.get("text"))
    return "\n".join(piece for part in parts if (piece := _text_of_part(part)))


def _text_of_part(part: object) -> str:
    # A dictionary holds a picture, a sound or a transcript; only the last two kinds carry words.
    return read_text(part.get("text") if isinstance(part, dict) else part)


def _enclosures(message: Mapping[str, object], content: Mapping[str, object]) -> dict[str, Scalar]:
    parts = content.get("parts")
    kinds = [
        part.get("content_type")
        for part in (parts if isinstance(parts, list) else [])
        if isinstance(part, dict)
    ]
    found: dict[str, Scalar] = {}
    if pictures := kinds.count("image_asset_pointer"):
        found["images"] = pictures
    metadata = message.get("metadata")
    files = metadata.get("attachments") if isinstance(metadata, dict) else None
    if names := file_names(files, "name"):
        found["attachments"] = names
    return found


# Import of Claude's data export: `conversations.json`, unpacked or inside the zip archive.

_CLAUDE_ROLES: dict[object, Role] = {"human": "user", "user": "user", "assistant": "assistant"}


def read_claude(path: Path) -> Iterator[Readable]:
    """Read the messages of a Claude export, one conversation at a time.

    Only the blocks of kind `text` are read: calls to tools, their results and thinking are left
    out, and so are messages without text. Names of attached files go into the metadata.

    Args:
        path: `conversations.json`, the export's zip archive, or the folder it was unpacked into.

    Returns:
        One record per message, or one `Unreadable` per broken message or conversation.
    """
    return read_export(path, _read_claude_conversation)


def _read_claude_conversation(element: object, place: str) -> Iterator[Readable]:
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
    yield from records_of(
        conversation, _claude_messages(element["chat_messages"], conversation.place)
    )


def _claude_messages(messages: list[object], place: str) -> Iterator[ChatMessage | Unreadable]:
    for position, message in enumerate(messages):
        where = f"{place}, message {position}"
        if not isinstance(message, dict):
            yield Unreadable(where, "message", "not an object.", str(message)[:500])
        elif message.get("sender") not in _CLAUDE_ROLES:
            reason = f"unknown sender {message.get('sender')!r}; expected human or assistant."
            yield Unreadable(where, "sender", reason, str(message.get("text"))[:500])
        elif text := _claude_text(message):
            yield _read_claude_message(message, text, position)


def _read_claude_message(message: Mapping[str, object], text: str, position: int) -> ChatMessage:
    identity = message.get("uuid")
    names = [file_names(message.get(kind), "file_name") for kind in ("attachments", "files")]
    attached = ", ".join(name for name in names if name)
    return ChatMessage(
        id=identity if isinstance(identity, str) and identity else str(position),
        role=_CLAUDE_ROLES[message.get("sender")],
        text=text,
        at=read_moment(message.get("created_at")),
        metadata={"attachments": attached} if attached else {},
    )


def _claude_text(message: Mapping[str, object]) -> str:
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
