"""The configurations of `ekphory train embedder`, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ekphory_lab.training.run_files import RunConfig


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


MIX: Mapping[str, float] = {
    "synthetic_persona_chat": 0.45,
    "sgd": 0.2,
    "squad": 0.15,
    "crd3": 0.05,
    "qmsum": 0.04,
    "nq_gold": 0.04,
    "policyqa": 0.01,
    "timeqa": 0.01,
}

# What people ask weeks later stands in the written conversations alone; rules made the rest.
CONVERSATIONS_MIX: Mapping[str, float] = {
    "conversations": 0.5,
    **{name: share / 2 for name, share in MIX.items()},
}

WRITTEN_MIX: Mapping[str, float] = {
    "squad": 0.4,
    "nq_gold": 0.2,
    "timeqa": 0.2,
    "policyqa": 0.1,
    "qmsum": 0.1,
}

# Documents and what is searched in them, in the place of a part of what rules made.
DOCUMENTS_MIX: Mapping[str, float] = {
    "conversations": 0.5,
    "documents": 0.2,
    **{name: 0.3 * share for name, share in MIX.items()},
}

WRITTEN_AND_DOCUMENTS_MIX: Mapping[str, float] = {
    "documents": 0.5,
    **{name: share / 2 for name, share in WRITTEN_MIX.items()},
}

_SETTLED = EmbedderConfig(
    name="settled",
    base="an embedder that `refined` trained; whole written passages hold what it knew of them",
    mix=MIX,
    groups_per_step=2,
    steps=1000,
    learning_rate=5e-5,
    frozen_layers=1,
    max_tokens=192,
    chunk_texts=32,
    long_messages=0.3,
    memories=MemoryPart(samples_per_step=44),
    written=WrittenPart(passages_per_step=16, weight=4.0, mix=WRITTEN_MIX),
    loss=LossWeights(anchor=0.5),
    seed=21,
)

_DOCUMENTED = replace(
    _SETTLED,
    name="documented",
    base="a part of what `anchored` gave; searches in written documents are learned, too",
    mix=DOCUMENTS_MIX,
    steps=400,
    memories=MemoryPart(samples_per_step=48),
    written=WrittenPart(passages_per_step=16, weight=6.0, mix=WRITTEN_AND_DOCUMENTS_MIX),
    seed=24,
)

CONFIGS: Mapping[str, EmbedderConfig] = {
    "small": EmbedderConfig(
        name="small",
        base="all-MiniLM-L6-v2, 384 numbers",
        mix=MIX,
        steps=300,
        learning_rate=8e-5,
        frozen_layers=2,
        max_tokens=192,
        long_messages=0.25,
        memories=MemoryPart(samples_per_step=28),
    ),
    "refined": EmbedderConfig(
        name="refined",
        base="an embedder that `small` trained; what it knows of real text is held by the anchor",
        mix=MIX,
        groups_per_step=1,
        steps=900,
        learning_rate=5e-5,
        frozen_layers=1,
        max_tokens=192,
        long_messages=0.25,
        memories=MemoryPart(samples_per_step=48),
        loss=LossWeights(anchor=1.0),
    ),
    "settled": _SETTLED,
    "conversing": replace(
        _SETTLED,
        name="conversing",
        base="an embedder that `settled` trained; half of the groups are written conversations",
        mix=CONVERSATIONS_MIX,
        seed=22,
    ),
    "anchored": replace(
        _SETTLED,
        name="anchored",
        base="an embedder that `conversing` trained; what it knew of documents comes back",
        mix=CONVERSATIONS_MIX,
        groups_per_step=1,
        steps=260,
        learning_rate=3e-5,
        memories=MemoryPart(samples_per_step=48),
        written=WrittenPart(passages_per_step=40, weight=12.0, mix=WRITTEN_MIX),
        seed=23,
    ),
    "documented": _DOCUMENTED,
    "remembering": replace(
        _DOCUMENTED,
        name="remembering",
        base="an embedder that `documented` trained; mostly generated memories",
        groups_per_step=1,
        steps=300,
        learning_rate=5e-5,
        memories=MemoryPart(samples_per_step=72),
        seed=26,
    ),
    "base": EmbedderConfig(
        name="base",
        base="a model of 768 numbers, such as ModernBERT-base after contrastive training",
        mix=MIX,
        groups_per_step=16,
        steps=4000,
        learning_rate=2e-5,
        max_tokens=256,
        chunk_texts=128,
        cached_gradients=256,
        memories=MemoryPart(samples_per_step=64),
    ),
}
