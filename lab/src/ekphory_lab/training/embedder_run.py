"""A training run of the embedder: one loop, resumable, with a manifest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, repeat
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from ekphory.errors import InvalidInput
from ekphory.models.late_bound import Codes, age_buckets, type_codes
from ekphory.models.onnx_export import Prompts
from ekphory_lab.evaluation.runner import Progress
from ekphory_lab.training import run_files, sources
from ekphory_lab.training.embedder_config import EmbedderConfig, LossWeights
from ekphory_lab.training.encoder import (
    AgentEncoder,
    Optimizer,
    Tensor,
    anchor_loss,
    cached_gradients,
    gradient_scale,
    load_agent_encoder,
    mixed_precision,
    new_optimizer,
    plain_gradients,
    ranking_loss,
    save_agent_encoder,
    teacher_loss,
    training_device,
)
from ekphory_lab.training.memories import MemorySample, generate, read_samples
from ekphory_lab.training.question_groups import BaseModel, QuestionGroup, TeacherView, teacher_view

# The loss of generated memories: ranking by content, age and type, and the two heads.
#
# Needs torch.


# Weights of finding the answer among the candidates, of the type head's cross-entropy, of the
# importance head's squared error, and of the squared length of the vectors of age and type, so that
# they say nothing where nothing is to be said; and what a cosine is divided by before the softmax.
_RANKING, _KINDS, _IMPORTANCE, _LENGTHS = 1.0, 1.0, 4.0, 0.01
_TEMPERATURE = 0.05
_MEMORY_PARTS = ("age", "kind", "importance", "memory_type")
_TENSORS = ("queries", "candidates", "present", "ages", "types", "importance")


@dataclass(frozen=True, slots=True)
class SampleLayout:
    """Samples as tensors; their texts are encoded elsewhere, each once.

    Attributes:
        texts: All distinct texts, those of queries first.
        asked: How many of the texts are those of queries.
        queries: Row of each sample's query in `texts`, shape (samples,).
        candidates: Rows of the candidates, the answer first, shape (samples, candidates).
        present: False where a sample has fewer candidates; the answer stands there again.
        ages: Age bucket of each candidate.
        types: Type of each candidate.
        importance: Importance of each candidate, in [0, 1].
    """

    texts: tuple[str, ...]
    asked: int
    queries: Tensor
    candidates: Tensor
    present: Tensor
    ages: Tensor
    types: Tensor
    importance: Tensor

    def prompted(self, prompts: Prompts) -> list[str]:
        """Return the texts, each with what stands before it when the model is used."""
        queries, memories = self.texts[: self.asked], self.texts[self.asked :]
        return [prompts.query + text for text in queries] + [
            prompts.passage + text for text in memories
        ]

    def on(self, device: Any) -> SampleLayout:  # noqa: ANN401  torch's
        """Return the same on a device."""
        moved = {name: getattr(self, name).to(device) for name in _TENSORS}
        return replace(self, **moved)


def lay_out(samples: Sequence[MemorySample]) -> SampleLayout:
    """Return the samples as tensors."""
    candidates = [sample.memories for sample in samples]
    texts = dict.fromkeys(sample.query for sample in samples)
    asked = len(texts)
    texts |= dict.fromkeys(memory.text for memory in chain.from_iterable(candidates))
    rows = {text: row for row, text in enumerate(texts)}
    width = max(map(len, candidates))
    padded = [row + row[:1] * (width - len(row)) for row in candidates]
    return SampleLayout(
        tuple(texts),
        asked,
        torch.tensor([rows[sample.query] for sample in samples]),
        torch.tensor([[rows[memory.text] for memory in row] for row in padded]),
        torch.tensor([[place < len(row) for place in range(width)] for row in candidates]),
        _codes([age_buckets([memory.days_ago for memory in row]) for row in padded]),
        _codes([type_codes([memory.type for memory in row]) for row in padded]),
        torch.tensor([[memory.importance for memory in row] for row in padded]),
    )


def memory_loss(encoder: AgentEncoder, pooled: Tensor, layout: SampleLayout) -> Tensor:
    """Take the loss of samples whose texts are encoded.

    Args:
        encoder: Its projection, age, type and heads are used.
        pooled: The encoder's mean over each text of the layout, shape (texts, dimension).
        layout: The samples.
    """
    logits = candidate_scores(encoder, pooled, layout) / _TEMPERATURE
    # The answer is the first candidate.
    first = torch.zeros(len(logits), dtype=torch.long, device=logits.device)
    ranking = functional.cross_entropy(logits, first)
    read = pooled[layout.candidates[layout.present]]
    kinds = functional.cross_entropy(encoder.memory_type_logits(read), layout.types[layout.present])
    importance = functional.mse_loss(encoder.importance(read), layout.importance[layout.present])
    lengths = sum(encoder.parts[name].weight.square().sum(dim=1).mean() for name in ("age", "kind"))
    heads = _KINDS * kinds + _IMPORTANCE * importance
    return _RANKING * ranking + heads + _LENGTHS * lengths


def candidate_scores(encoder: AgentEncoder, pooled: Tensor, layout: SampleLayout) -> Tensor:
    """Cosine of each query with its candidates, minus infinity where there is none."""
    queries = functional.normalize(encoder.project(pooled[layout.queries]), dim=1)
    memories = encoder.memory_vectors(pooled[layout.candidates], layout.ages, layout.types)
    scores = torch.einsum("qd,qcd->qc", queries, memories)
    return scores.masked_fill(~layout.present, float("-inf"))


def _codes(codes: Sequence[Codes]) -> Tensor:
    return torch.from_numpy(np.stack(codes))


# One step of the embedder's training: encode a few groups together and take their loss.
#
# Needs torch.


@dataclass(frozen=True, slots=True)
class StepBatch:
    """The groups of one step with what the teacher says of them, and generated memories.

    Attributes:
        groups: They compete with each other.
        views: The teacher's view of each.
        given: Age and type of each group's passages; None where they have neither.
        memories: Generated samples; None for none.
        written: Passages whose vectors are to stay; None for none.
    """

    groups: Sequence[QuestionGroup]
    views: Sequence[TeacherView]
    given: Sequence[sources.DrawnAges | None]
    memories: SampleLayout | None = None
    written: sources.WrittenPassages | None = None

    @property
    def passages(self) -> list[str]:
        """All passages of all groups."""
        return [text for group in self.groups for text in group.passages]

    @property
    def questions(self) -> list[str]:
        """All questions of all groups."""
        return [each.text for group in self.groups for each in group.questions]

    def prompted(self, prompts: Prompts) -> list[str]:
        """Return passages, questions, memories and written passages, each with its prompt."""
        generated = () if self.memories is None else self.memories.prompted(prompts)
        written = () if self.written is None else self.written.texts
        return [
            *(prompts.passage + text for text in self.passages),
            *(prompts.query + text for text in self.questions),
            *generated,
            *(prompts.passage + text for text in written),
        ]


def accumulate_gradients(
    encoder: AgentEncoder, batch: StepBatch, config: EmbedderConfig, weights: Sequence[Tensor]
) -> float:
    """Add the gradients of one step to all weights; returns the loss.

    Args:
        encoder: What is trained.
        batch: What it is trained on.
        config: The run's configuration.
        weights: The trained weights of the transformer; those after its mean get theirs directly.
    """
    texts = batch.prompted(encoder.prompts)
    lengths = [len(text) for text in texts]
    order = sorted(range(len(texts)), key=lengths.__getitem__)
    chunks = [
        encoder.tokens(
            [texts[place] for place in order[start : start + config.chunk_texts]],
            max_tokens=config.max_tokens,
        )
        for start in range(0, len(order), config.chunk_texts)
    ]
    places = torch.empty(len(order), dtype=torch.long)
    places[torch.tensor(order)] = torch.arange(len(order))
    places = places.to(encoder.device)

    def encode(tokens: Any) -> Tensor:  # noqa: ANN401  a tokenizer's batch
        with mixed_precision(encoder.device.type, config.precision):
            return encoder.pooled(tokens)

    def loss_of(pooled: Tensor) -> Tensor:
        return step_loss(encoder, pooled[places], batch, config)

    accumulate = cached_gradients if len(texts) > config.cached_gradients else plain_gradients
    return accumulate(encode, chunks, loss_of, weights, scale=gradient_scale(config.precision))


def step_loss(
    encoder: AgentEncoder, pooled: Tensor, batch: StepBatch, config: EmbedderConfig
) -> Tensor:
    """Put the losses of the questions, the generated memories and the written passages together.

    Args:
        encoder: What comes after the mean is used.
        pooled: The encoder's mean over each text of the batch, in the order of `batch.prompted`.
        batch: What the step is trained on.
        config: The run's configuration.
    """
    amounts = [len(batch.passages), len(batch.questions)]
    amounts += [0 if part is None else len(part.texts) for part in (batch.memories, batch.written)]
    read, asked, generated, written = pooled.split(amounts)
    loss = pooled.new_zeros(())
    if batch.groups:
        parts = read.split([len(group.passages) for group in batch.groups])
        given = zip(parts, batch.given, strict=True)
        passages = torch.cat([_vectors(encoder, part, traits) for part, traits in given])
        questions = functional.normalize(encoder.project(asked), dim=1)
        loss = question_loss(torch.cat([passages, questions]), batch, config.loss)
    if batch.memories is not None:
        memories = batch.memories.on(pooled.device)
        learned = memory_loss(encoder, generated, memories)
        loss = loss + config.memories.weight * learned
    if batch.written is not None:
        kept = _vectors(encoder, written, batch.written.given)
        base = torch.from_numpy(batch.written.base).to(kept.device)
        loss = loss + config.written.weight * anchor_loss(kept, base)
    return loss


def _vectors(encoder: AgentEncoder, pooled: Tensor, given: sources.DrawnAges | None) -> Tensor:
    if given is None:
        return functional.normalize(encoder.project(pooled), dim=1)
    ages, types = torch.from_numpy(given.ages), torch.from_numpy(given.types)
    return encoder.memory_vectors(pooled, ages.to(pooled.device), types.to(pooled.device))


def question_loss(vectors: Tensor, batch: StepBatch, weights: LossWeights) -> Tensor:
    """Ranking over all groups, plus following the teacher inside each, plus the anchor.

    Args:
        vectors: Of all passages, then all questions, of length 1.
        batch: The groups.
        weights: How the parts are put together.
    """
    amount = len(batch.passages)
    scores = vectors[amount:] @ vectors[:amount].T
    positives = _positives(batch, scores.shape).to(scores.device)
    loss = ranking_loss(scores, positives, temperature=weights.temperature)
    if weights.teacher:
        loss = loss + weights.teacher * _teacher_part(scores, positives, batch, weights)
    if weights.anchor:
        base = [view.passages for view in batch.views] + [view.questions for view in batch.views]
        kept = torch.from_numpy(np.concatenate(base)).to(vectors.device)
        loss = loss + weights.anchor * anchor_loss(vectors, kept)
    return loss


def _positives(batch: StepBatch, shape: tuple[int, int]) -> Tensor:
    positives = torch.zeros(shape, dtype=torch.bool)
    row = first = 0
    for group in batch.groups:
        for question in group.questions:
            positives[row, [first + place for place in question.positives]] = True
            row += 1
        first += len(group.passages)
    return positives


def _teacher_part(
    scores: Tensor, positives: Tensor, batch: StepBatch, weights: LossWeights
) -> Tensor:
    parts, row, first = [], 0, 0
    for group, view in zip(batch.groups, batch.views, strict=True):
        inside = slice(row, row + len(group.questions)), slice(first, first + len(group.passages))
        teacher = torch.from_numpy(view.scores).to(scores.device) / weights.teacher_temperature
        teacher = teacher + weights.teacher_bonus * positives[inside]
        part = teacher_loss(scores[inside], teacher, temperature=weights.temperature)
        parts.append(part * len(group.questions))
        row, first = row + len(group.questions), first + len(group.passages)
    return torch.stack(parts).sum() / row


# What each step of the embedder's run is trained on. Needs torch.


def step_batches(
    config: EmbedderConfig, data: sources.TrainingData, teacher: BaseModel, *, first: int
) -> Iterator[StepBatch]:
    """Return the batch of each step from `first` on; none depends on the steps before it."""
    size = config.groups_per_step
    aged = config.memories.aged_groups if config.memories.samples_per_step else None
    groups = sources.mixed_groups(
        data.epochs, config.mix, seed=config.seed, long_messages=config.long_messages
    )
    groups = islice(groups, first * size, None)
    memories = _memories(config, data.samples, first=first)
    written = sources.written_passages(config, data.epochs, teacher, first=first)
    for step in range(first, config.steps):
        chosen = list(islice(groups, size))
        random = Random(f"{config.seed}:ages:{step}")  # noqa: S311  no secret
        yield StepBatch(
            chosen,
            [teacher_view(group, teacher) for group in chosen],
            [
                sources.drawn_ages(len(group.passages), random)
                if aged is not None and random.random() < aged
                else None
                for group in chosen
            ],
            next(memories),
            next(written),
        )


def _memories(
    config: EmbedderConfig, file: Path | None, *, first: int
) -> Iterator[SampleLayout | None]:
    size = config.memories.samples_per_step
    if file is None:
        samples = generate("train", seed=config.seed, count=size * config.steps)
    else:
        samples = chain.from_iterable(map(read_samples, repeat(file)))
    samples = islice(samples, size * first, None)
    for _ in range(first, config.steps):
        yield lay_out(list(islice(samples, size))) if size else None


# A training run of the embedder: one loop, resumable, with a manifest. Needs torch.


def train_embedder(
    config: EmbedderConfig,
    data: sources.TrainingData,
    teacher: BaseModel,
    *,
    places: run_files.RunPlaces,
    progress: Progress,
) -> Path:
    """Train, on the GPU where there is one, or go on where a run in the same target stopped.

    Resuming on a processor gives the same weights as a run that was never stopped.

    Args:
        config: What is trained, and how.
        data: The sources.
        teacher: The dense half of the teacher and the anchor; the base weights, usually.
        places: Where to read and write.
        progress: Is told the loss, the steps done and the steps in all.

    Returns:
        The trained model's directory.

    Raises:
        InvalidInput: The base is not of the configuration's dimension, or the target holds a run
            of another configuration or other data.
        ModelError: The base weights cannot be loaded.
    """
    torch.manual_seed(config.seed)
    manifest = run_files.run_manifest(config, base=places.base, hashes=data.hashes)
    encoder = load_agent_encoder(places.base)
    if config.dimension not in (None, encoder.dimension):
        problem = f"has vectors of {encoder.dimension} numbers, and {config.name!r} is for"
        remedy = "Give such a base, or another --config"
        raise InvalidInput("base", str(places.base), f"{problem} {config.dimension}", remedy)
    places.target.mkdir(parents=True, exist_ok=True)
    run_files.claim_folder(places.target, manifest)
    encoder.parts.to(training_device())
    optimizer = _optimizer(config, encoder)
    checkpoint = optimizer.restore_checkpoint(places.target)
    first = 0
    if checkpoint is not None:
        encoder.parts.load_state_dict(checkpoint["parts"])
        first = int(checkpoint["done"])
    transformer = [each for each in encoder.parts["encoder"].parameters() if each.requires_grad]
    batches = step_batches(config, data, teacher, first=first)
    saved = monotonic()
    for step in range(first, config.steps):
        batch = next(batches)
        loss = accumulate_gradients(encoder, batch, config, transformer)
        optimizer.step()
        run_files.note_loss(
            places.target, step, loss, read={"texts": len(batch.prompted(encoder.prompts))}
        )
        progress(f"loss {loss:.3f}", step + 1, config.steps)
        if monotonic() - saved > config.checkpoint_seconds:
            _checkpoint(encoder, optimizer, places.target, done=step + 1)
            saved = monotonic()
    _checkpoint(encoder, optimizer, places.target, done=config.steps)
    return places.target / run_files.MODEL_FOLDER


def _optimizer(config: EmbedderConfig, encoder: AgentEncoder) -> Optimizer:
    _freeze(encoder, config.frozen_layers)
    encoder.parts.train()
    named = {
        name: weight
        for part in ("encoder", "projection")
        for name, weight in encoder.parts[part].named_parameters(prefix=part)
        if weight.requires_grad
    }
    rate = config.memories.learning_rate
    # Without generated memories they stay as they are.
    parts = _MEMORY_PARTS if config.memories.samples_per_step else ()
    weights = [weight for part in parts for weight in encoder.parts[part].parameters()]
    apart = {"params": weights, "weight_decay": 0.0, "lr": rate}
    return new_optimizer(config, config.steps, named, apart)


def _freeze(encoder: AgentEncoder, layers: int) -> None:
    transformer = encoder.parts["encoder"]
    frozen = [transformer.get_input_embeddings()]
    if layers:
        # Where BERT has them, or where ModernBERT has them.
        inner = getattr(transformer, "encoder", None)
        known = transformer.layers if inner is None else inner.layer
        frozen = [transformer.embeddings, *known[:layers]]
    for module in frozen:
        module.requires_grad_(False)
    if getattr(transformer, "pooler", None) is not None:
        transformer.pooler.requires_grad_(False)


def _checkpoint(encoder: AgentEncoder, optimizer: Optimizer, target: Path, *, done: int) -> None:
    optimizer.write_checkpoint(target, done=done, parts=encoder.parts.state_dict())
    save_agent_encoder(encoder, target / run_files.MODEL_FOLDER)
