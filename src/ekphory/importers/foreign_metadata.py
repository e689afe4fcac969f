"""Metadata of other products, nested and named as it may be, as the scalars of a memory and back.

A memory's metadata holds texts, numbers and booleans, under any name but those of the scope. What
else there is stands as JSON under `json:name`, and a name that is taken as `own:name`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from ekphory.errors import InvalidInput
from ekphory.filters.check import MAX_WHOLE_NUMBER
from ekphory.filters.storable_text import is_storable
from ekphory.scope import SCOPE_FIELDS
from ekphory.types import Scalar

_JSON = "json:"
_OWN = "own:"


def to_scalars(given: Mapping[str, Any]) -> dict[str, Scalar]:
    """Give metadata in the form that a memory holds; `from_scalars` gives it back, equal.

    Raises:
        InvalidInput: It is no mapping of texts to what JSON can hold.
    """
    if not isinstance(given, Mapping):
        raise InvalidInput("metadata", given, "is no dict", 'Give {"category": "food"}')
    return dict(_stored(name, value) for name, value in given.items())


def from_scalars(stored: Mapping[str, Scalar]) -> dict[str, Any]:
    """Give metadata back as it was before `to_scalars`."""
    return dict(_given(name, value) for name, value in stored.items())


def stored_name(name: str) -> str:
    """Give the name under which `to_scalars` keeps a text, a number or a boolean."""
    is_taken = name in SCOPE_FIELDS or name.startswith((_JSON, _OWN))
    return _OWN + name if is_taken else name


def _stored(name: object, value: object) -> tuple[str, Scalar]:
    if not isinstance(name, str):
        raise InvalidInput("metadata", name, "is no name", "Give texts as names")
    if name and _is_plain(value):
        return stored_name(name), value  # type: ignore[return-value]
    try:
        return _JSON + name, json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"metadata.{name[:40]}", value, f"cannot be kept ({error})", "Give what JSON can hold"
        ) from error


def _is_plain(value: object) -> bool:
    match value:
        case bool():
            return True
        case str():
            return is_storable(value)
        case int():
            return abs(value) <= MAX_WHOLE_NUMBER
        case float():
            return math.isfinite(value)
        case _:
            return False


def _given(name: str, value: Scalar) -> tuple[str, Any]:
    if name.startswith(_OWN):
        return name.removeprefix(_OWN), value
    if name.startswith(_JSON) and isinstance(value, str):
        try:
            return name.removeprefix(_JSON), json.loads(value)
        except ValueError:
            # Somebody named it so himself.
            return name, value
    return name, value
