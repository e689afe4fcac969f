"""The part that the importers of chat exports share: conversations read, messages into records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from ekphory.errors import InvalidInput
from ekphory.importers.json_stream import stream_elements
from ekphory.importers.record import ImportedRecord, Readable, Unreadable
from ekphory.importers.source import open_exports
from ekphory.moments import to_utc
from ekphory.types import Scalar

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
    """Give a text without the white space around it; an empty one where it is missing."""
    return value.strip() if isinstance(value, str) else ""


def file_names(files: object, key: str) -> str:
    """Join the names of attached files, kept under `key`, into one text."""
    if not isinstance(files, list):
        return ""
    names = [file.get(key) for file in files if isinstance(file, dict)]
    return ", ".join(name for name in names if isinstance(name, str) and name)
