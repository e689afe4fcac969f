"""What an embedder is: the protocol, and texts cut into windows and batches for it."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ekphory.errors import ModelError
from ekphory.threads import ForkSafeLock

# The protocol.

FloatMatrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """What decides whether two vectors can be compared; stored with every table.

    Attributes:
        name: The model's name.
        revision: Hash or version of its weights and prompts.
        dimension: Length of a vector.
    """

    name: str
    revision: str
    dimension: int

    @property
    def model_id(self) -> str:
        """`name@revision`: how files of fitted constants name the model."""
        return f"{self.name}@{self.revision}"

    def __str__(self) -> str:
        return f"{self.model_id} ({self.dimension}-d)"


class EmbeddingModel(Protocol):
    """Turns texts into vectors. Safe to call from several threads."""

    @property
    def identity(self) -> EmbedderIdentity:
        """What is bound to the table that holds these vectors."""

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        """Embed passages; returns shape (len(texts), dimension), rows of length 1."""

    def encode_query(self, texts: Sequence[str]) -> FloatMatrix:
        """Embed queries, with the model's query prompt; same shape and length."""

    def windows(self, text: str, *, prefix: str = "") -> list[str]:
        """Split `prefix + text` into pieces that fit the model, each starting with `prefix`.

        A text that fits comes back as one piece. Nothing of the text is lost; pieces may share some
        words. Of a prefix no more is kept than leaves half of the model's window to the text.
        """


# A bounded cache of query vectors.

QUERY_CACHE = 1024
LONGEST_KEY = 2_000
"""Longer texts are not cached, so that the cache's size in bytes is bounded too."""


class VectorCache:
    """Keeps the vectors of the texts that were asked for last. Safe to use from several threads."""

    def __init__(self, capacity: int = QUERY_CACHE) -> None:
        self._capacity = capacity
        self._vectors: dict[str, FloatMatrix] = {}
        self._lock = ForkSafeLock()

    def __len__(self) -> int:
        return len(self._vectors)

    def encode(
        self, texts: Sequence[str], *, missing: Callable[[list[str]], FloatMatrix]
    ) -> FloatMatrix:
        """Return the texts' vectors, computing only those that are not kept.

        Args:
            texts: What to embed; repeats are computed once.
            missing: Embeds the texts that are not kept; called with at least one text, if at all.
        """
        if not texts:
            return missing([])
        with self._lock:
            known = [text for text in dict.fromkeys(texts) if text in self._vectors]
            found = {text: self._vectors.pop(text) for text in known}
            # Asked for last: the first are the ones that go.
            self._vectors |= found
        unknown = [text for text in dict.fromkeys(texts) if text not in found]
        if unknown:
            found |= zip(unknown, missing(unknown), strict=True)
            self._keep({text: found[text].copy() for text in unknown if len(text) <= LONGEST_KEY})
        return np.stack([found[text] for text in texts])

    def _keep(self, vectors: dict[str, FloatMatrix]) -> None:
        with self._lock:
            self._vectors |= vectors
            surplus = max(len(self._vectors) - self._capacity, 0)
            for text in list(self._vectors)[:surplus]:
                del self._vectors[text]


# What tokenizers take, and what models give.


def replace_lone_surrogates(text: str) -> str:
    """Replace lone surrogates, which have no UTF-8, by as many question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def as_unit_rows(vectors: NDArray[np.float64]) -> FloatMatrix:
    """Return the vectors that a service gave with length 1, shape (texts, dimension).

    Raises:
        ValueError: They have another shape, or one is zero or not finite.
    """
    if vectors.ndim != 2 or vectors.shape[1] == 0:
        raise ValueError(f"gave embeddings of shape {vectors.shape}")
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or (lengths == 0).any():
        raise ValueError("gave an embedding that is zero or not finite")
    return np.asarray(vectors / lengths, dtype=np.float32)


def check_finite(values: FloatMatrix, *, model: str) -> None:
    """Check the numbers that a model gave.

    Raises:
        ModelError: One is infinite or not a number.
    """
    if not np.isfinite(values).all():
        remedy = "Export the model again, or take another one."
        raise ModelError(f"{model}: the model gave numbers that are not finite. {remedy}")


# Groups inputs of like length, so that little is computed for padding.

LEAST_TOKENS = 128  # what is worth a thread of its own


def batch_by_length(
    lengths: Sequence[int], *, most_tokens: int, threads: int = 1
) -> list[list[int]]:
    """Return the positions of inputs in batches, longest first.

    For several threads the last batches get smaller, so that no thread waits long for another.

    Args:
        lengths: Tokens of each input.
        most_tokens: Most tokens of a batch, padding included; a longer input is alone in its batch.
        threads: How many batches are computed at a time. For more than one a batch has, above 128
            tokens, at most one thread's share of what is left.
    """
    batches: list[list[int]] = []
    room, left = 0, sum(lengths)
    for position in sorted(range(len(lengths)), key=lambda each: -lengths[each]):
        if room <= 0:
            batches.append([])
            share = most_tokens if threads == 1 else max(LEAST_TOKENS, left // threads)
            room = max(1, min(most_tokens, share) // max(1, lengths[position]))
        batches[-1].append(position)
        left -= lengths[position]
        room -= 1
    return batches


# Splits long text into windows that fit a model.

Offsets = Sequence[tuple[int, int]]
"""First and past-the-end character of each token, in order."""
Tokenise = Callable[[str], Offsets]

OVERLAP_SHARE = 8
"""A window shares one in so many of its tokens with the next."""
_CHARACTERS_PER_TOKEN = 8
_SENTENCE_END = re.compile(r"(?:[.!?…][\"'”’)\]]*\s|[。！？]|\n)\s*")
_WORD_END = re.compile(r"\s+")


def split_into_windows(text: str, *, budget: int, tokenise: Tokenise) -> list[tuple[int, int]]:
    """Return (start, end) of windows that cover the text, each of at most `budget` tokens.

    Windows end after a sentence where one ends in their second half, else between words, else
    between tokens. Each starts inside the one before, by at most an eighth of the budget, or where
    it ended; the first starts at 0 and the last ends at `len(text)`.

    Args:
        text: What to split; a text that fits gives one window.
        budget: Most tokens of a window, at least 1.
        tokenise: Gives the tokens of a piece of the text. It sees pieces of a few windows' length,
            so text of any length takes little memory.
    """
    budget, start = max(1, budget), 0
    spans: list[tuple[int, int]] = []
    while len(tokens := _look_ahead(text, start, budget, tokenise)) > budget:
        end = _cut(text, start, tokens[:budget])
        spans.append((start, end))
        start = _overlap_start(text, end, [token for token in tokens[:budget] if token[1] <= end])
    return [*spans, (start, len(text))]


def split_behind_prefix(
    text: str, prefix: str, *, room: int, tokenise: Tokenise, joint: int = 0
) -> list[str]:
    """Return windows that cover the text, each behind the prefix, of which half a window is kept.

    Args:
        text: What to split.
        prefix: What every window starts with.
        room: Most tokens of prefix and piece together.
        tokenise: As for `split_into_windows`.
        joint: Tokens to spare where a prefix meets the text, in case both split otherwise together.
    """
    offsets = tokenise(prefix)
    if len(offsets) > room // 2:
        prefix = prefix[: offsets[room // 2 - 1][1]]
    budget = room - len(tokenise(prefix)) - (joint if prefix else 0)
    spans = split_into_windows(text, budget=budget, tokenise=tokenise)
    return [prefix + text[start:end] for start, end in spans]


def _look_ahead(text: str, start: int, budget: int, tokenise: Tokenise) -> Offsets:
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


# A count of tokens on the safe side, for models whose tokenizer is not at hand.

_TOKEN = re.compile(r"[A-Za-z0-9]{1,3}|\S")
"""Finer than common tokenizers: three letters or one other sign."""


def overestimate_tokens(text: str) -> Offsets:
    """Return the first and past-the-end character of each token, in order."""
    return [found.span() for found in _TOKEN.finditer(text)]


# Which piece of a long passage tells most about a question: the one that shares its words.

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


def list_distinct_words(text: str) -> frozenset[str]:
    """Return the words of a text, in lower case."""
    return frozenset(_WORD.findall(text.lower()))


def find_best_piece(text: str, words: frozenset[str], *, most_tokens: int) -> str:
    """Return the piece, of `most_tokens` times `CHARACTERS_PER_TOKEN` characters, with most words.

    It bounds what is tokenised of a text of any length; a shorter text comes back whole.
    """
    length = most_tokens * CHARACTERS_PER_TOKEN
    if len(text) <= length:
        return text
    start, end = _best_window(_matches(text, words), size=length, total=len(text))
    return text[start:end]


def find_best_tokens(text: str, offsets: Offsets, words: frozenset[str], *, most: int) -> Span:
    """Return the window of at most `most` tokens that holds most distinct words.

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
