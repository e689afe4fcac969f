"""The configurations of `ekphory train reranker`, as data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from ekphory_lab.training.reranker.sources import CandidateCounts
from ekphory_lab.training.reranker.teachers import Aggregation
from ekphory_lab.training.run_files import RunConfig, read_configurations

Architecture = Literal["cross_encoder", "yes_no"]
Stages = Literal["joint", "sequence"]

FEW_CANDIDATES = CandidateCounts()
MANY_CANDIDATES = CandidateCounts(hard=14, random=4)


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankLossWeights:
    """How the loss is put together.

    Attributes:
        contrast: Weight of InfoNCE: each answer against what is wrong beside it.
        temperature: What logits are divided by in it.
        soft: Weight of the binary cross-entropy with the soft labels, which ties the logit itself
            to relevance and not only its order.
        following: Weight of following the whole base model's distribution over the candidates;
            for a model made of some layers of its base.
    """

    contrast: float = 1.0
    temperature: float = 1.0
    soft: float = 0.5
    following: float = 0.0

    def times(self, share: float) -> RerankLossWeights:
        """Return the same loss, which counts as much as this share of it."""
        return replace(
            self,
            contrast=share * self.contrast,
            soft=share * self.soft,
            following=share * self.following,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherWeights:
    """How much each teacher's word counts in the first stage.

    Attributes:
        labels: The gold labels.
        lexical: BM25.
        dense: The embedder that found the candidates.
        further: Each reranker or language model given on the command line.
        aggregation: How preferences become abilities.
    """

    labels: float = 12.0
    lexical: float = 1.0
    dense: float = 1.0
    further: float = 2.0
    aggregation: Aggregation = "bradley_terry"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBack:
    """What is held back for measuring and calibrating.

    Attributes:
        questions: How many.
        measured: How many of them are measured during training.
        every_steps: How often.
        counts: How many candidates compete, nearer to a search than in training.
    """

    questions: int = 480
    measured: int = 160
    every_steps: int = 100
    counts: CandidateCounts = MANY_CANDIDATES


@dataclass(frozen=True, slots=True, kw_only=True)
class LoraShape:
    """Low-rank adapters. Source: Hu et al., "LoRA", ICLR 2022.

    Attributes:
        rank: Of the two matrices.
        scale: LoRA's alpha; the product counts scale / rank times.
        targets: Names of the projections that are adapted.
        most_tokens: Where a prompt is cut in training.
    """

    rank: int = 32
    scale: int = 64
    targets: tuple[str, ...] = ("q_proj", "k_proj", "v_proj", "o_proj")
    most_tokens: int = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankerConfig(RunConfig):
    """Everything that decides a training run, besides data, base weights and further teachers.

    Attributes:
        architecture: A cross-encoder trained whole, or yes/no logits of a language model by LoRA.
        counts: How many candidates compete for a question.
        questions: How many questions are made.
        epochs: How often each is seen.
        questions_per_step: How many one step takes.
        chunk_pairs: How many pairs of similar length are encoded together.
        layers: Which layers of the base are kept, from 0; empty for all.
        exit_layer: After so many layers of the model a head of its own is trained beside the last
            one, which makes a smaller model of them; 0 for none.
        exit_share: How much its loss counts beside that of the whole model.
        head_factor: By how much more the head learns, which begins with nothing.
        averaged: The finished weights are the mean over this last share of the steps.
        loss: How the loss is put together.
        stages: `joint` takes all of the loss at every step; `sequence` begins with the soft labels
            and goes on with InfoNCE, as MemReranker does.
        first_stage: Of `sequence`, the share of the steps that belongs to the soft labels.
        teachers: How much each teacher's word counts.
        held_back: What is held back.
        lora: Adapters of the architecture `yes_no`.
    """

    architecture: Architecture = "cross_encoder"
    counts: CandidateCounts = FEW_CANDIDATES
    questions: int = 18_000
    epochs: int = 1
    questions_per_step: int = 16
    chunk_pairs: int = 24
    layers: tuple[int, ...] = ()
    exit_layer: int = 0
    exit_share: float = 0.5
    head_factor: float = 10.0
    averaged: float = 0.2
    loss: RerankLossWeights = RerankLossWeights()
    stages: Stages = "joint"
    first_stage: float = 0.5
    teachers: TeacherWeights = TeacherWeights()
    held_back: HeldBack = HeldBack()
    lora: LoraShape = LoraShape()

    @property
    def steps(self) -> int:
        """Number of steps; what does not fill the last one is left out."""
        return max(1, self.questions // self.questions_per_step) * self.epochs

    @property
    def second_stage(self) -> int:
        """The step from which on the second stage is taken; 0 where the stages are joint."""
        return round(self.first_stage * self.steps) if self.stages == "sequence" else 0

    def loss_at(self, step: int) -> RerankLossWeights:
        """Return how the loss of a step is put together."""
        if self.stages == "joint":
            return self.loss
        if step < self.second_stage:
            return replace(self.loss, contrast=0.0, soft=1.0)
        return replace(self.loss, soft=0.0)


CONFIGS = read_configurations(Path(__file__).with_name("configurations.toml"), RerankerConfig)
