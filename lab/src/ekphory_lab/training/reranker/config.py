"""The configurations of `ekphory train reranker`, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ekphory_lab.training.reranker.sources import CandidateCounts
from ekphory_lab.training.reranker.teachers import Aggregation
from ekphory_lab.training.run_files import RunConfig

Architecture = Literal["cross_encoder", "yes_no"]

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
        head_factor: By how much more the head learns, which begins with nothing.
        averaged: The finished weights are the mean over this last share of the steps.
        loss: How the loss is put together.
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
    head_factor: float = 10.0
    averaged: float = 0.2
    loss: RerankLossWeights = RerankLossWeights()
    teachers: TeacherWeights = TeacherWeights()
    held_back: HeldBack = HeldBack()
    lora: LoraShape = LoraShape()

    @property
    def steps(self) -> int:
        """Number of steps; what does not fill the last one is left out."""
        return max(1, self.questions // self.questions_per_step) * self.epochs


MIX: Mapping[str, float] = {
    "synthetic_persona_chat": 0.36,
    "sgd": 0.1,
    "squad": 0.16,
    "memories": 0.08,
    "hard_cases": 0.05,
    "crd3": 0.06,
    "qmsum": 0.05,
    "nq_gold": 0.05,
    "timeqa": 0.04,
    "policyqa": 0.05,
}

REFINING_MIX: Mapping[str, float] = {
    "conversations": 0.56,
    "synthetic_persona_chat": 0.1,
    "sgd": 0.05,
    "squad": 0.09,
    "memories": 0.05,
    "hard_cases": 0.04,
    "crd3": 0.03,
    "qmsum": 0.02,
    "nq_gold": 0.02,
    "timeqa": 0.02,
    "policyqa": 0.02,
}

_FOLLOWING = RerankLossWeights(contrast=0.5, soft=0.25, following=1.0)

CONFIGS: Mapping[str, RerankerConfig] = {
    "small": RerankerConfig(
        name="small",
        base="a MiniLM of six layers: all-MiniLM-L6-v2, or the embedder trained here",
        mix=MIX,
    ),
    "tiny": RerankerConfig(
        name="tiny",
        base="the model that `small` gives, of whose layers three are kept",
        mix=MIX,
        questions=26_000,
        layers=(0, 2, 5),
        learning_rate=1.5e-4,
        head_factor=1.0,
        loss=_FOLLOWING,
    ),
    "refined": RerankerConfig(
        name="refined",
        base="a cross-encoder that `small` or `tiny` trained",
        mix=REFINING_MIX,
        questions=16_000,
        head_factor=1.0,
        seed=21,
    ),
    "following": RerankerConfig(
        name="following",
        base="a cross-encoder of few layers, such as `tiny` trained; it follows a larger one",
        mix=REFINING_MIX,
        questions=16_000,
        learning_rate=1e-4,
        head_factor=1.0,
        loss=_FOLLOWING,
        seed=22,
    ),
    "0.6b": RerankerConfig(
        name="0.6b",
        base="Qwen3-Reranker-0.6B",
        architecture="yes_no",
        mix=MIX,
        questions=40_000,
        counts=MANY_CANDIDATES,
        chunk_pairs=16,
        learning_rate=1e-4,
        loss=RerankLossWeights(soft=1.0),
    ),
    "4b": RerankerConfig(
        name="4b",
        base="Qwen3-Reranker-4B",
        architecture="yes_no",
        mix=MIX,
        questions=40_000,
        counts=MANY_CANDIDATES,
        chunk_pairs=8,
        learning_rate=5e-5,
        loss=RerankLossWeights(soft=1.0),
    ),
}
