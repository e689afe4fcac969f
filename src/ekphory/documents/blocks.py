"""What every reader yields: a block of a document, or a place that could not be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

BlockKind = Literal["heading", "paragraph", "list", "table", "code"]
Unit = Literal["line", "page", "paragraph"]
_LABELS: dict[Unit, str] = {"page": "p. ", "paragraph": "par. "}


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, heading, list, table or piece of code.

    Attributes:
        text: Its text, never blank.
        kind: What it is.
        first, last: Where it begins and ends, counted from 1 in the unit of its document.
        level: Of a heading: 1 for the outermost.
        title: Of a heading: its words without marks.
        continues: Whether its text goes on in the middle of that of the block before.
        verbatim: Whether each line of its text is a line of the file, so that lines can be counted.
    """

    text: str
    kind: BlockKind
    first: int
    last: int
    level: int = 0
    title: str = ""
    continues: bool = False
    verbatim: bool = False


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Text that is passed over on purpose, with the reason, in words that can be counted."""

    reason: str


@dataclass(frozen=True, slots=True)
class Problem:
    """What cannot be read: the whole document, or one place of it.

    Attributes:
        message: What is wrong and what to do about it.
        position: Where, in the unit of the document; None for all of it.
    """

    message: str
    position: int | None = None


Read: TypeAlias = Block | LeftOut | Problem


def place_label(first: int, last: int, unit: Unit) -> str:
    """Say where a text lies: `12-20` for lines, `p. 3` or `p. 3-4`, `par. 7` or `par. 7-9`."""
    if unit == "line":
        return f"{first}-{last}"
    return f"{_LABELS[unit]}{first}" + (f"-{last}" if last != first else "")
