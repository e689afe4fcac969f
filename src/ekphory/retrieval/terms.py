"""Text to index terms: words stemmed as English, Chinese and Japanese as overlapping pairs.

Terms are kept as 32-bit hashes, so that no index holds readable text.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from zlib import crc32

import numpy as np
import Stemmer
from numpy.typing import NDArray

from ekphory.prompting.unspaced import UNSPACED

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
    return _hashed(_tokens(text, _PASSAGE_STOP_WORDS))


def query_terms(text: str) -> TermArray:
    """Hash the distinct terms of a query, without the words that questions are made of."""
    return np.unique(_hashed(_tokens(text, _QUERY_STOP_WORDS)))


def _hashed(tokens: list[str]) -> TermArray:
    return np.fromiter((crc32(token.encode()) for token in tokens), np.uint32, len(tokens))


def _tokens(text: str, stop_words: frozenset[str]) -> list[str]:
    words: list[str] = []
    pairs: list[str] = []
    for token in _TOKEN.findall(_folded(text)):
        if not token.isascii() and _UNSPACED_START.match(token):
            pairs.extend(_pairs(token))
        elif token not in stop_words:
            words.append(token)
    stems: list[str] = _stemmer().stemWords(words)
    return stems + pairs


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    without_accents = "".join(mark for mark in decomposed if not _is_latin_accent(mark))
    return unicodedata.normalize("NFC", without_accents)


def _is_latin_accent(character: str) -> bool:
    return "\u0300" <= character <= "\u036f"


def _pairs(run: str) -> list[str]:
    if len(run) == 1:
        return [run]
    return [run[start : start + 2] for start in range(len(run) - 1)]


def _stemmer() -> Stemmer.Stemmer:
    # A Stemmer is not safe to share between threads.
    if not hasattr(_local, "stemmer"):
        _local.stemmer = Stemmer.Stemmer("english")
    stemmer: Stemmer.Stemmer = _local.stemmer
    return stemmer
