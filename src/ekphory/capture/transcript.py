"""Reading the messages of a dialogue, from a caller or from a file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from ekphory.errors import InvalidInput
from ekphory.models.captures import DialogueMessage
from ekphory.prompting.recall_block import strip_recall_blocks
from ekphory.types import is_storable, to_utc

ROLES = ("user", "assistant", "tool", "system")
_ROLE_NAMES = {"human": "user", "ai": "assistant", "model": "assistant", "function": "tool"}
_SPEAKER = re.compile(r"([^\W\d_][\w .'’-]{0,30}): (?=\S)")
_MOST_NAMED = 0.6
"""Where so large a share of a dialogue's messages begin with a name, they do in all of it."""
_LEAST_MESSAGES = 3


@dataclass(frozen=True, slots=True)
class GivenMessage:
    """A message with the moment at which it was said; None where nobody told it."""

    message: DialogueMessage
    at: datetime | None


def read_messages(messages: Sequence[Mapping[str, Any]]) -> list[GivenMessage]:
    """Check messages, `[{"role": …, "content": …, "at": …}]`, and take what was recalled out.

    `content` may be a list of blocks, as chat services have it, whose texts are read. In a chat
    between people, whose messages begin with `Name: `, the name is the speaker.

    Raises:
        InvalidInput: A message is no mapping, or lacks a content or a role.
    """
    if isinstance(messages, Mapping | str) or not isinstance(messages, Sequence):
        remedy = 'Use [{"role": "user", "content": "…"}]'
        raise InvalidInput("messages", messages, "must be a list of messages", remedy)
    return _with_speakers([_read_message(each, place) for place, each in enumerate(messages)])


def _read_message(given: object, place: int) -> GivenMessage:
    field = f"messages[{place}]"
    if not isinstance(given, Mapping) or "content" not in given:
        raise InvalidInput(field, given, "has no content", 'Use {"role": …, "content": …}')
    role = given.get("role", "user")
    role = _ROLE_NAMES.get(role, role) if isinstance(role, str) else role
    if role not in ROLES:
        problem = "must be a role"
        raise InvalidInput(f"{field}.role", role, problem, f"Use one of {', '.join(ROLES)}")
    text = strip_recall_blocks(_read_content(given["content"], field))
    speaker = given.get("name") or given.get("producer") or ""
    if not isinstance(speaker, str):
        raise InvalidInput(f"{field}.name", speaker, "must be a string", "Leave it out")
    at = given.get("at", given.get("timestamp"))
    moment = None if at is None else to_utc(at, field=f"{field}.at")
    return GivenMessage(DialogueMessage(role, text, "" if speaker == role else speaker), moment)


def _read_content(content: object, field: str) -> str:
    if isinstance(content, list):
        texts = [
            block if isinstance(block, str) else block.get("text", "")
            for block in content
            if isinstance(block, str | Mapping)
        ]
        content = "\n".join(text for text in texts if isinstance(text, str) and text)
    if not isinstance(content, str):
        problem = f"must be text, not {type(content).__name__}"
        raise InvalidInput(f"{field}.content", content, problem, "Use a string or a list of blocks")
    # What UTF-8 cannot carry comes from programs that cut a text in the middle of a sign.
    return content if is_storable(content) else re.sub("[\x00\ud800-\udfff]", "\ufffd", content)


def _with_speakers(given: list[GivenMessage]) -> list[GivenMessage]:
    said = [each for each in given if each.message.role == "user" and not each.message.speaker]
    named = sum(_SPEAKER.match(each.message.text) is not None for each in said)
    if named < max(_LEAST_MESSAGES, _MOST_NAMED * len(said)):
        return given
    return [_with_speaker(each) for each in given]


def _with_speaker(each: GivenMessage) -> GivenMessage:
    found = _SPEAKER.match(each.message.text)
    if found is None or each.message.role != "user" or each.message.speaker:
        return each
    text = each.message.text[found.end() :]
    return replace(each, message=replace(each.message, text=text, speaker=found[1]))
