"""What each step of the embedder's run is trained on. Needs torch."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from random import Random

from ekphory.training.drawn_ages import DrawnAges, drawn_ages
from ekphory.training.embedder_config import EmbedderConfig
from ekphory.training.group_stream import TrainingData, mixed_groups
from ekphory.training.memories.generate import generate
from ekphory.training.memory_loss import SampleLayout, lay_out
from ekphory.training.question_groups import QuestionGroup
from ekphory.training.teacher import BaseModel, teacher_view
from ekphory.training.training_step import StepBatch
from ekphory.training.written_passages import written_passages


def step_batches(
    config: EmbedderConfig, data: TrainingData, teacher: BaseModel, *, first: int
) -> Iterator[StepBatch]:
    """Give the batch of each step from `first` on; a step's batch depends on nothing before it."""
    size = config.groups_per_step
    groups = mixed_groups(
        data.epochs, config.mix, seed=config.seed, long_messages=config.long_messages
    )
    groups = islice(groups, first * size, None)
    memories = _memories(config, first=first)
    written = written_passages(config, data.epochs, teacher, first=first)
    for step in range(first, config.steps):
        chosen = list(islice(groups, size))
        random = Random(f"{config.seed}:ages:{step}")  # noqa: S311  no secret
        yield StepBatch(
            chosen,
            [teacher_view(group, teacher) for group in chosen],
            [_given(group, config, random) for group in chosen],
            next(memories),
            next(written),
        )


def _given(group: QuestionGroup, config: EmbedderConfig, random: Random) -> DrawnAges | None:
    aged = config.memories.samples_per_step and random.random() < config.memories.aged_groups
    return drawn_ages(len(group.passages), random) if aged else None


def _memories(config: EmbedderConfig, *, first: int) -> Iterator[SampleLayout | None]:
    size = config.memories.samples_per_step
    samples = generate("train", seed=config.seed, count=size * config.steps)
    samples = islice(samples, size * first, None)
    for _ in range(first, config.steps):
        yield lay_out(list(islice(samples, size))) if size else None
