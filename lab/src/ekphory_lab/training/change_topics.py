"""Facts that change, as phrasings and values that are put together into pairs of statements.

They lie in `change_topics/`, in plain text: its README tells the form. Where the scenarios of
`changes/` tell a change by its consequences, here it is told plainly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from random import Random

from ekphory.errors import DatasetError
from ekphory.models.changes import ChangeKind, StatementPair
from ekphory.types import MemoryRecord
from ekphory_lab.training.changes import LabelledPair, Part, of_part, part_by_hash
from ekphory_lab.training.question_groups import WORDS

TOPICS = Path(__file__).parent / "change_topics"
NEEDED_LINES = (
    *("values", "state", "change", "correct", "end", "plan", "temporary", "restate"),
    *("other", "near", "ask", "past"),
)
_LINES = frozenset({*NEEDED_LINES, "subjects", "add"})
_FIRST_PERSON = re.compile(r"\b(?:I|I'm|I've|I'd|I'll|my|me|mine|My)\b")
_FIRST_DAY = datetime(2021, 1, 4, 12, tzinfo=UTC)
_DAYS = 1_600
_SPEAKERS: list[str] = sorted(WORDS["change_topics"]["speakers"].split())
_ASIDES: list[str] = WORDS["change_topics"]["asides"]
_ASIDE_SHARE = 0.15
_BARE_SHARE = 0.4
"""So many statements lack their full stop."""


@dataclass(frozen=True, slots=True)
class Topic:
    """One fact that changes.

    Attributes:
        name: What it is about.
        lines: Phrasings by what they mean, and the values and subjects that fill them.
    """

    name: str
    lines: Mapping[str, Sequence[str]]

    @property
    def part(self) -> Part:
        """What it is for, by its name."""
        return part_by_hash(self.name)


def read_topics(folder: Path = TOPICS) -> list[Topic]:
    """Read all files of a folder, in the order of their names.

    Raises:
        DatasetError: A line cannot be read, or one that a topic needs is missing.
    """
    topics: list[Topic] = []
    for path in sorted(folder.glob("*.txt")):
        for block in re.split(r"^== ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            name, *lines = block.strip().splitlines()
            topics.append(Topic(name, dict(_read_line(path, name, line) for line in lines if line)))
            missing = [key for key in NEEDED_LINES if key not in topics[-1].lines]
            if missing:
                raise DatasetError(f"{path}: topic {name!r}: has no line {missing[0]!r}.")
    return topics


def _read_line(path: Path, topic: str, line: str) -> tuple[str, list[str]]:
    key, colon, phrasings = line.partition(": ")
    if not colon or key not in _LINES:
        raise DatasetError(f"{path}: topic {topic!r}: is not a line of a topic: {line[:60]!r}.")
    return key, [each.strip() for each in phrasings.split(" | ")]


def topic_pairs(
    part: Part, topics: Iterable[Topic], *, each: int, seed: int = 25
) -> list[LabelledPair]:
    """Return pairs of statements drawn from the topics of one part, always the same.

    Args:
        part: Whose.
        topics: All of them.
        each: Pairs a topic.
        seed: Decides which are drawn.
    """
    kept = of_part(part, topics)
    pairs = []
    for topic in kept:
        others = [other for other in kept if other is not topic]
        drawn = _Drawing(topic, others, Random(f"{seed} {topic.name}"))  # noqa: S311  no secret
        pairs += [drawn.pair() for _ in range(each)]
    return pairs


_HOLDING = ("state", "state", "change", "restate")
"""Lines that tell what holds."""


@dataclass(frozen=True, slots=True)
class _Plain:
    """A pair of one line each.

    Attributes:
        kind: What the newer statement does.
        newer, older: The lines, one of which is drawn for each of the two.
        of_old: Whether the newer one names the older one's value.
    """

    kind: ChangeKind
    newer: tuple[str, ...]
    older: tuple[str, ...] = _HOLDING
    of_old: bool = False


class _Drawing:
    """Draws pairs of one topic; unrelated ones may take a statement of any other."""

    def __init__(self, topic: Topic, others: Sequence[Topic], chance: Random) -> None:
        self._lines = topic.lines
        self._others = others
        self._chance = chance
        self._subjects: Sequence[str] = topic.lines.get("subjects", ())
        self._numbers = count()

    def pair(self) -> LabelledPair:
        """Return two statements and what the newer one does."""
        draws = list(_DRAWN)
        draw = self._chance.choices(draws, [_DRAWN[each] for each in draws])[0]
        if isinstance(draw, _Plain):
            return self._plainly(draw) or self._replaces()
        return draw(self) or self._replaces()

    # What may be drawn.

    def _replaces(self) -> LabelledPair:
        old, new = self._values()
        newer = self._one_of("change", "change", "change", "state")
        return self._told((self._holding(), old), (newer, new), "replaces")

    def _comes_true(self) -> LabelledPair:
        old, new = self._values()
        value = new if self._chance.random() < 0.7 else old
        return self._told((self._one_of("plan"), value), (self._one_of("change"), new), "replaces")

    def _restates(self) -> LabelledPair | None:
        value, _ = self._values()
        older, newer = self._holding(), self._one_of("restate", "restate", "state")
        return None if older == newer else self._told((older, value), (newer, value), "restates")

    def _plainly(self, draw: _Plain) -> LabelledPair | None:
        if not self._lines.keys() >= {*draw.newer}:
            return None
        old, new = self._values()
        older, newer = self._one_of(*draw.older), self._one_of(*draw.newer)
        return self._told((older, old), (newer, old if draw.of_old else new), draw.kind)

    def _of_another(self) -> LabelledPair:
        """Return a pair about two people or things: named, told by two, or written so."""
        old, new = self._values()
        newer = self._one_of("change", "change", "state", "restate", "correct", "plan")
        older = self._holding()
        if self._subjects:
            if {"{s}" in older, "{s}" in newer} == {True}:
                return self._told((older, old), (newer, new), "other subject", subjects=2)
        elif _FIRST_PERSON.search(older) and _FIRST_PERSON.search(newer):
            return self._told((older, old), (newer, new), "other subject", speakers=2)
        return self._of_another_as_written()

    def _of_another_as_written(self) -> LabelledPair:
        old, new = self._values()
        value = self._chance.choice((old, new))
        other = self._one_of("other")
        if self._chance.random() < 0.5:
            return self._told((self._holding(), old), (other, value), "other subject")
        return self._told((other, value), (self._one_of("change", "state"), new), "other subject")

    def _unrelated(self) -> LabelledPair:
        old, new = self._values()
        value = self._chance.choice((old, new))
        near = self._one_of("near")
        if self._chance.random() < 0.6:
            return self._told((self._holding(), old), (near, value), "unrelated")
        return self._told((near, value), (self._one_of("change", "state", "end"), old), "unrelated")

    def _other_topic(self) -> LabelledPair | None:
        if not self._others:
            return None
        old, _ = self._values()
        lines = self._chance.choice(self._others).lines
        newer = self._chance.choice([*lines["change"], *lines["state"], *lines["end"]])
        subjects = lines.get("subjects", ("",))
        first, second = self._chance.sample(list(lines["values"]), 2)
        filled = newer.replace("{v}", first).replace("{o}", second)
        filled = filled.replace("{s}", self._chance.choice(list(subjects)))
        return self._told((self._holding(), old), (filled, old), "unrelated")

    # Parts of a pair.

    def _holding(self) -> str:
        return self._one_of(*_HOLDING)

    def _one_of(self, *lines: str) -> str:
        return self._chance.choice(list(self._lines[self._chance.choice(lines)]))

    def _values(self) -> tuple[str, str]:
        old, new = self._chance.sample(list(self._lines["values"]), 2)
        return old, new

    def _told(
        self,
        older: tuple[str, str],
        newer: tuple[str, str],
        kind: ChangeKind,
        *,
        subjects: int = 1,
        speakers: int = 1,
    ) -> LabelledPair:
        """Return a pair of two phrasings, each with the value that fills it."""
        names = self._chance.sample(list(self._subjects) or [""], min(subjects, 2))
        said_by = self._chance.sample(_SPEAKERS, speakers)
        at = _FIRST_DAY + timedelta(days=self._chance.randrange(_DAYS))
        later = at + timedelta(days=1 + int(self._chance.lognormvariate(4, 1.3)))
        values = [each for each in self._lines["values"] if each != older[1]]
        before = self._chance.choice(values)
        first = _fill(older, other=before, subject=names[0])
        second = _fill(newer, other=older[1], subject=names[-1])
        pair = StatementPair(
            self._record(first, said_by[0], at), self._record(second, said_by[-1], later)
        )
        return pair, kind

    def _record(self, text: str, speaker: str, at: datetime) -> MemoryRecord:
        text = text[:1].upper() + text[1:] if self._chance.random() < 0.5 else text
        text = text.removesuffix(".") if self._chance.random() < _BARE_SHARE else text
        if self._chance.random() < _ASIDE_SHARE:
            aside = self._chance.choice(_ASIDES)
            before = aside[-1] in ":," or self._chance.random() < 0.5
            text = f"{aside} {text}" if before else f"{text} {aside}"
        return MemoryRecord(
            id=str(next(self._numbers)), text=text, at=at, created_at=at, producer=speaker
        )


def _fill(told: tuple[str, str], *, other: str, subject: str) -> str:
    phrasing, value = told
    return phrasing.replace("{v}", value).replace("{o}", other).replace("{s}", subject)


_DRAWN: Mapping[_Plain | Callable[[_Drawing], LabelledPair | None], float] = {
    _Drawing._replaces: 20,
    _Drawing._comes_true: 4,
    _Plain("corrects", ("correct",), older=("state",)): 9,
    _Plain("ends", ("end",), of_old=True): 7,
    _Plain("ends", ("restate", "state"), older=("temporary",)): 3,
    _Drawing._restates: 11,
    _Plain("adds", ("add",)): 7,
    _Plain("plans", ("plan",)): 9,
    _Plain("excepts", ("temporary",)): 9,
    _Drawing._of_another: 9,
    _Drawing._of_another_as_written: 4,
    _Drawing._unrelated: 10,
    _Drawing._other_topic: 24,
}
"""What may be drawn, and how often."""
