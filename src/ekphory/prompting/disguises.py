"""Undoing what hides words: look-alikes, invisible characters, escapes, encodings, reversal.

Every function takes time in proportion to the length of the text.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Callable, Iterator
from urllib.parse import unquote

from ekphory.prompting.confusables import ACCENTS, INVISIBLE, LOOKALIKES, TAG_CHARACTERS

_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4}))")
_PERCENT = re.compile(r"%[0-9a-fA-F]{2}")
_TAGS = re.compile("[\U000e0020-\U000e007e]")
# Single characters that NFKC makes to many: phrases, months, units. No Latin word hides in them.
_WHOLE_PHRASES = re.compile("[\u3300-\u33ff\ufdf0-\ufdfd\U0001f200-\U0001f265]")
_ROUNDS = 3
"""How often escapes may be nested."""

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,}+(?:\r?\n[A-Za-z0-9+/_-]{8,}+)*+={0,2}")
_URL_SAFE = str.maketrans("-_", "+/", "\r\n")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}[\s:,]?){8,}+")
_SHARE_OF_TEXT = 0.9
"""Bytes are a text only when so many of their characters are printable."""


def unescaped(text: str) -> str:
    """Undo HTML entities, percent-encoding and backslash escapes, nested ones too."""
    for _ in range(_ROUNDS):
        before = text
        if "\\" in text:
            text = _ESCAPE.sub(lambda match: chr(int(match[1] or match[2], 16)), text)
        if _PERCENT.search(text):
            text = unquote(text)
        if "&" in text:
            text = html.unescape(text)
        if text == before:
            break
    return text


def visible(text: str) -> str:
    """Drop invisible characters, and fold compatibility characters (NFKC)."""
    if text.isascii():
        return INVISIBLE.sub("", text)
    return unicodedata.normalize("NFKC", _WHOLE_PHRASES.sub(" ", INVISIBLE.sub("", text)))


def tagged(text: str) -> str:
    """Give what tag characters, which never show, spell in ASCII."""
    return "" if text.isascii() else "".join(_TAGS.findall(text)).translate(TAG_CHARACTERS)


def folded(text: str) -> str:
    """Give the visible text in lower case, without accents, look-alikes as Latin letters."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFD", text.translate(LOOKALIKES).casefold())
    return unicodedata.normalize("NFC", ACCENTS.sub("", decomposed)).translate(LOOKALIKES)


def rotated(text: str) -> str:
    """Undo rot13."""
    return codecs.decode(text, "rot13")


def reversed_text(text: str) -> str:
    """Read from the last character to the first."""
    return text[::-1]


def decoded_parts(text: str) -> Iterator[tuple[str, str]]:
    """Give the names of the encodings that hide anything, each with the hidden texts as lines."""
    for name, pattern, decode in _ENCODINGS:
        hidden = (_as_text(decode, match[0]) for match in pattern.finditer(text))
        lines = "\n".join(filter(None, hidden))
        if lines:
            yield name, lines


def _from_base64(text: str) -> bytes:
    standard = text.rstrip("=").translate(_URL_SAFE)
    # A single character left over carries no byte.
    whole = standard[: len(standard) - (len(standard) % 4 == 1)]
    return base64.b64decode(whole + "=" * (-len(whole) % 4))


def _from_hex(text: str) -> bytes:
    return bytes.fromhex(re.sub(r"[\s:,]", "", text))


_ENCODINGS: tuple[tuple[str, re.Pattern[str], Callable[[str], bytes]], ...] = (
    ("base64", _BASE64, _from_base64),
    ("hex", _HEX, _from_hex),
)


def _as_text(decode: Callable[[str], bytes], part: str) -> str | None:
    """Give what a part hides; None where it hides no text, as most words and numbers do."""
    try:
        plain = decode(part).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return None
    shown = sum(character.isprintable() or character.isspace() for character in plain)
    return plain if shown >= _SHARE_OF_TEXT * len(plain) else None
