"""A YAML configuration: read safely, with every unknown key told together with the nearest one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ekphory.config import read_variable
from ekphory.errors import InvalidInput, MissingExtra, shorten

_VARIABLE = re.compile(r"\$(?:\{(?P<braced>\w+)\}|(?P<plain>\w+))")
SECTIONS = (
    "logging",
    "episode_store",
    "episodic_memory",
    "retrieval_agent",
    "semantic_memory",
    "session_manager",
    "server",
    "prompt",
    "resources",
)
"""The sections that a MemMachine configuration may have; only some of them concern the agent."""


def read_document(file: Path) -> dict[str, Any]:
    """Read a configuration file.

    Raises:
        InvalidInput: It cannot be read, is no YAML, or has a section that is not known.
        MissingExtra: The YAML reader is not installed.
    """
    try:
        import yaml
    except ImportError as error:
        raise MissingExtra("agent", "A configuration file") from error
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("config", str(file), f"cannot be read: {error}", "Check it") from error
    except yaml.YAMLError as error:
        # The whole message quotes the file, which may hold a key.
        where = getattr(error, "problem_mark", None)
        line = f" in line {where.line + 1}" if where is not None else ""
        raise InvalidInput("config", str(file), f"is no YAML{line}", "Correct it") from None
    if document is None:
        return {}
    found = mapping(document, place="config")
    refuse_unknown(found, SECTIONS, place="config")
    return found


def mapping(value: object, *, place: str) -> dict[str, Any]:
    """Give a mapping with text keys.

    Raises:
        InvalidInput: It is something else.
    """
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        kind = type(value).__name__
        raise InvalidInput(place, kind, "is no mapping", "Give `name: value` lines")
    return value


def refuse_unknown(given: Iterable[str], known: Iterable[str], *, place: str) -> None:
    """Refuse the first key that is not known.

    Raises:
        InvalidInput: There is one; names the nearest known key.
    """
    choices = sorted(known)
    for key in given:
        if key not in choices:
            near = difflib.get_close_matches(key, choices, n=1, cutoff=0.5)
            hint = f"Did you mean {near[0]!r}? " if near else ""
            raise InvalidInput(
                place, key, "is no known key", f"{hint}Known are {', '.join(choices)}"
            )


def expanded(value: object, *, place: str, environment: Mapping[str, str] | None = None) -> object:
    """Put variables in the place of `$NAME` and `${NAME}`, where that is all that a text says.

    Raises:
        InvalidInput: The variable is not set.
    """
    found = _VARIABLE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        return value
    name = found["braced"] or found["plain"]
    given = read_variable(name, environment)
    if given is None:
        raise InvalidInput(place, f"${name}", "this variable is not set", f"Set {name}")
    return given


def text(value: object, *, place: str) -> str:
    """Give a text.

    Raises:
        InvalidInput: It is something else, or empty.
    """
    if not isinstance(value, str) or not value.strip():
        shown = "***" if place.endswith("key") else shorten(value)
        raise InvalidInput(place, shown, "is no text", "Give one")
    return value.strip()
