"""Stored text made harmless: nothing in it can pass for markup, a chat turn or a terminal code."""

from __future__ import annotations

import re
from html import escape

from ekphory.prompting.chat_markers import neutralised

_LINE_BREAK = re.compile("\r\n?|[\u0085\u2028\u2029]")
# Control characters, and format characters that hide, reorder or smuggle text. The joiners that
# emoji and several scripts need stay.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff\ud800-\udfff]"
    "|[\ufdd0-\ufdef\ufffe\uffff]|["
    + "".join(chr(plane * 0x10000 + last) for plane in range(1, 17) for last in (0xFFFE, 0xFFFF))
    + "]"
)
_BLANKS = re.compile(r"\s+")
_LONGEST_ATTRIBUTE = 200


def escaped(text: str) -> str:
    """Make a text safe as the content of an XML element.

    Line breaks become line feeds, hidden characters go, the marks of chat templates lose their
    brackets, and only then `&`, `<`, `>`, `"` and `'` become entities, as marks are made of them.
    """
    shown = _HIDDEN.sub("", _LINE_BREAK.sub("\n", text))
    return escape(neutralised(shown), quote=True)


def escaped_attribute(text: str) -> str:
    """Make a text safe as the value of an attribute: on one line, at most 200 characters."""
    line = _BLANKS.sub(" ", text).strip()
    if len(line) > _LONGEST_ATTRIBUTE:
        line = line[: _LONGEST_ATTRIBUTE - 1] + "…"
    return escaped(line)
