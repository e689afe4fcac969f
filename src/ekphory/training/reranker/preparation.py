"""Makes the examples of a run once, with soft labels, and writes them beside it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from ekphory.training.reranker.example_files import read_examples, write_examples
from ekphory.training.reranker.example_stream import mixed_examples
from ekphory.training.reranker.examples import HARD_CASES, RerankExample
from ekphory.training.reranker.preference_teachers import (
    LabelTeacher,
    PreferenceTeacher,
    dense_teacher,
    lexical_teacher,
)
from ekphory.training.reranker.reranker_config import RerankerConfig
from ekphory.training.reranker.soft_labels import (
    LabelledExamples,
    WeightedTeacher,
    with_soft_labels,
)
from ekphory.training.teacher import BaseModel
from ekphory.training.training_sources import SOURCES

TRAINED_FILE = "examples.jsonl.gz"
HELD_BACK_FILE = "held_back.jsonl.gz"
REPORT_FILE = "examples.json"
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleMaking:
    """What examples are made with.

    Attributes:
        folder: Holds the training files.
        base: The dense half of the first stage, and a teacher.
        base_name: What identifies it.
        further: Further teachers, rerankers or language models.
    """

    folder: Path
    base: BaseModel
    base_name: str
    further: Sequence[PreferenceTeacher] = ()

    def identity(self, config: RerankerConfig) -> dict[str, str]:
        """Give what examples depend on besides the configuration: hashes by file, and models."""
        sources = [SOURCES[name] for name in config.mix if name in SOURCES]
        hashes = {source.name: source.sha256(self.folder) for source in sources}
        teachers = ", ".join(teacher.name for teacher in self.further)
        return {**hashes, "first stage": self.base_name, "teachers": teachers}


@dataclass(frozen=True, slots=True)
class PreparedExamples:
    """The examples of a run, in the order in which they are taken.

    Attributes:
        trained: What the model is trained on.
        held_back: What it is measured on.
    """

    trained: tuple[RerankExample, ...]
    held_back: tuple[RerankExample, ...]


def prepare_examples(
    config: RerankerConfig, making: ExampleMaking, target: Path, *, progress: Progress
) -> PreparedExamples:
    """Read the run's examples, or make and write them where it has none.

    Writes `examples.jsonl.gz`, `held_back.jsonl.gz` and `examples.json`, which counts sources, hard
    cases and levels and says how far teachers agree.

    Raises:
        DatasetError: A training file is missing or malformed.
        ServiceError: A remote teacher failed after all repeats.
    """
    if not (target / TRAINED_FILE).is_file():
        _make(config, making, target, progress)
    return PreparedExamples(
        read_examples(target / TRAINED_FILE), read_examples(target / HELD_BACK_FILE)
    )


def _make(config: RerankerConfig, making: ExampleMaking, target: Path, progress: Progress) -> None:
    held_back = mixed_examples(
        making.folder,
        config.mix,
        making.base,
        part="held_back",
        counts=config.held_back.counts,
        seed=config.seed,
    )
    write_examples(list(islice(held_back, config.held_back.questions)), target / HELD_BACK_FILE)
    stream = mixed_examples(
        making.folder,
        config.mix,
        making.base,
        part="trained",
        counts=config.counts,
        seed=config.seed,
    )
    drawn = []
    for example in islice(stream, config.questions):
        drawn.append(example)
        progress("making examples", len(drawn), config.questions)
    labelled = with_soft_labels(
        drawn,
        _teachers(config, making.further),
        aggregation=config.teachers.aggregation,
        progress=lambda done, total: progress("asking teachers", done, total),
    )
    report = json.dumps(example_report(labelled), indent=2)
    (target / REPORT_FILE).write_text(report + "\n", encoding="utf-8")
    # Last: where this file stands, the others do as well.
    write_examples(labelled.examples, target / TRAINED_FILE)


def example_report(labelled: LabelledExamples) -> Mapping[str, Any]:
    """Count examples by source, candidates by kind and level, and give the teachers' agreement."""
    examples = labelled.examples
    kinds = Counter(each.kind for example in examples for each in example.candidates)
    return {
        "questions": len(examples),
        "with context": sum(bool(example.query.context) for example in examples),
        "sources": dict(Counter(example.source for example in examples).most_common()),
        "candidates": dict(kinds.most_common()),
        "hard cases": {kind: kinds[kind] for kind in HARD_CASES},
        "levels": dict(labelled.levels),
        "agreement": [asdict(agreement) for agreement in labelled.agreements],
    }


def _teachers(
    config: RerankerConfig, further: Sequence[PreferenceTeacher]
) -> list[WeightedTeacher]:
    weights = config.teachers
    own = [
        WeightedTeacher(LabelTeacher(), weights.labels),
        WeightedTeacher(lexical_teacher(), weights.lexical),
        WeightedTeacher(dense_teacher(), weights.dense),
    ]
    return own + [WeightedTeacher(teacher, weights.further) for teacher in further]
