"""Whether searches rank facts that changed: the asked state first, and above the other one.

Scenarios are of the form of `updates_dev`: one JSON object a line. Beside them stand memories that
change nothing, of which none should be superseded.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from ekphory import Memory
from ekphory.types import SUPERSEDING
from ekphory_lab.evaluation.datasets import read_each
from ekphory_lab.evaluation.metrics import PairedTest, paired_test
from ekphory_lab.evaluation.runner import Progress
from ekphory_lab.evaluation.tables import ReportTable, records_table

DEPTH = 10
FIGURES = ("first@1", "above", "stale@1", "found@3")


@dataclass(frozen=True, slots=True)
class AskedState:
    """One question.

    Attributes:
        text: The question.
        first: Keys of which one should be the first hit.
        above: Pairs of keys, the first of which should stand above the second.
        is_past: Whether it asks for an earlier state.
    """

    text: str
    first: tuple[str, ...]
    above: tuple[tuple[str, str], ...]
    is_past: bool


@dataclass(frozen=True, slots=True)
class StateScenario:
    """Memories about one topic, and what is asked of them.

    Attributes:
        id: Names it.
        kind: What kind of change it tells of.
        memories: As `Memory.add_many` takes them.
        now: When it is asked.
        questions: In their order.
    """

    id: str
    kind: str
    memories: tuple[Mapping[str, Any], ...]
    now: str
    questions: tuple[AskedState, ...]


def read_state_scenarios(file: Path) -> list[StateScenario]:
    """Read scenarios of the form of `updates_dev`.

    Raises:
        DatasetError: A line is not of that form, or there is none.
    """
    return read_each(file, _scenario_of, what="scenario")


def _scenario_of(row: Mapping[str, Any]) -> StateScenario:
    memories = tuple(
        {"id" if name == "key" else name: value for name, value in memory.items()}
        for memory in row["memories"]
    )
    questions = tuple(
        AskedState(
            each["text"],
            tuple(each["first"]),
            tuple((upper, lower) for upper, lower in each["above"]),
            bool(each.get("past")),
        )
        for each in row["questions"]
    )
    return StateScenario(row["id"], row["kind"], memories, row["now"], questions)


@dataclass(frozen=True, slots=True)
class StateReport:
    """Shares over questions, by group: `all`, `past`, `present` and each kind.

    Attributes:
        preset: What searched.
        questions: How many, by group.
        figures: By group, those of FIGURES; None where nothing is asked that it measures.
        compared: By how much `first@1` of all questions is above that of searches that ignore what
            supersedes what.
    """

    preset: str
    questions: Mapping[str, int]
    figures: Mapping[str, Mapping[str, float | None]]
    compared: PairedTest


def measure_state_changes(
    scenarios: Sequence[StateScenario], *, preset: str, progress: Progress
) -> StateReport:
    """Add each scenario to a project of its own, wait until it is compared, and ask."""
    rows: dict[str, list[Mapping[str, list[bool]]]] = defaultdict(list)
    ignoring: list[bool] = []
    with tempfile.TemporaryDirectory() as root:
        for number, scenario in enumerate(scenarios):
            with Memory(f"{root}/store", project=f"p{number}", preset=preset) as memory:
                judged = _ask(memory, scenario)
                ignoring += _ask_ignoring(memory, scenario)
            for group, row in judged:
                rows[group].append(row)
            progress(preset, number + 1, len(scenarios))
    figures = {group: {name: _mean(name, each) for name in FIGURES} for group, each in rows.items()}
    firsts = [row["first@1"][0] for row in rows["all"]]
    compared = paired_test(np.array(ignoring, np.float64), np.array(firsts, np.float64))
    questions = {group: len(each) for group, each in rows.items()}
    return StateReport(preset, questions, figures, compared)


def _ask(memory: Memory, scenario: StateScenario) -> list[tuple[str, Mapping[str, list[bool]]]]:
    """Return what is right of each question, by every group that it belongs to."""
    memory.add_many(scenario.memories)
    memory.settle(timeout=120)
    judged: list[tuple[str, Mapping[str, list[bool]]]] = []
    for question in scenario.questions:
        found = memory.search(question.text, k=DEPTH, now=scenario.now)
        row = judge_state(question, [hit.id for hit in found])
        tense = "past" if question.is_past else "present"
        judged += [(group, row) for group in ("all", scenario.kind, tense)]
    return judged


def _ask_ignoring(memory: Memory, scenario: StateScenario) -> Iterator[bool]:
    """Yield whether each question's first hit is right where no revision counts."""
    for question in scenario.questions:
        found = memory.search(question.text, k=1, now=scenario.now, superseded="ignore")
        yield any(hit.id in question.first for hit in found)


def judge_state(question: AskedState, hits: Sequence[str]) -> dict[str, list[bool]]:
    """Return what is right and wrong of one question, by figure, each to be averaged."""
    rank = {key: place for place, key in enumerate(hits)}
    lower = {each for _, each in question.above}
    return {
        "first@1": [bool(hits) and hits[0] in question.first],
        "above": [
            upper in rank and rank[upper] < rank.get(other, len(hits))
            for upper, other in question.above
        ],
        "stale@1": [bool(hits) and hits[0] in lower] if lower else [],
        "found@3": [key in hits[:3] for key in question.first],
    }


@dataclass(frozen=True, slots=True)
class UnchangedReport:
    """What became of memories that no other one changes.

    Attributes:
        memories: How many there are.
        superseded: How many of them were taken to hold no more.
        waiting: Decisions that are not sure enough to act.
    """

    memories: int
    superseded: int
    waiting: int


def measure_unchanged(
    stores: Sequence[Sequence[Mapping[str, Any]]], *, progress: Progress
) -> UnchangedReport:
    """Add each store's memories to a project of its own, and count what superseded another."""
    superseded = waiting = 0
    with tempfile.TemporaryDirectory() as root:
        for number, memories in enumerate(stores):
            with Memory(f"{root}/store", project=f"p{number}") as memory:
                memory.add_many(memories)
                memory.settle(timeout=120)
                pairs = memory.revisions(limit=len(memories) ** 2)
            acting = {
                each.older.id
                for each in pairs
                if each.revision.state == "active" and each.revision.kind in SUPERSEDING
            }
            superseded += len(acting)
            waiting += sum(each.revision.state == "conflict" for each in pairs)
            progress("unchanged", number + 1, len(stores))
    return UnchangedReport(sum(map(len, stores)), superseded, waiting)


def _mean(name: str, rows: Sequence[Mapping[str, list[bool]]]) -> float | None:
    values = [value for row in rows for value in row[name]]
    return round(fmean(values), 4) if values else None


def state_tables(
    reports: Sequence[StateReport], unchanged: UnchangedReport
) -> Iterator[ReportTable]:
    """Yield the figures of each report by group, and what became of memories that stay as is."""
    for report in reports:
        groups = ["all", "present", "past", *sorted(report.figures)]
        yield records_table(
            f"facts that changed, {report.preset}",
            (
                {"": group, "questions": report.questions[group], **report.figures[group]}
                for group in dict.fromkeys(groups)
                if group in report.figures
            ),
        )
        named = f"first@1 above that of searches that ignore revisions, {report.preset}"
        yield records_table(named, [report.compared])
    if unchanged.memories:
        yield records_table("memories that nothing changes", [unchanged])
