"""How well the injection filter does on labelled lines: precision, recall, and the errors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ekphory.errors import DatasetError
from ekphory.prompting.injection import InjectionVerdict, find_injection
from ekphory_lab.evaluation.datasets import Row, read_json_lines


@dataclass(frozen=True, slots=True)
class LabelledLine:
    """One text of which somebody said whether it tries to steer a model.

    Attributes:
        text: The text.
        injection: What was said of it.
        kind: What sort of text it is, such as `base64` or `near_miss`.
        part: The part of the data it belongs to, such as `held_out`; empty where there are none.
    """

    text: str
    injection: bool
    kind: str
    part: str = ""


@dataclass(frozen=True, slots=True)
class InjectionReport:
    """What the filter made of labelled lines.

    Attributes:
        lines: How many lines were judged.
        caught: How many injections were found.
        missed: The injections that were not found.
        false_alarms: The harmless lines that were taken for injections, with the verdicts.
    """

    lines: int
    caught: int
    missed: tuple[LabelledLine, ...]
    false_alarms: tuple[tuple[LabelledLine, InjectionVerdict], ...]

    @property
    def precision(self) -> float | None:
        """Share of the lines found that are injections; None when none was found."""
        found = self.caught + len(self.false_alarms)
        return self.caught / found if found else None

    @property
    def recall(self) -> float | None:
        """Share of the injections that were found; None when there are none."""
        injections = self.caught + len(self.missed)
        return self.caught / injections if injections else None


def read_labelled_lines(path: str | Path, *, part: str | None = None) -> tuple[LabelledLine, ...]:
    """Read labelled lines, one JSON object a line: `text`, `injection`, `kind` and maybe `part`.

    Args:
        path: A JSONL file.
        part: Only the lines of this part; None for all.

    Raises:
        DatasetError: The file cannot be read, a line is malformed, or nothing is left.
    """
    try:
        lines = tuple(_read_line(row) for row in read_json_lines(Path(path)))
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read ({error}).") from error
    wanted = tuple(line for line in lines if part is None or line.part == part)
    if not wanted:
        parts = ", ".join(sorted({repr(line.part) for line in lines}))
        raise DatasetError(f"{path}: no lines of part {part!r}; there are {parts or 'none'}.")
    return wanted


def injection_report(lines: Iterable[LabelledLine]) -> InjectionReport:
    """Judge every line and compare with its label."""
    judged = [(line, find_injection(line.text)) for line in lines]
    missed = [line for line, verdict in judged if line.injection and not verdict.is_injection]
    alarms = [entry for entry in judged if entry[1].is_injection and not entry[0].injection]
    return InjectionReport(
        lines=len(judged),
        caught=sum(line.injection for line, _ in judged) - len(missed),
        missed=tuple(missed),
        false_alarms=tuple(alarms),
    )


def _read_line(row: Row) -> LabelledLine:
    is_injection = row.fields.get("injection")
    if not isinstance(is_injection, bool):
        raise row.error("injection", "true or false is needed here")
    return LabelledLine(row.text("text"), is_injection, row.text("kind"), row.text_or_empty("part"))
