"""BM25 over one scope: postings in numpy, exact statistics of that scope."""

from __future__ import annotations

import re
import threading
import unicodedata
from dataclasses import dataclass
from itertools import pairwise
from zlib import crc32

import numpy as np
import Stemmer
from numpy.typing import NDArray

from ekphory.prompting.injection import UNSPACED
from ekphory.store.protocol import IntArray, ScoreArray

# Text to index terms: words stemmed as English, Chinese and Japanese as overlapping pairs.
#
# Terms are kept as 32-bit hashes, so that no index holds readable text.

TERMS_VERSION = "1"
"""Changes whenever the same text would give other terms; stored with every table."""

TermArray = NDArray[np.uint32]

_TOKEN = re.compile(rf"[{UNSPACED}]+|[^\W_{UNSPACED}]+")
_UNSPACED_START = re.compile(rf"[{UNSPACED}]")

# Too frequent in any passage to tell passages apart; never indexed.
_PASSAGE_STOP_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then "
    "there these they this to was will with".split()
)
# What a question is made of, whatever it asks for; never searched.
_QUERY_STOP_WORDS = _PASSAGE_STOP_WORDS | frozenset(
    "i me my we our you your he him his she her hers its them what which who whom when where why "
    "how do does did doing have has had having been being am were would could should can may might "
    "shall must about from so than too very just also m s t d ll re ve don".split()
)

_local = threading.local()


def passage_terms(text: str) -> TermArray:
    """Hash the terms of a passage, repeated terms repeated; order carries no meaning."""
    return _hash_tokens(_tokenise(text, _PASSAGE_STOP_WORDS))


def query_terms(text: str) -> TermArray:
    """Hash the distinct terms of a query, without the words that questions are made of."""
    return np.unique(_hash_tokens(_tokenise(text, _QUERY_STOP_WORDS)))


def _hash_tokens(tokens: list[str]) -> TermArray:
    return np.fromiter((crc32(token.encode()) for token in tokens), np.uint32, len(tokens))


def _tokenise(text: str, stop_words: frozenset[str]) -> list[str]:
    words: list[str] = []
    pairs: list[str] = []
    for token in _TOKEN.findall(_fold(text)):
        if not token.isascii() and _UNSPACED_START.match(token):
            pairs.extend(map("".join, pairwise(token)) if len(token) > 1 else [token])
        elif token not in stop_words:
            words.append(token)
    stems: list[str] = _stemmer().stemWords(words)
    return stems + pairs


def _fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    without_accents = "".join(mark for mark in decomposed if not "\u0300" <= mark <= "\u036f")
    return unicodedata.normalize("NFC", without_accents)


def _stemmer() -> Stemmer.Stemmer:
    # A Stemmer is not safe to share between threads.
    if not hasattr(_local, "stemmer"):
        _local.stemmer = Stemmer.Stemmer("english")
    stemmer: Stemmer.Stemmer = _local.stemmer
    return stemmer


# BM25, with exact statistics of one scope and no other.
#
# Score of a passage: the sum over query terms of idf · tf·(k1+1) / (tf + k1·(1 - b +
# b·length/mean)), idf = ln(1 + (N - n + ½)/(n + ½)) (Robertson and Zaragoza, "The Probabilistic
# Relevance Framework: BM25 and Beyond", 2009, with Lucene's idf, which is never negative).

SATURATION = 0.9
"""k1: how soon a repeated term stops counting."""
SHORT_PASSAGES = 20.0
LONG_PASSAGES = 100.0
"""Mean number of terms up to which a scope counts as one of turns, and from which of documents."""
LENGTH_NORMALISATION = (0.3, 0.75)
"""b among turns and among documents: how much a passage longer than the mean is discounted.

Turns differ in length by nature; a long document is long because it is about more things.
"""

# A tail up to this share of the base is scanned; beyond, base and tail are sorted together.
_LARGEST_TAIL = 0.1
_SMALLEST_MERGE = 512


@dataclass(frozen=True, slots=True)
class Postings:
    """Which rows hold which term how often, sorted by term and then row."""

    terms: NDArray[np.uint32]
    starts: IntArray
    rows: NDArray[np.int32]
    counts: NDArray[np.uint16]

    @classmethod
    def build(cls, terms: TermArray, rows: NDArray[np.int32]) -> Postings:
        """Sort parallel arrays of (term, row) occurrences into postings."""
        pairs = (terms.astype(np.uint64) << np.uint64(32)) | rows.astype(np.uint64)
        distinct, counts = np.unique(pairs, return_counts=True)
        keys = (distinct >> np.uint64(32)).astype(np.uint32)
        vocabulary, starts = np.unique(keys, return_index=True)
        bounds = np.append(starts, len(keys)).astype(np.int64)
        holders = (distinct & np.uint64(0xFFFFFFFF)).astype(np.int32)
        return cls(vocabulary, bounds, holders, np.minimum(counts, 65535).astype(np.uint16))

    def of(self, term: np.uint32) -> tuple[NDArray[np.int32], NDArray[np.uint16]]:
        """Return the rows that hold `term`, and how often each does."""
        place = int(np.searchsorted(self.terms, term))
        if place == len(self.terms) or self.terms[place] != term:
            return self.rows[:0], self.counts[:0]
        span = slice(self.starts[place], self.starts[place + 1])
        return self.rows[span], self.counts[span]


@dataclass(frozen=True, slots=True)
class LexicalIndex:
    """The BM25 index of one scope: immutable, a larger one is made by `extended`.

    Attributes:
        lengths: Terms in each row, shape (rows,).
        mean_length: Their mean; 0 in an empty scope.
        half_frequency: k1·(1 - b + b·length/mean) of each row: a term that occurs so often in it
            gives half of what it could at most.
        base: Postings of the rows up to `base_rows`.
        tail: Postings of the rows after that.
        occurrences: All (term, row) occurrences of the tail, kept for the next extension.
    """

    lengths: NDArray[np.int32]
    mean_length: float
    half_frequency: NDArray[np.float32]
    base: Postings
    base_rows: int
    tail: Postings
    occurrences: tuple[TermArray, NDArray[np.int32]]

    @classmethod
    def build(cls, terms: TermArray, lengths: NDArray[np.int32]) -> LexicalIndex:
        """Index rows given as their concatenated terms and the number of terms of each."""
        rows = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
        return cls.of(Postings.build(terms, rows), lengths)

    @classmethod
    def of(cls, postings: Postings, lengths: NDArray[np.int32]) -> LexicalIndex:
        """Return the index of rows whose postings are there already."""
        nothing = (np.empty(0, np.uint32), np.empty(0, np.int32))
        mean, half = _length_statistics(lengths)
        return cls(lengths, mean, half, postings, len(lengths), Postings.build(*nothing), nothing)

    def extended(self, terms: TermArray, lengths: NDArray[np.int32]) -> LexicalIndex:
        """Return an index that also holds further rows, numbered after the present ones."""
        first = len(self.lengths)
        rows = np.repeat(np.arange(first, first + len(lengths), dtype=np.int32), lengths)
        tail_terms = np.concatenate([self.occurrences[0], terms])
        tail_rows = np.concatenate([self.occurrences[1], rows])
        all_lengths = np.concatenate([self.lengths, lengths])
        if len(all_lengths) - self.base_rows > max(_SMALLEST_MERGE, _LARGEST_TAIL * self.base_rows):
            return self._merge(tail_terms, tail_rows, all_lengths)
        tail = Postings.build(tail_terms, tail_rows)
        occurrences = (tail_terms, tail_rows)
        mean, half = _length_statistics(all_lengths)
        return LexicalIndex(all_lengths, mean, half, self.base, self.base_rows, tail, occurrences)

    def scores(self, query: TermArray) -> tuple[ScoreArray, float]:
        """Score every row for the query's distinct terms.

        Returns:
            BM25 by row, shape (rows,), and the bound that no row exceeds: the sum of
            idf·(k1+1) over the terms that the scope holds; 0 when it holds none of them.
        """
        scores = np.zeros(len(self.lengths), np.float32)
        bound = 0.0
        for term in query:
            parts = [self.base.of(term), self.tail.of(term)]
            holders = sum(len(rows) for rows, _ in parts)
            if holders == 0:
                continue
            idf = float(np.log1p((len(self.lengths) - holders + 0.5) / (holders + 0.5)))
            bound += idf * (SATURATION + 1)
            for rows, counts in parts:
                frequency = counts.astype(np.float32)
                share = frequency / (frequency + self.half_frequency[rows])
                scores[rows] += np.float32(idf * (SATURATION + 1)) * share
        return scores, bound

    def _merge(
        self, terms: TermArray, rows: NDArray[np.int32], lengths: NDArray[np.int32]
    ) -> LexicalIndex:
        repeats = np.diff(self.base.starts)
        base_terms = np.repeat(np.repeat(self.base.terms, repeats), self.base.counts)
        base_rows = np.repeat(self.base.rows, self.base.counts)
        postings = Postings.build(
            np.concatenate([base_terms, terms]), np.concatenate([base_rows, rows])
        )
        return LexicalIndex.of(postings, lengths)


def _length_statistics(lengths: NDArray[np.int32]) -> tuple[float, NDArray[np.float32]]:
    """Return the mean length and each row's half frequency."""
    mean = float(lengths.mean()) if len(lengths) else 0.0
    turns, documents = LENGTH_NORMALISATION
    normalisation = turns + long_share(mean) * (documents - turns)
    relative = lengths / np.float32(max(mean, 1e-9))
    half = SATURATION * (1 - normalisation + normalisation * relative)
    return mean, np.asarray(half, np.float32)


def long_share(mean_length: float) -> float:
    """Say how far passages are from turns (0) to documents (1), by their mean number of terms."""
    return min(max((mean_length - SHORT_PASSAGES) / (LONG_PASSAGES - SHORT_PASSAGES), 0.0), 1.0)
