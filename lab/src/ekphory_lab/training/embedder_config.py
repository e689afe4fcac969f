"""The configurations of `ekphory train embedder`, which `embedder_configurations.toml` holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ekphory_lab.training.run_files import RunConfig, read_configurations


@dataclass(frozen=True, slots=True, kw_only=True)
class LossWeights:
    """How the loss is put together.

    Attributes:
        temperature: What a cosine is divided by before the softmax.
        teacher: Weight of following the teacher inside a group.
        teacher_temperature: What the teacher's score, in deviations, is divided by.
        teacher_bonus: What a passage that answers gains on the teacher's logit.
        anchor: Weight of staying near the base model's vectors, one minus the mean cosine.
    """

    temperature: float = 0.05
    teacher: float = 0.5
    teacher_temperature: float = 0.5
    teacher_bonus: float = 2.0
    anchor: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPart:
    """What generated memories teach beside the questions.

    Attributes:
        samples_per_step: Generated samples of a step; 0 leaves age, type and heads untrained.
        weight: Of their loss, beside that of the questions.
        aged_groups: Share of the question groups whose passages get an age and a type drawn at
            random: a question that names no time has to rank them as it would without.
        learning_rate: Of age, type and heads, which begin with nothing.
    """

    samples_per_step: int = 0
    weight: float = 1.0
    aged_groups: float = 0.5
    learning_rate: float = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPart:
    """Written passages, of which only the anchor is taken.

    Attributes:
        passages_per_step: How many a step has.
        weight: Of one minus the mean cosine with the base model's vectors.
        mix: Share of each source; all of them are sources of the configuration's mix, too.
    """

    passages_per_step: int = 0
    weight: float = 0.0
    mix: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderConfig(RunConfig):
    """Everything that decides a training run, besides data and base weights.

    Attributes:
        groups_per_step: How many groups compete in one step.
        steps: Number of steps.
        frozen_layers: How many of the first layers stay as they are; word vectors always do.
        max_tokens: Where a text is cut in training.
        chunk_texts: How many texts of similar length are encoded together.
        cached_gradients: Above how many texts a step is encoded twice, to save memory.
        long_messages: Share of the groups in which a speaker's turns are put together.
        memories: What generated memories teach beside the questions.
        written: Written passages that hold what is known of documents.
        loss: How the loss is put together.
        dimension: How many numbers the base's vectors have; None for any.
    """

    groups_per_step: int = 3
    steps: int = 600
    frozen_layers: int = 0
    max_tokens: int = 128
    chunk_texts: int = 64
    cached_gradients: int = 2048
    long_messages: float = 0.0
    memories: MemoryPart = MemoryPart()
    written: WrittenPart = WrittenPart()
    loss: LossWeights = LossWeights()
    dimension: int | None = None

    def with_samples_alone(self) -> EmbedderConfig:
        """Return the configuration without questions and written passages."""
        return replace(self, mix={}, groups_per_step=0, written=WrittenPart())


CONFIGS = read_configurations(
    Path(__file__).with_name("embedder_configurations.toml"), EmbedderConfig
)
