"""Reads what a chat service answered: the text, and the JSON object in it."""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import Any

_THINKING = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_THINKING_END = "</think>"
_MOST_STARTS = 50
"""How many braces are tried as the start of the object, so that no answer takes long to read."""


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


# Models write line breaks into strings as they are: not strict about those.
_decoder = json.JSONDecoder(strict=False, parse_constant=_refuse_constant)


def without_thinking(text: str) -> str:
    """Leave out what a model thought aloud: `<think>…</think>`, also where an end is missing.

    Some chat templates open the block themselves; then only its end is in the answer.
    """
    return _THINKING.sub("", text).rpartition(_THINKING_END)[2].strip()


def first_json_object(text: str) -> dict[str, Any] | None:
    """Give the first JSON object in a text, which may stand between words or in a code fence."""
    for brace in islice(re.finditer(r"\{", text), _MOST_STARTS):
        try:
            found, _ = _decoder.raw_decode(text, brace.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            return found
    return None
