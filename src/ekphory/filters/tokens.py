"""The words of the filter grammar: text in, tokens out, every character accounted for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast

from ekphory.errors import FilterError

TokenKind = Literal["text", "key", "number", "word", "operator", "mark", "end"]

# Possessive quantifiers (++, *+) keep the reading linear in the length of the text.
_TOKEN = re.compile(
    r"""
      (?P<space>\s++)
    | (?P<text>'(?:[^']|'')*+')
    | (?P<key>(?:m\.|metadata\.)?"(?:[^"]|"")*+")
    | (?P<number>[+-]?(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+(?![\w.]))
    | (?P<word>[\w.]++)
    | (?P<operator><>|!=|<=|>=|=|<|>)
    | (?P<mark>[(),])
    """,
    re.VERBOSE,
)
_WORD = re.compile(r"[\w.]+")


@dataclass(frozen=True, slots=True)
class Token:
    """One word of a filter.

    Attributes:
        kind: What it is; `end` is the end of the text.
        text: The characters as the caller wrote them.
        start: Zero-based position of the first one.
    """

    kind: TokenKind
    text: str
    start: int

    @property
    def place(self) -> str:
        """Where the token stands, as errors say it; people count from 1."""
        return f" at character {self.start + 1}"

    @property
    def keyword(self) -> str:
        """The word in capitals, since keywords are case-insensitive; empty for another kind."""
        return self.text.upper() if self.kind == "word" else ""


def tokenize(text: str) -> list[Token]:
    """Split a filter into tokens, the last of which has the kind `end`.

    Raises:
        FilterError: A character that belongs to no token, or a quote that is not closed.
    """
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise _unreadable(text, position)
        if found.lastgroup != "space":
            tokens.append(Token(cast(TokenKind, found.lastgroup), found[0], position))
        position = found.end()
    tokens.append(Token("end", "", len(text)))
    return tokens


def is_plain_key(key: str) -> bool:
    """Say whether a metadata key can be written without quotes."""
    return _WORD.fullmatch(key) is not None


def unquote(quoted: str) -> str:
    """Give the content of a quoted token, in which a doubled quote stands for one."""
    quote = quoted[-1]
    return quoted[1:-1].replace(quote * 2, quote)


def _unreadable(text: str, position: int) -> FilterError:
    place = f" at character {position + 1}"
    if text[position] in "'\"":
        remedy = "Close the quote; inside it, write the quote itself twice."
        return FilterError("filter", text[position:], f"quote never closed{place}", remedy)
    remedy = "Put texts in single quotes and odd metadata keys in double ones: m.\"a-b\" = 'x'."
    return FilterError("filter", text[position], f"unknown character{place}", remedy)
