"""Importance and type of texts, as labelled: by hand for real turns, by rule for generated ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from ekphory.errors import DatasetError
from ekphory.evaluation.datasets import Dataset
from ekphory.evaluation.rows import Row, read_json_lines
from ekphory.types import MEMORY_TYPES, MemoryType


@dataclass(frozen=True, slots=True)
class LabelledText:
    """One text.

    Attributes:
        text: What a model reads.
        importance: In [0, 1].
        type: What kind of memory it is; `unknown` where it is none of the three.
    """

    text: str
    importance: float
    type: MemoryType


@dataclass(frozen=True, slots=True)
class TurnLabel:
    """The label of one turn of a conversation set; the text stays with the set.

    Attributes:
        dataset, pool, id: Which turn.
        importance: 0, .25, .5, .75 or 1: nothing to keep, a passing remark, worth keeping, a
            preference or plan that shapes what comes, health or a commitment.
        type: As of a memory; `unknown` for greetings, thanks, questions and mere reactions.
    """

    dataset: str
    pool: str
    id: str
    importance: float
    type: MemoryType


def read_turn_labels(file: Path | None = None) -> tuple[TurnLabel, ...]:
    """Read labels of turns; None takes the hundred that come with ekphory.

    Raises:
        DatasetError: A line is no such label.
    """
    path = file or Path(str(files("ekphory.evaluation") / "labels" / "conversation_turns.jsonl"))
    return tuple(_label(row) for row in read_json_lines(path))


def labelled_turns(
    labels: Sequence[TurnLabel], datasets: Sequence[Dataset]
) -> tuple[LabelledText, ...]:
    """Give the labelled turns of these sets, in the order of the labels.

    Raises:
        DatasetError: A set lacks a turn that is labelled as its own.
    """
    by_name = {dataset.name: dataset for dataset in datasets}
    return tuple(
        _text(label, by_name[label.dataset]) for label in labels if label.dataset in by_name
    )


def _text(label: TurnLabel, dataset: Dataset) -> LabelledText:
    for turn in dataset.pools.get(label.pool, ()):
        if turn.id == label.id:
            return LabelledText(turn.indexed_text, label.importance, label.type)
    raise DatasetError(
        f"{dataset.name}: pool {label.pool!r} has no turn {label.id!r}, which is labelled. "
        "Fetch the set again."
    )


def _label(row: Row) -> TurnLabel:
    importance = row.fields.get("importance")
    if not isinstance(importance, int | float) or not 0 <= importance <= 1:
        raise row.error("importance", "a number from 0 to 1 is needed here")
    type_ = next((name for name in MEMORY_TYPES if name == row.text("type")), None)
    if type_ is None:
        raise row.error("type", f"one of {', '.join(MEMORY_TYPES)} is needed here")
    return TurnLabel(row.text("dataset"), row.text("pool"), row.text("id"), importance, type_)
