"""A question as a list of names, words and possessive endings, in order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ekphory.agent.question.names import Name, names_in
from ekphory.agent.question.words import folded

ItemKind = Literal["name", "word", "possessive", "mark"]

_PIECE = re.compile(
    r"(['’]s?)(?=\W|$)|[^\W_]+(?:-[^\W_]+|['’](?!s\b)[^\W_]+)*|([,;:?!])", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Item:
    """One piece of a question.

    Attributes:
        kind: What it is.
        text: As written; words in lower case.
        start, end: Its place in the question.
    """

    kind: ItemKind
    text: str
    start: int
    end: int


def items_of(question: str, names: Sequence[Name]) -> list[Item]:
    """Cut a question into pieces around its names."""
    items: list[Item] = []
    place = 0
    for name in (*names, None):
        until = len(question) if name is None else name.start
        items += [_item(found) for found in _PIECE.finditer(question, place, until)]
        if name is not None:
            items.append(Item("name", name.text, name.start, name.end))
            place = name.end
    return items


def question_items(question: str) -> list[Item]:
    """Cut a question into pieces around the names that are found in it."""
    return items_of(question, names_in(question, style="question"))


def _item(found: re.Match[str]) -> Item:
    kind: ItemKind = "possessive" if found[1] else "mark" if found[2] else "word"
    return Item(kind, folded(found[0]), found.start(), found.end())
