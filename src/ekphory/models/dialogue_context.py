"""The dialogue before a question: texts or chat messages become turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ekphory.errors import InvalidInput

Turn = str | Mapping[str, Any]
"""A text, or a message: `producer` or `role`, and `text` or `content`."""
_REMEDY = "Give ['a message', {'role': 'user', 'content': 'another'}]"


def dialogue_turns(context: Sequence[Turn]) -> tuple[str, ...]:
    """Give each turn as `speaker: text`, or text alone where no speaker is named.

    Turns without a character are left out.

    Raises:
        InvalidInput: It is no list, or a turn is neither text nor message.
    """
    if isinstance(context, str | Mapping) or not isinstance(context, Sequence):
        raise InvalidInput("context", context, "is no list of turns", _REMEDY)
    turns = [_turn(turn, place) for place, turn in enumerate(context)]
    return tuple(turn for turn in turns if turn)


def _turn(turn: object, place: int) -> str:
    if isinstance(turn, str):
        return turn.strip()
    if not isinstance(turn, Mapping):
        raise InvalidInput("context", turn, f"turn {place} is neither text nor message", _REMEDY)
    text = turn.get("text", turn.get("content"))
    speaker = turn.get("producer") or turn.get("role") or ""
    if not isinstance(text, str) or not isinstance(speaker, str):
        raise InvalidInput("context", turn, f"turn {place} has no text or no name", _REMEDY)
    said = text.strip()
    return f"{speaker}: {said}" if speaker and said else said
