"""Splits long text into windows that fit a model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

Offsets = Sequence[tuple[int, int]]
"""First and past-the-end character of each token, in order."""

OVERLAP_SHARE = 8
"""A window shares one in so many of its tokens with the next."""
_CHARACTERS_PER_TOKEN = 8
_SENTENCE_END = re.compile(r"(?:[.!?…][\"'”’)\]]*\s|[。！？]|\n)\s*")
_WORD_END = re.compile(r"\s+")


def window_spans(
    text: str, *, budget: int, tokenise: Callable[[str], Offsets]
) -> list[tuple[int, int]]:
    """Give (start, end) of windows that cover the text, each of at most `budget` tokens.

    Windows end after a sentence where one ends in their second half, else between words, else
    between tokens. Each starts inside the one before, by at most an eighth of the budget, or where
    it ended; the first starts at 0 and the last ends at `len(text)`.

    Args:
        text: What to split; a text that fits gives one window.
        budget: Most tokens of a window, at least 1.
        tokenise: Gives the tokens of a piece of the text. It sees pieces of a few windows' length,
            so text of any length takes little memory.
    """
    return list(_spans(text, max(1, budget), tokenise))


def _spans(text: str, budget: int, tokenise: Callable[[str], Offsets]) -> Iterator[tuple[int, int]]:
    start = 0
    while True:
        tokens = _look_ahead(text, start, budget, tokenise)
        if len(tokens) <= budget:
            yield start, len(text)
            return
        end = _cut(text, start, tokens[:budget])
        yield start, end
        start = _overlap_start(text, end, [token for token in tokens[:budget] if token[1] <= end])


def _look_ahead(
    text: str, start: int, budget: int, tokenise: Callable[[str], Offsets]
) -> list[tuple[int, int]]:
    """Tokens from `start` on: more than the budget, or all that are left."""
    length = budget * _CHARACTERS_PER_TOKEN
    while True:
        piece = text[start : start + length]
        tokens = [(start + first, start + last) for first, last in tokenise(piece)]
        if start + length >= len(text):
            return tokens
        # the last token may be cut off by the end of the piece
        if len(tokens) > budget + 1:
            return tokens[:-1]
        length *= 2


def _cut(text: str, start: int, tokens: Offsets) -> int:
    limit = tokens[-1][1]
    blank = _WORD_END.match(text, limit)
    limit = blank.end() if blank else limit
    middle = tokens[len(tokens) // 2][0]
    for boundary in (_SENTENCE_END, _WORD_END):
        ends = [found.end() for found in boundary.finditer(text, middle, limit)]
        if ends:
            return ends[-1]
    return max(limit, start + 1)


def _overlap_start(text: str, end: int, tokens: Offsets) -> int:
    shared = len(tokens) // OVERLAP_SHARE
    if not shared:
        return end
    earliest = tokens[-shared - 1][0]
    starts = (found.end() for found in _SENTENCE_END.finditer(text, earliest, end))
    sentence = next((start for start in starts if start < end), None)
    if sentence is not None:
        return sentence
    word = _WORD_END.search(text, earliest, end)
    return word.end() if word else end
