"""Words for comparing: folded, and only those that mean something."""

from __future__ import annotations

import re
import unicodedata

PARTICLES = frozenset(
    "of the de da di du del della der den des van von zu zum zur la le las los el al bin ibn ben "
    "y e i ter ten".split()
)
"""Small words that stand inside names."""
_NO_MEANING = PARTICLES | frozenset("a an and in on at to for s is are was were be it".split())
_WORD = re.compile(r"[^\W_]+")


def folded(text: str) -> str:
    """Give a text in lower case and without accents."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(mark for mark in decomposed if not unicodedata.combining(mark))


def words_in(text: str) -> list[str]:
    """Give the words of a text, folded, in order."""
    return _WORD.findall(folded(text))


def meaning_words(text: str) -> frozenset[str]:
    """Give the words that tell one name from another."""
    words = frozenset(words_in(text))
    return words - _NO_MEANING or words
