"""Metadata as one JSON text per memory, in which every key carries the kind of its value.

`{"city": "Rome", "age": 3, "done": True}` is stored as `{"s:city": "Rome", "n:age": 3,
"b:done": true}`: Lance's JSON functions turn one kind into another ("2" > 1 would hold), so a
filter asks for the key of the kind that it compares with.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from ekphory.errors import InvalidInput
from ekphory.filters.check import MAX_WHOLE_NUMBER
from ekphory.filters.storable_text import is_storable
from ekphory.types import Scalar

TEXT_PREFIX = "s:"
NUMBER_PREFIX = "n:"
BOOLEAN_PREFIX = "b:"


def encode_metadata(metadata: Mapping[str, Scalar]) -> str:
    """Give the JSON text under which a memory's metadata is stored.

    Raises:
        InvalidInput: Naming `metadata.<key>`: an empty or unstorable key, a value that is not
            a text, number or boolean, a number that is not finite, or a whole number beyond
            2**53, which would not compare exactly.
    """
    stored = dict(_encode_entry(key, value) for key, value in metadata.items())
    return json.dumps(stored, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def decode_metadata(text: str | None) -> dict[str, Scalar]:
    """Give the metadata back from the text that `encode_metadata` gave; None is no metadata."""
    stored: dict[str, Scalar] = json.loads(text) if text else {}
    return {key[len(TEXT_PREFIX) :]: value for key, value in stored.items()}


def _encode_entry(key: str, value: Scalar) -> tuple[str, Scalar]:
    if not isinstance(key, str) or not key or not is_storable(key):
        problem = "not a usable metadata key"
        remedy = "Use a non-empty text without NUL and lone surrogates."
        raise InvalidInput("metadata", key, problem, remedy)
    match value:
        case bool():
            return BOOLEAN_PREFIX + key, value
        case int() | float():
            return NUMBER_PREFIX + key, _check_number(key, value)
        case str() if is_storable(value):
            return TEXT_PREFIX + key, value
        case str():
            raise _error(key, value, "holds NUL or a lone surrogate", "Remove that character.")
        case _:
            remedy = "Give a text, a number or a boolean; leave the key out where there is none."
            raise _error(key, value, "not a scalar", remedy)


def _check_number(key: str, number: int | float) -> int | float:
    if isinstance(number, float):
        if not math.isfinite(number):
            raise _error(key, number, "not a finite number", "Leave the key out.")
        return number + 0.0  # -0.0 becomes 0.0, so that no store can tell them apart
    if abs(number) > MAX_WHOLE_NUMBER:
        shown = number if number.bit_length() < 256 else "a whole number of more than 256 bits"
        raise _error(key, shown, "whole number beyond 2**53", "Give it as a text.")
    return number


def _error(key: str, value: object, problem: str, remedy: str) -> InvalidInput:
    return InvalidInput(f"metadata.{key[:40]}", value, problem, remedy)
