"""Makes the examples of a run once, with soft labels, and writes them beside the run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from ekphory.errors import InvalidInput
from ekphory_lab.evaluation.runner import Progress
from ekphory_lab.training.question_groups import BaseModel
from ekphory_lab.training.reranker.config import RerankerConfig
from ekphory_lab.training.reranker.examples import (
    HARD_CASES,
    Part,
    RerankExample,
    read_examples,
    rows_of,
    write_examples,
)
from ekphory_lab.training.reranker.sources import (
    HARD_CASES_SOURCE,
    MEMORIES_SOURCE,
    CandidateCounts,
    group_examples,
    hard_case_examples,
    memory_examples,
)
from ekphory_lab.training.reranker.teachers import (
    LabelledExamples,
    LabelTeacher,
    PreferenceTeacher,
    WeightedTeacher,
    first_stage_teacher,
    with_soft_labels,
)
from ekphory_lab.training.sources import SOURCES, draw_by_share, repeat_epochs
from ekphory_lab.training.texts import Row, with_long_messages

# Examples of all sources, mixed by share: those that are trained on, and those held back.

_SHUFFLED = 100
"""Examples among which the next is drawn, so that a step sees many conversations."""
_LONG_MESSAGES_SHARE = 0.25
_GENERATED: Mapping[str, Callable[..., Iterator[RerankExample]]] = {
    MEMORIES_SOURCE: memory_examples,
    HARD_CASES_SOURCE: hard_case_examples,
}
KNOWN_SOURCES = (*SOURCES, *_GENERATED)


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
        """Return what examples depend on besides the configuration: hashes by file, and models."""
        sources = [SOURCES[name] for name in config.mix if name in SOURCES]
        hashes = {source.name: source.sha256(self.folder) for source in sources}
        teachers = ", ".join(teacher.name for teacher in self.further)
        return {**hashes, "first stage": self.base_name, "teachers": teachers}


def mixed_examples(
    config: RerankerConfig, making: ExampleMaking, *, part: Part
) -> Iterator[RerankExample]:
    """Return examples without end; the same configuration and data give the same ones.

    Args:
        config: How often each source is drawn, and how many candidates compete.
        making: The training files, and the dense half of the first stage that finds candidates.
        part: Which rows of the files; generated sources differ by seed instead.

    Raises:
        DatasetError: A file is missing or malformed.
        InvalidInput: A source is not known.
        MissingExtra: bm25s is not installed.
    """
    unknown = [name for name in config.mix if name not in KNOWN_SOURCES]
    if unknown:
        known = f"Known are {', '.join(KNOWN_SOURCES)}."
        raise InvalidInput("mix", unknown, "no such source", known)
    base, seed = making.base, config.seed
    counts = config.counts if part == "trained" else config.held_back.counts
    streams: dict[str, Iterator[RerankExample]] = {}
    for name in (name for name, share in config.mix.items() if share > 0):
        own = f"{seed}:{part}:{name}"
        if name in _GENERATED:
            stream = _GENERATED[name](base, seed=2 * seed + (part == "held_back"))
        else:
            rows = rows_of(part, SOURCES[name].rows(making.folder))
            stream = _file_examples(name, rows, base, own, counts)
        streams[name] = _shuffled(stream, Random(own))  # noqa: S311  no secret
    return draw_by_share(streams, config.mix, Random(f"{seed}:{part}"))  # noqa: S311  no secret


def _file_examples(
    name: str, rows: Sequence[Row], base: BaseModel, seed: str, counts: CandidateCounts
) -> Iterator[RerankExample]:
    random = Random(f"{seed}:candidates")  # noqa: S311  no secret
    for group in repeat_epochs(name, partial(SOURCES[name].groups, rows), seed):
        long = random.random() < _LONG_MESSAGES_SHARE and not group.dated
        told = with_long_messages(group, random) if long else group
        yield from group_examples(told, base, random, counts=counts)


def _shuffled(stream: Iterator[RerankExample], random: Random) -> Iterator[RerankExample]:
    """Return each example a random time after it was made; the stream has no end."""
    waiting = list(islice(stream, _SHUFFLED))
    for example in stream:
        place = random.randrange(len(waiting))
        yield waiting[place]
        waiting[place] = example


# Makes the examples of a run once, with soft labels, and writes them beside it.

TRAINED_FILE = "examples.jsonl.gz"
HELD_BACK_FILE = "held_back.jsonl.gz"
REPORT_FILE = "examples.json"
EXAMPLE_FILES = (HELD_BACK_FILE, REPORT_FILE, TRAINED_FILE)


def prepare_examples(
    config: RerankerConfig, making: ExampleMaking, target: Path, *, progress: Progress
) -> tuple[Sequence[RerankExample], Sequence[RerankExample]]:
    """Read the run's examples, or make and write them where it has none.

    Writes `examples.jsonl.gz`, `held_back.jsonl.gz` and `examples.json`, which counts sources, hard
    cases and levels and says how far teachers agree.

    Returns:
        Those that are trained on, in the order in which they are taken, and those held back.

    Raises:
        DatasetError: A training file is missing or malformed.
        ServiceError: A remote teacher failed after all repeats.
    """
    if not (target / TRAINED_FILE).is_file():
        _make(config, making, target, progress)
    return read_examples(target / TRAINED_FILE), read_examples(target / HELD_BACK_FILE)


def _make(config: RerankerConfig, making: ExampleMaking, target: Path, progress: Progress) -> None:
    held_back = mixed_examples(config, making, part="held_back")
    write_examples(list(islice(held_back, config.held_back.questions)), target / HELD_BACK_FILE)
    labelled = labelled_examples(config, making, progress=progress)
    report = json.dumps(example_report(labelled), indent=2)
    (target / REPORT_FILE).write_text(report + "\n", encoding="utf-8")
    # Last: where this file stands, the others do as well.
    write_examples(labelled.examples, target / TRAINED_FILE)


def labelled_examples(
    config: RerankerConfig, making: ExampleMaking, *, progress: Progress
) -> LabelledExamples:
    """Make the examples that are trained on, and ask all teachers about them.

    Raises:
        DatasetError: A training file is missing or malformed.
        ServiceError: A remote teacher failed after all repeats.
    """
    stream = mixed_examples(config, making, part="trained")
    drawn = []
    for example in islice(stream, config.questions):
        drawn.append(example)
        progress("making examples", len(drawn), config.questions)
    return with_soft_labels(
        drawn,
        _teachers(config, making.further),
        aggregation=config.teachers.aggregation,
        progress=lambda done, total: progress("asking teachers", done, total),
    )


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
    own: list[WeightedTeacher] = [
        (LabelTeacher(), weights.labels),
        (first_stage_teacher("lexical"), weights.lexical),
        (first_stage_teacher("dense"), weights.dense),
    ]
    return own + [(teacher, weights.further) for teacher in further]
