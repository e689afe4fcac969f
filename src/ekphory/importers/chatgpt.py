"""Import of ChatGPT's data export: `conversations.json`, unpacked or inside the zip archive."""

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
from ekphory.types import Scalar

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
