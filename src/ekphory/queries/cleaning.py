"""Takes out of a query what a host of agents has put around it, and says what that was."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ekphory.errors import InvalidInput
from ekphory.queries.wrapping import BLOCKS, LINES, PREFIXES, TASK_QUEUE

LONGEST = 2000
"""Characters of a query that are searched, as in Memory-Spark."""
READ_PER_KEPT = 50
"""How many times `longest` is read at all, so that time stays bounded."""
OVERLONG = "overlong start"

# At one place the first that matches decides; all begin with a plain character.
_ANY_BLOCK = re.compile("|".join(block.opens.pattern for block in BLOCKS))


@dataclass(frozen=True, slots=True)
class Removal:
    """How often one kind of thing was removed, and how long it was in all."""

    count: int
    characters: int


@dataclass(frozen=True, slots=True)
class CleanedQuery:
    """A query in one line.

    Attributes:
        text: What is searched; empty only where nothing but white space was given.
        removed: By name what was removed.
        kept_as_given: Whether nothing but wrapping was given, so that it is searched itself.
    """

    text: str
    removed: Mapping[str, Removal]
    kept_as_given: bool = False


@dataclass(slots=True)
class _Tally:
    removed: dict[str, Removal] = field(default_factory=dict)

    def add(self, name: str, characters: int) -> None:
        if characters == 0:
            return
        before = self.removed.get(name, Removal(0, 0))
        self.removed[name] = Removal(before.count + 1, before.characters + characters)


def clean_query(text: str, *, longest: int = LONGEST) -> CleanedQuery:
    """Remove wrapping, fold white space, and keep the last `longest` characters.

    What is clean already is left as it is: cleaning twice is cleaning once. Where nothing would be
    left, the text itself is searched, in one line, so that no search fails because of cleaning.

    Raises:
        InvalidInput: `longest` is less than 1.
    """
    if longest < 1:
        raise InvalidInput("longest", longest, "no character would be left", "Give at least 1")
    cleaned = _reduced(text, longest)
    if cleaned.text or not text.strip():
        return cleaned
    # In one line less is recognised, since what marks a line needs its line.
    folded = _end(_folded(text[-READ_PER_KEPT * longest :]), longest)
    again = _reduced(folded, longest)
    return CleanedQuery(again.text or folded, again.removed if again.text else {}, True)


def _reduced(text: str, longest: int) -> CleanedQuery:
    tally = _Tally()
    before, after = None, text[-READ_PER_KEPT * longest :]
    tally.add(OVERLONG, len(text) - len(after))
    # From the second round on at most `longest` characters, fewer each time.
    while after != before:
        before = after
        folded = _folded(_without_wrapping(before, tally))
        after = _end(folded, longest)
        tally.add(OVERLONG, len(folded) - len(after))
    return CleanedQuery(after, tally.removed)


def _folded(text: str) -> str:
    return " ".join(text.split())


def _end(folded: str, longest: int) -> str:
    return folded[-longest:].lstrip()


def _without_wrapping(text: str, tally: _Tally) -> str:
    without_blocks = _without_blocks(text.replace("\r\n", "\n").replace("\r", "\n"), tally)

    def removed(queue: re.Match[str]) -> str:
        tally.add("task queue", len(queue[0]))
        return ""

    without_queues = TASK_QUEUE.sub(removed, without_blocks)
    return "\n".join(_line_without_marks(line, tally) for line in without_queues.split("\n"))


def _without_blocks(text: str, tally: _Tally) -> str:
    pieces: list[str] = []
    unclosed: set[re.Pattern[str]] = set()
    kept_from = position = 0
    while opening := _ANY_BLOCK.search(text, position):
        start, position = opening.span()
        block = next(block for block in BLOCKS if block.opens.match(text, start))
        # A mark that is not found once is not found further on either: time stays linear.
        closing = None if block.closes in unclosed else block.closes.search(text, position)
        if closing is None:
            unclosed.add(block.closes)
            continue
        position = closing.end()
        if block.name is not None:
            # A space keeps what stood before and after apart.
            pieces += [text[kept_from:start], " "]
            tally.add(block.name, position - start)
            kept_from = position
    return "".join([*pieces, text[kept_from:]])


def _line_without_marks(line: str, tally: _Tally) -> str:
    rest = line.strip()
    position = 0
    while mark := _mark_at(rest, position):
        name, end = mark
        tally.add(name, end - position)
        position = end
    rest = rest[position:]
    for kind in LINES:
        if kind.pattern.fullmatch(rest):
            tally.add(kind.name, len(rest))
            return ""
    return rest


def _mark_at(line: str, position: int) -> tuple[str, int] | None:
    for kind in PREFIXES:
        found = kind.pattern.match(line, position)
        if found:
            return kind.name, found.end()
    return None
