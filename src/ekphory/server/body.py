"""A request's JSON, looked at while it arrives: how much it holds, before it is parsed."""

from __future__ import annotations

import re
from enum import Enum

# What a window holds is looked at without a pause: so much takes some milliseconds.
WINDOW_BYTES = 256 * 1024
_BRACKETS = b"[]{}"
_NO_BRACKETS = bytes(set(range(256)) - set(_BRACKETS))
_LONE_HALF = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"
    rb"|\xed[\xa0-\xbf]"
)
_PAIR_BYTES = 12
"""The length of a surrogate pair as JSON escapes it."""


class Trouble(Enum):
    """Why a body is refused before it is parsed."""

    MANY_VALUES = "many values"
    DEEP = "deep"
    HALF_CHARACTER = "half character"


class BodyScan:
    """Counts the values of a JSON body and finds halves of surrogate pairs, piece by piece.

    JSON can write half of a surrogate pair, but no store and no answer can carry one. What is no
    JSON at all is not noticed: that is told where it is parsed.

    Args:
        most_values: Elements of lists and objects that a body may hold.
        most_depth: How deep lists and objects may be nested.
    """

    def __init__(self, *, most_values: int, most_depth: int) -> None:
        self._most_values = most_values
        self._most_depth = most_depth
        self._values = 0
        self._brackets = 0
        self._depth = 0
        self._in_text = False
        self._backslash = b""
        self._tail = b""

    def feed(self, piece: bytes) -> Trouble | None:
        """Look at the next piece, of any length; return what is wrong with the body."""
        whole = self._backslash + piece
        # An escape is never looked at without the character that it escapes.
        trailing = len(whole) - len(whole.rstrip(b"\\"))
        self._backslash = b"\\" if trailing % 2 else b""
        clean = whole[: len(whole) - len(self._backslash)].replace(b"\\\\", b"")
        return self._counted(clean.replace(b'\\"', b"")) or self._halves(clean, last=False)

    def end(self) -> Trouble | None:
        """Look at what is left; return what is wrong with it."""
        return self._halves(b"", last=True)

    def _counted(self, clean: bytes) -> Trouble | None:
        parts = clean.split(b'"')
        outside = b"".join(parts[1 if self._in_text else 0 :: 2])
        self._in_text ^= len(parts) % 2 == 0
        brackets = outside.translate(None, delete=_NO_BRACKETS)
        self._values += outside.count(b",") + outside.count(b"[") + outside.count(b"{")
        self._brackets += len(brackets)
        if self._values > self._most_values or self._brackets > 2 * self._most_values:
            return Trouble.MANY_VALUES
        for bracket in brackets:
            self._depth += 1 if bracket in b"[{" else -1
            if self._depth > self._most_depth:
                return Trouble.DEEP
        return None

    def _halves(self, clean: bytes, *, last: bool) -> Trouble | None:
        text = self._tail + clean
        # Before the end a pair may still be on its way; what was looked at only lends its context.
        until = len(text) if last else max(0, len(text) - _PAIR_BYTES)
        found = _LONE_HALF.search(text, max(0, len(self._tail) - _PAIR_BYTES))
        self._tail = text[-2 * _PAIR_BYTES :]
        return Trouble.HALF_CHARACTER if found and found.start() < until else None
