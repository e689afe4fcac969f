"""Imports of the chat exports of ChatGPT and Claude."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from ekphory.errors import InvalidInput
from ekphory.importers.source import (
    ImportedRecord,
    Readable,
    Unreadable,
    stream_elements,
)
from ekphory.types import Scalar, to_utc

Role = Literal["user", "assistant"]
_OTHER: dict[Role, Role] = {"user": "assistant", "assistant": "user"}


@dataclass(frozen=True, slots=True)
class ExportedMessage:
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
class _Product:
    """How a product's export tells its conversations.

    Attributes:
        source: What the records name as their source.
        held: Name and type of the field with the messages.
        ids, title, moments: Names of the fields with the id, the title and the beginning.
        messages: Reads the messages; is told the place of the conversation.
    """

    source: str
    held: tuple[str, type]
    ids: tuple[str, ...]
    title: str
    moments: tuple[str, ...]
    messages: Callable[[Mapping[str, Any], str], Iterator[ExportedMessage | Unreadable]]


def _read_export(path: Path, product: _Product) -> Iterator[Readable]:
    for found in stream_elements(path, "conversation"):
        if isinstance(found, Unreadable):
            yield found
        else:
            yield from _read_conversation(*found, product)


def _read_conversation(place: str, element: object, product: _Product) -> Iterator[Readable]:
    """Turn the messages of one conversation, in order, into records.

    A message without a moment takes that of the message before it, or else the conversation's.
    """
    field_name, kind = product.held
    if not isinstance(element, dict) or not isinstance(element.get(field_name), kind):
        yield Unreadable(place, field_name, f"a conversation must hold {field_name}.")
        return
    named = (element.get(name) for name in product.ids)
    identity = next((found for found in named if isinstance(found, str) and found), None)
    if identity is None:
        yield Unreadable(place, product.ids[0], f"a conversation must have {product.ids[0]}.")
        return
    place = f"{place} ({identity})"
    title = read_text(element.get(product.title))
    titled = {"title": title} if title else {}
    moments = (read_moment(element.get(name)) for name in product.moments)
    latest = next(filter(None, moments), None)
    sequence = 0
    for message in product.messages(element, place):
        if isinstance(message, Unreadable):
            yield message
            continue
        latest = message.at or latest
        where = f"{place}, message {message.id}"
        if latest is None:
            reason = "neither the message nor its conversation says when it was. Add create_time."
            yield Unreadable(where, "at", reason, message.text[:500])
        else:
            fields: dict[str, object] = {
                "id": f"{identity}/{message.id}",
                "text": message.text,
                "at": latest,
                "producer": message.role,
                "produced_for": _OTHER[message.role],
                "role": message.role,
                "session": identity,
                "sequence": sequence,
                "source": product.source,
                "metadata": {**titled, **message.metadata},
            }
            yield ImportedRecord(fields, where)
        sequence += 1


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


def join_file_names(files: object, key: str) -> str:
    """Join the names of attached files, kept under `key`, into one text."""
    if not isinstance(files, list):
        return ""
    names = [file.get(key) for file in files if isinstance(file, dict)]
    return ", ".join(name for name in names if isinstance(name, str) and name)


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
    return _read_export(path, _CHATGPT)


def _read_chatgpt_messages(
    conversation: Mapping[str, Any], place: str
) -> Iterator[ExportedMessage | Unreadable]:
    branch = _find_shown_branch(conversation["mapping"], conversation.get("current_node"))
    for node_id, message in branch:
        if message is None:
            continue
        if not isinstance(message, dict) or not isinstance(message.get("content"), dict):
            reason = "the message has no content that can be read."
            yield Unreadable(f"{place}, message {node_id}", "message", reason, str(message)[:500])
        elif read := _read_message(message, node_id):
            yield read


_CHATGPT = _Product(
    "chatgpt",
    held=("mapping", dict),
    ids=("conversation_id", "id"),
    title="title",
    moments=("create_time", "update_time"),
    messages=_read_chatgpt_messages,
)


def _find_shown_branch(mapping: Mapping[str, object], current: object) -> list[tuple[str, object]]:
    """Follow the parents from the current node to the root; give (node id, message) root first."""
    node_id = (
        current if isinstance(current, str) and current in mapping else _find_latest_leaf(mapping)
    )
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


def _find_latest_leaf(mapping: Mapping[str, object]) -> str | None:
    leaves = [
        node_id
        for node_id, node in mapping.items()
        if isinstance(node, dict) and not node.get("children")
    ]
    return max(leaves, key=lambda node_id: _read_seconds(mapping[node_id]), default=None)


def _read_seconds(node: object) -> float:
    message = node.get("message") if isinstance(node, dict) else None
    moment = read_moment(message.get("create_time")) if isinstance(message, dict) else None
    return moment.timestamp() if moment else 0.0


def _read_message(message: Mapping[str, object], node_id: str) -> ExportedMessage | None:
    author = message.get("author")
    role = _ROLES.get(author.get("role")) if isinstance(author, dict) else None
    content = message.get("content")
    if role is None or not isinstance(content, dict) or not _is_shown(message, content):
        return None
    text = _read_content(content)
    if not text:
        return None
    identity = message.get("id")
    return ExportedMessage(
        id=identity if isinstance(identity, str) and identity else node_id,
        role=role,
        text=text,
        at=read_moment(message.get("create_time")),
        metadata=_describe_enclosures(message, content),
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


def _read_content(content: Mapping[str, object]) -> str:
    parts = content.get("parts")
    if not isinstance(parts, list):
        return read_text(content.get("text"))
    return "\n".join(piece for part in parts if (piece := _read_part(part)))


def _read_part(part: object) -> str:
    # A dictionary holds a picture, a sound or a transcript; only the last two kinds carry words.
    return read_text(part.get("text") if isinstance(part, dict) else part)


def _describe_enclosures(
    message: Mapping[str, object], content: Mapping[str, object]
) -> dict[str, Scalar]:
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
    if names := join_file_names(files, "name"):
        found["attachments"] = names
    return found


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
    return _read_export(path, _CLAUDE)


def _read_claude_messages(
    conversation: Mapping[str, Any], place: str
) -> Iterator[ExportedMessage | Unreadable]:
    for position, message in enumerate(conversation["chat_messages"]):
        where = f"{place}, message {position}"
        if not isinstance(message, dict):
            yield Unreadable(where, "message", "must be an object.", str(message)[:500])
        elif message.get("sender") not in _CLAUDE_ROLES:
            reason = f"unknown sender {message.get('sender')!r}; expected human or assistant."
            yield Unreadable(where, "sender", reason, str(message.get("text"))[:500])
        elif text := _read_claude_text(message):
            yield _read_claude_message(message, text, position)


_CLAUDE = _Product(
    "claude",
    held=("chat_messages", list),
    ids=("uuid",),
    title="name",
    moments=("created_at",),
    messages=_read_claude_messages,
)


def _read_claude_message(
    message: Mapping[str, object], text: str, position: int
) -> ExportedMessage:
    identity = message.get("uuid")
    names = [join_file_names(message.get(kind), "file_name") for kind in ("attachments", "files")]
    attached = ", ".join(name for name in names if name)
    return ExportedMessage(
        id=identity if isinstance(identity, str) and identity else str(position),
        role=_CLAUDE_ROLES[message.get("sender")],
        text=text,
        at=read_moment(message.get("created_at")),
        metadata={"attachments": attached} if attached else {},
    )


def _read_claude_text(message: Mapping[str, object]) -> str:
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
