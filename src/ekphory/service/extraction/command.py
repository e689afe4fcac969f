"""Commands: what a language model says is to be changed in a group of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from ekphory.catalog.categories import Tag
from ekphory.errors import ServiceError
from ekphory.filters.storable_text import is_storable

Action = Literal["add", "update", "delete"]
MOST_COMMANDS = 100
LONGEST_NAME, LONGEST_VALUE = 100, 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureCommand:
    """One change.

    Attributes:
        action: `add` a value beside others, `update` to put it in their place, `delete` all.
        tag, name: Which feature.
        value: What is known; empty for `delete`.
    """

    action: Action
    tag: str
    name: str
    value: str


def answer_schema(tags: Sequence[Tag]) -> dict[str, Any]:
    """Give the JSON schema of an answer; without tags any may be named."""
    text: dict[str, Any] = {"type": "string"}
    tag = text | {"enum": [each.name for each in tags]} if tags else text
    action = text | {"enum": list(get_args(Action))}
    command = object_schema({"command": action, "tag": tag, "feature": text, "value": text})
    return object_schema({"commands": {"type": "array", "items": command}})


def read_commands(answer: Mapping[str, Any]) -> list[FeatureCommand]:
    """Read an answer that follows the schema.

    Raises:
        ServiceError: It is too long, or a part of it cannot be kept.
    """
    given = answer["commands"]
    if len(given) > MOST_COMMANDS:
        raise ServiceError(f"The model gave {len(given)} commands for one message.")
    return [_command(each) for each in given]


def _command(given: Mapping[str, str]) -> FeatureCommand:
    action: Action = next(each for each in get_args(Action) if each == given["command"])
    name, tag = usable("feature", given["feature"]), usable("tag", given["tag"])
    value = "" if action == "delete" else usable("value", given["value"], longest=LONGEST_VALUE)
    return FeatureCommand(action=action, tag=tag, name=name, value=value)


def usable(what: str, text: str, *, longest: int = LONGEST_NAME) -> str:
    """Give a text of an answer without blanks around it.

    Raises:
        ServiceError: It is blank, too long, or cannot be stored.
    """
    found = text.strip()
    if not found or len(found) > longest or not is_storable(found):
        raise ServiceError(f"The model gave a {what} of {len(found)} characters.")
    return found


def object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Give the JSON schema of an object that has exactly these properties."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
