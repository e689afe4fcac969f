"""`--metadata key=value` on the command line."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from ekphory.errors import InvalidInput
from ekphory.types import Scalar


def read_metadata(pairs: Sequence[str] | None) -> dict[str, Scalar] | None:
    """Read `key=value` pairs; None where there are none.

    A number, true, false and a text in double quotes are what they are in JSON; all else is text.

    Raises:
        InvalidInput: A pair has no `=` or no key.
    """
    if not pairs:
        return None
    metadata: dict[str, Scalar] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise InvalidInput("metadata", pair, "is no key=value", "Write --metadata year=2026")
        metadata[key.strip()] = _scalar(value)
    return metadata


def _scalar(text: str) -> Scalar:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, float) and not math.isfinite(value):
        return text
    return value if isinstance(value, str | int | float) else text
