"""The scenarios of facts that change: statements, how each two are related, and questions.

They lie in `changes/`, in plain text: `changes/README.md` tells the form.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Literal, Protocol, TypeVar, get_args

from ekphory.errors import DatasetError
from ekphory.models.changes import ChangeKind, StatementPair
from ekphory.types import SUPERSEDING, MemoryRecord
from ekphory_lab.evaluation.state_changes import AskedState, StateScenario

CHANGES = Path(__file__).parent / "changes"
Part = Literal["training", "fitting", "held back"]
"""What a scenario is for: the weights, the probabilities, or to measure."""
OTHER_PARTS: dict[int, Part] = {8: "fitting", 9: "held back"}
PARTS_IN_ALL = 10
PLAIN = "plain-"
"""How the files begin whose scenarios tell changes plainly; others do by their consequences."""
PERSONS = "plain-p"
"""How those among them begin that are all that is known of a person or a team."""
RARE = "rare-"
"""How those of rare kinds begin, which are regular."""
_HEAD = re.compile(r"== ([\w-]+): (.+)")
_STATEMENT = re.compile(r"([a-z]) (\d{4}-\d\d-\d\d) ([^:|]{1,40}): (.+)")
_RELATION = re.compile(r"([a-z])>([a-z]) ([a-z-]+)")
_QUESTION = re.compile(r"\?(past)? ?(.+?) = ([a-z](?:,[a-z])*)")


class Parted(Protocol):
    """What is written for one of the parts."""

    @property
    def part(self) -> Part:
        """Which."""


Block = TypeVar("Block")
Item = TypeVar("Item", bound=Parted)
LabelledPair = tuple[StatementPair, ChangeKind]
"""Two statements, and what the newer one means for the older one."""


@dataclass(frozen=True, slots=True)
class StateQuestion:
    """A question about what changed.

    Attributes:
        text: The question.
        answers: Keys of the statements any of which answers.
        is_past: Whether it asks for an earlier state.
    """

    text: str
    answers: tuple[str, ...]
    is_past: bool


@dataclass(frozen=True, slots=True)
class Scenario:
    """Dated statements about one topic.

    Attributes:
        name: File and line.
        shape: What kind of change it tells of.
        topic: What it is about.
        statements: By key, in the order of their dates.
        relations: What the newer means for the older, by their keys; others are unrelated.
        questions: Asked after all of them.
    """

    name: str
    shape: str
    topic: str = ""
    statements: dict[str, MemoryRecord] = field(default_factory=dict)
    relations: dict[tuple[str, str], ChangeKind] = field(default_factory=dict)
    questions: list[StateQuestion] = field(default_factory=list)

    @property
    def part(self) -> Part:
        """What it is for, by its first statement, so that it stays so."""
        return part_by_hash(next(iter(self.statements.values())).text)

    def memories(self) -> tuple[dict[str, str], ...]:
        """Return its statements as `add_many` takes them."""
        return tuple(
            {"id": key, "text": each.text, "at": each.at.isoformat(), "producer": each.producer}
            for key, each in self.statements.items()
        )

    def pairs(self) -> Iterator[LabelledPair]:
        """Yield each two statements and how the newer one is related to the older one."""
        for older, newer in combinations(self.statements, 2):
            pair = StatementPair(self.statements[older], self.statements[newer])
            yield pair, self.relations.get((older, newer), "unrelated")


def read_scenarios(folder: Path = CHANGES) -> list[Scenario]:
    """Read all files of a folder, in the order of their names.

    Raises:
        DatasetError: A line cannot be read, or names what is not there.
    """
    return read_blocks(folder, _HEAD, Scenario, _read_line, what="scenario")


def part_by_hash(text: str) -> Part:
    """Return what is begun by this text is for, always the same."""
    number = hashlib.sha256(text.encode()).digest()[0] % PARTS_IN_ALL
    return OTHER_PARTS.get(number, "training")


def of_part(part: Part, items: Iterable[Item]) -> list[Item]:
    """Return the scenarios, topics or transcripts of one part."""
    return [each for each in items if each.part == part]


def pairs_for(
    part: Part, scenarios: Iterable[Scenario], *, most_unrelated: int | None = None
) -> list[LabelledPair]:
    """Return the pairs of one part, of each scenario at most so many that are unrelated.

    Which of those are left out is drawn, always the same.
    """
    found = []
    for scenario in of_part(part, scenarios):
        pairs = list(scenario.pairs())
        unrelated = [place for place, (_, kind) in enumerate(pairs) if kind == "unrelated"]
        if most_unrelated is not None and len(unrelated) > most_unrelated:
            chance = Random(scenario.name)  # noqa: S311  no secret
            dropped = set(chance.sample(unrelated, len(unrelated) - most_unrelated))
            pairs = [pair for place, pair in enumerate(pairs) if place not in dropped]
        found += pairs
    return found


def held_back_scenarios() -> list[StateScenario]:
    """Return the plain scenarios that no reader was trained or fitted on.

    A question's answers should stand above the statements that they supersede, or that supersede
    them where an earlier state is asked for.
    """
    plain = [each for each in read_scenarios() if each.name.startswith(PLAIN)]
    return [_from_written(each) for each in of_part("held back", plain)]


def _from_written(scenario: Scenario) -> StateScenario:
    ended = [pair for pair, kind in scenario.relations.items() if kind in SUPERSEDING]
    last = max(each.at for each in scenario.statements.values())
    questions = tuple(
        AskedState(
            each.text,
            each.answers,
            tuple(
                (old, new) if each.is_past else (new, old)
                for old, new in ended
                if (old if each.is_past else new) in each.answers
                and (new if each.is_past else old) not in each.answers
            ),
            each.is_past,
        )
        for each in scenario.questions
    )
    now = (last + timedelta(days=7)).isoformat()
    return StateScenario(scenario.name, scenario.shape, scenario.memories(), now, questions)


def read_blocks(
    folder: Path,
    head: re.Pattern[str],
    begin: Callable[[str, str, str], Block],
    read: Callable[[Block, str, str], bool],
    *,
    what: str,
) -> list[Block]:
    """Read all files of a folder, in the order of their names.

    Args:
        folder: The folder.
        head: A line with which a block begins; its groups are the block's kind and its topic.
        begin: Makes a block of its file and line, its kind and its topic.
        read: Adds a line, which stands there, to a block; whether it could be read.
        what: What a block is, for errors.

    Raises:
        DatasetError: A line cannot be read.
    """
    blocks: list[Block] = []
    for path in sorted(folder.glob("*.txt")):
        begun: Block | None = None
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if found := head.fullmatch(line):
                begun = begin(f"{path.name}:{number}", found[1], found[2])
                blocks.append(begun)
            elif line.strip() and (begun is None or not read(begun, line, f"{path}:{number}")):
                raise DatasetError(f"{path}:{number}: is not a line of a {what}: {line[:60]!r}.")
    return blocks


def _read_line(scenario: Scenario, line: str, _place: str) -> bool:
    """Add what a line says; return whether it could be read."""
    if found := _STATEMENT.fullmatch(line):
        at = datetime.fromisoformat(found[2]).replace(hour=12, tzinfo=UTC)
        scenario.statements[found[1]] = MemoryRecord(
            id=found[1], text=found[4], at=at, created_at=at, producer=found[3].strip()
        )
        return True
    if found := _RELATION.fullmatch(line):
        kind = found[3].replace("-", " ")
        known = kind in get_args(ChangeKind) and {found[1], found[2]} <= scenario.statements.keys()
        scenario.relations[found[1], found[2]] = kind  # type: ignore[assignment]
        return known
    if found := _QUESTION.fullmatch(line):
        answers = tuple(found[3].split(","))
        scenario.questions.append(StateQuestion(found[2], answers, found[1] is not None))
        return set(answers) <= scenario.statements.keys()
    return False
