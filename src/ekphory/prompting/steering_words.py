"""A text as a string of codes, one for each word that a rule knows; rules are searched in it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from ekphory.prompting.disguises import folded
from ekphory.prompting.unspaced import UNSPACED

OTHER = "x"
"""Code of a word that no rule knows."""
LONGEST_GAP = 6
"""How many other words may stand between two items of a rule at most."""

_FIRST_CODE = 0xE000
_SHORTEST_COMPOUND = 10
_SCRAMBLED_LENGTHS = range(6, 21)
_LONGEST_REMEMBERED = 20
_MOST_REMEMBERED = 50_000
_MOSTLY = 0.8
"""A compound is taken apart only when so much of it is known."""

_LETTER = rf"[^\W_{UNSPACED}]"
_TOKEN = re.compile(rf"<[a-z]+>|[{UNSPACED}]+|(?:{_LETTER}|[@$!|€])++|[.?…。:,;、()\[\]\"“”«»\n]")
_MARKS = {".": ".", "?": ".", "…": ".", "。": ".", ":": ":", "\n": "\n"}
_MARKS |= dict.fromkeys(',;、()[]"“”«»', ",")

_CAPITALS = re.compile(r"\bDAN\b")
_REWRITINGS = (
    (re.compile(r"\bhttps?://"), " <url> "),
    (re.compile(r"@(?=[\w-]+\.[a-z])"), " <email> "),
    (re.compile(r"n['’]t\b"), "nt"),
    (re.compile(r"['’]s\b"), ""),
    (re.compile(r"['’]re\b"), " are"),
    (re.compile(r"!+(?![^\W_])"), "."),
    # A blank line and an item of a list begin a new sentence.
    (re.compile(r"\n(?=[ \t]*(?:\n|[-*•][ \t]|\d{1,3}[.)]))"), ".\n"),
)
_SPELLED_OUT = re.compile(r"(?<![^\W_])[^\W_](?:[ \t.\-_*~/|+,·]{1,3}[^\W_]){3,}+(?![^\W_])")
_LONGER_WORD = re.compile(r"[a-z]{6,}")
_NOT_A_LETTER = re.compile(r"[\W_]+")

# Digits and signs that stand for letters; some for i or l.
_LEET = tuple(str.maketrans("013456789@$€!|", f"o{one}easgtbgase{one}{one}") for one in "il")
_LEET_SIGN = re.compile(r"[013456789@$!|€]")

_LONG_GAP = re.compile(f"{OTHER}{{{LONGEST_GAP + 1},}}")
_DOTTED_WORDS = re.compile(r"(?:[^.,:\n]\.){3,}")
_REPEATED_MARKS = re.compile(r":[,\n]*\n[.,\n]*|[,\n]*\.[.,\n]*|,*\n[,\n]*|,{2,}")


class Vocabulary:
    """The words that rules know, each with a code of one character.

    Raises:
        ValueError: A word can never be found, because it holds a sign that parts words.
    """

    def __init__(self, words: Iterable[str]) -> None:
        known = sorted(set(words) - _MARKS.keys())
        for word in known:
            if not _TOKEN.fullmatch(word):
                raise ValueError(f"{word!r} is no single word; join the words of a phrase with +")
        self._codes = {word: chr(_FIRST_CODE + place) for place, word in enumerate(known)}
        self._scrambled = {
            _scrambled(word): code
            for word, code in self._codes.items()
            if len(word) in _SCRAMBLED_LENGTHS
        }
        parts = [word for word in self._codes if len(word) > 2 or not word.isascii()]
        self._part = re.compile(_longest_of(parts))
        # Texts are made of the same words over and over.
        self._remembered = lru_cache(_MOST_REMEMBERED)(self._codes_of)

    def code(self, word: str) -> str:
        """Give the code of a known word or mark.

        Raises:
            KeyError: The word is not known.
        """
        return _MARKS.get(word) or self._codes[word]

    def recognises(self, text: str) -> bool:
        """Say whether any longer word that is known stands in a text, plainly written."""
        return not self._codes.keys().isdisjoint(_LONGER_WORD.findall(text.lower()))

    def encode(self, text: str) -> str:
        """Give the codes of a text's words in order, with `.`, `,`, `:` and line breaks between.

        Known words are found however they are written: spelled out, run together, in digits for
        letters, or with their inner letters scrambled.
        """
        text = folded(_CAPITALS.sub("<dan>", text))
        for pattern, replacement in _REWRITINGS:
            text = pattern.sub(replacement, text)
        text = _SPELLED_OUT.sub(lambda match: _NOT_A_LETTER.sub("", match[0]), text)
        tokens = _TOKEN.findall(text)
        encoded = "".join([self._encoded(token) for token in tokens])
        encoded = _REPEATED_MARKS.sub(_strongest, encoded)
        encoded = _DOTTED_WORDS.sub(lambda match: match[0].replace(".", ""), encoded)
        return _LONG_GAP.sub(OTHER * (LONGEST_GAP + 1), encoded)

    def _encoded(self, token: str) -> str:
        within = len(token) <= _LONGEST_REMEMBERED
        return self._remembered(token) if within else self._codes_of(token)

    def _codes_of(self, token: str) -> str:
        known = self._codes.get(token) or _MARKS.get(token)
        if known is None and _LEET_SIGN.search(token):
            read = (self._codes.get(token.translate(table)) for table in _LEET)
            known = next((code for code in read if code), None)
        if known is None and len(token) in _SCRAMBLED_LENGTHS:
            known = self._scrambled.get(_scrambled(token))
        if known is not None:
            return known
        return self._taken_apart(token)

    def _taken_apart(self, token: str) -> str:
        """Give the codes of the known words of a compound, or of writing without spaces."""
        unspaced = not token.isascii() and _UNSPACED_START.match(token) is not None
        if not unspaced and len(token) < _SHORTEST_COMPOUND:
            return OTHER if _HAS_LETTER.search(token) else ""
        codes: list[str] = []
        end = known = 0
        for match in self._part.finditer(token):
            codes.append(_unknown(match.start() - end) + self._codes[match[0]])
            known += len(match[0])
            end = match.end()
        codes.append(_unknown(len(token) - end))
        return "".join(codes) if unspaced or known >= _MOSTLY * len(token) else OTHER


_UNSPACED_START = re.compile(rf"[{UNSPACED}]")
_HAS_LETTER = re.compile(r"[^\W_]")


def _unknown(letters: int) -> str:
    """Count two letters without spaces as a word."""
    return OTHER * (-(-letters // 2))


def _strongest(match: re.Match[str]) -> str:
    return ":." if match[0][0] == ":" else next(mark for mark in ".\n," if mark in match[0])


def _scrambled(word: str) -> tuple[str, str, str]:
    return word[0], "".join(sorted(word[1:-1])), word[-1]


def _longest_of(words: Iterable[str]) -> str:
    """Give a pattern for the longest of the words, as a tree of prefixes: one step a letter."""
    tree: dict[str, list[str]] = {}
    for word in words:
        tree.setdefault(word[0], []).append(word[1:])
    branches = [
        re.escape(letter) + (f"(?:{_longest_of(filter(None, rests))})" if any(rests) else "")
        + ("?" if "" in rests and any(rests) else "")
        for letter, rests in sorted(tree.items())
    ]  # fmt: skip
    return "|".join(branches)
