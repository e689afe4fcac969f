"""Which piece of a long passage tells most about a question: the one that shares its words."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Sequence
from typing import NamedTuple

from ekphory.models.windowing import Offsets

CHARACTERS_PER_TOKEN = 64
"""No natural text has words so long; a piece of so many characters holds a window's tokens."""
_WORD = re.compile(r"\w+")

Span = tuple[int, int]
"""First and past-the-end position."""


class _Match(NamedTuple):
    """Where a word stands, in characters or tokens."""

    start: int
    end: int
    word: str


def distinct_words(text: str) -> frozenset[str]:
    """Give the words of a text, in lower case."""
    return frozenset(_WORD.findall(text.lower()))


def telling_piece(text: str, words: frozenset[str], *, most_tokens: int) -> str:
    """Give the piece, of `most_tokens` times `CHARACTERS_PER_TOKEN` characters, with most words.

    It bounds what is tokenised of a text of any length; a shorter text comes back whole.
    """
    length = most_tokens * CHARACTERS_PER_TOKEN
    if len(text) <= length:
        return text
    start, end = _best_window(_matches(text, words), size=length, total=len(text))
    return text[start:end]


def telling_tokens(text: str, offsets: Offsets, words: frozenset[str], *, most: int) -> Span:
    """Give the window of at most `most` tokens that holds most distinct words.

    Of windows that hold equally many the first counts, and its words stand in its middle, unless
    the text begins or ends before.

    Args:
        text: What was tokenised.
        offsets: First and past-the-end character of each token.
        words: What is looked for, in lower case.
        most: Most tokens, at least 1.
    """
    if len(offsets) <= most:
        return 0, len(offsets)
    return _best_window(_by_token(_matches(text, words), offsets), size=most, total=len(offsets))


def _matches(text: str, words: frozenset[str]) -> list[_Match]:
    found = (_Match(each.start(), each.end(), each[0].lower()) for each in _WORD.finditer(text))
    return [match for match in found if match.word in words]


def _by_token(matches: Sequence[_Match], offsets: Offsets) -> list[_Match]:
    """Put the first and the past-the-end token in place of the characters."""
    placed: list[_Match] = []
    token = 0
    for match in matches:
        while token < len(offsets) and offsets[token][1] <= match.start:
            token += 1
        end = token
        while end < len(offsets) and offsets[end][0] < match.end:
            end += 1
        if end > token:
            placed.append(_Match(token, end, match.word))
    return placed


def _best_window(matches: Sequence[_Match], *, size: int, total: int) -> Span:
    best, most = (0, 0), 0
    held: deque[_Match] = deque()
    counts: Counter[str] = Counter()
    for match in matches:
        held.append(match)
        counts[match.word] += 1
        while held and match.end - held[0].start > size:
            word = held.popleft().word
            counts[word] -= 1
            if not counts[word]:
                del counts[word]
        if len(counts) > most:
            most, best = len(counts), (held[0].start, match.end)
    first = max(0, min((sum(best) - size) // 2, total - size))
    return first, first + size
