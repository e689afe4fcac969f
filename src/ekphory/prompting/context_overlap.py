"""Which memories the conversation already holds, by the words that both share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ekphory.prompting.unspaced import UNSPACED

MOST_SHARED = 0.4
"""Memory-Spark's limit: a memory that shares more of its tokens with a message is dropped."""

_TOKEN = re.compile(rf"[{UNSPACED}]+|[^\W{UNSPACED}]{{4,}}")
_UNSPACED_START = re.compile(rf"[{UNSPACED}]")


def overlap(text: str, message: str) -> float:
    """Give the share, in [0, 1], of a text's tokens that a message holds too; 0 without tokens.

    Tokens are words of at least four characters, and overlapping pairs of characters in scripts
    without spaces. Give the text as it was stored, before anything is added to it.
    """
    return _share(_tokens(text), _tokens(message))


def already_said(
    texts: Iterable[str], messages: Sequence[str], *, most_shared: float = MOST_SHARED
) -> list[bool]:
    """Say of each text whether it shares more than `most_shared` of its tokens with a message."""
    said = [_tokens(message) for message in messages]
    return [any(_share(_tokens(text), tokens) > most_shared for tokens in said) for text in texts]


def _share(tokens: frozenset[str], others: frozenset[str]) -> float:
    return len(tokens & others) / len(tokens) if tokens else 0.0


def _tokens(text: str) -> frozenset[str]:
    tokens: set[str] = set()
    for token in _TOKEN.findall(text.casefold()):
        if _UNSPACED_START.match(token) and len(token) > 1:
            tokens.update(token[place : place + 2] for place in range(len(token) - 1))
        else:
            tokens.add(token)
    return frozenset(tokens)
