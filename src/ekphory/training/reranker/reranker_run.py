"""A training run of a reranker: one loop, resumable, with a manifest. Needs torch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from random import Random
from time import monotonic

import torch

from ekphory.training.contrastive import Tensor, cached_gradients, plain_gradients
from ekphory.training.reranker.development import (
    Development,
    development,
    first_stage_scores,
)
from ekphory.training.reranker.examples import RerankExample
from ekphory.training.reranker.pair_batches import pair_batches, score_batches, targets_of
from ekphory.training.reranker.pair_model import PairBatch, PairModel, training_logits
from ekphory.training.reranker.preparation import (
    ExampleMaking,
    PreparedExamples,
    Progress,
    prepare_examples,
)
from ekphory.training.reranker.rerank_losses import rerank_loss
from ekphory.training.reranker.reranker_config import RerankerConfig
from ekphory.training.reranker.run_state import (
    RunState,
    new_state,
    restore_checkpoint,
    write_checkpoint,
)
from ekphory.training.run_files import (
    MODEL_FOLDER,
    append_line,
    claim_folder,
    note_loss,
)
from ekphory.training.run_manifest import run_manifest, weights_hash

DEVELOPMENT_FILE = "development.jsonl"
Report = Callable[[Development], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankRunPlaces:
    """Where a run reads and writes.

    Attributes:
        base: Weights to start from: a sentence-transformers directory, a cross-encoder's, or for
            `yes_no` a causal language model's.
        followed: Cross-encoder whose scores are followed; None for the base, where layers are
            left out of it.
        target: Gets the examples, `manifest.json`, `losses.jsonl`, `development.jsonl`,
            `checkpoint.pt` and the folder `model`.
    """

    base: Path
    target: Path
    followed: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Who is told how the run goes.

    Attributes:
        progress: Is told what is done, how much of it, and of how much.
        report: Is told each measurement on held-back questions; the first is the first stage's.
    """

    progress: Progress
    report: Report


def train_reranker(
    config: RerankerConfig, making: ExampleMaking, *, places: RerankRunPlaces, listener: Listener
) -> Path:
    """Train, or go on where a run in the same target stopped.

    Resuming gives the same weights as a run that was never stopped.

    Args:
        config: What is trained, and how.
        making: What examples are made with.
        places: Where to read and write.
        listener: Who is told how it goes.

    Returns:
        The trained model's directory.

    Raises:
        InvalidInput: The target holds a run of another configuration or other data, or there is no
            model to follow where the configuration follows one.
        MissingExtra: The architecture needs peft, which is not installed.
        ModelError: The base weights cannot be loaded.
    """
    torch.manual_seed(config.seed)
    target = places.target
    state = new_state(config, places.base, places.followed)
    hashes = dict(making.identity(config))
    if places.followed is not None:
        hashes["followed"] = weights_hash(places.followed)
    manifest = run_manifest(config, base=places.base, hashes=hashes)
    target.mkdir(parents=True, exist_ok=True)
    claim_folder(target, manifest)
    prepared = prepare_examples(config, making, target, progress=listener.progress)
    first = restore_checkpoint(state, target)
    measured = prepared.held_back[: config.held_back.measured]
    if not first:
        before = [first_stage_scores(example) for example in measured]
        _report(development(measured, before, step=-1), target, listener)
    saved = monotonic()
    for step, batch in enumerate(islice(_batches(config, prepared), first, None), start=first):
        if step % config.held_back.every_steps == 0:
            _measure(state.model, measured, target, listener, step=step)
        loss = _step(state, batch, config, step=step)
        pairs = sum(len(each.candidates) for each in batch)
        note_loss(target, step, loss, read={"pairs": pairs})
        listener.progress("training", step + 1, config.steps)
        if monotonic() - saved > config.checkpoint_seconds:
            write_checkpoint(state, target, done=step + 1)
            saved = monotonic()
    write_checkpoint(state, target, done=config.steps)
    state.mean.put_into(state.trained)
    _measure(state.model, measured, target, listener, step=config.steps)
    state.model.save(target / MODEL_FOLDER)
    return target / MODEL_FOLDER


def _batches(
    config: RerankerConfig, prepared: PreparedExamples
) -> Iterator[Sequence[RerankExample]]:
    size = config.questions_per_step
    for epoch in range(config.epochs):
        random = Random(f"{config.seed}:{epoch}")  # noqa: S311  no secret
        order = random.sample(prepared.trained, len(prepared.trained))
        for start in range(0, config.steps // config.epochs * size, size):
            yield order[start : start + size]


def _step(
    state: RunState, examples: Sequence[RerankExample], config: RerankerConfig, *, step: int
) -> float:
    loss = _gradients(state, examples, config)
    torch.nn.utils.clip_grad_norm_(state.trained, config.largest_gradient)
    state.optimizer.step()
    state.schedule.step()
    state.optimizer.zero_grad()
    if step >= round((1 - config.averaged) * config.steps):
        state.mean.add(state.trained)
    return loss


def _gradients(state: RunState, examples: Sequence[RerankExample], config: RerankerConfig) -> float:
    batches = pair_batches(state.model, examples, chunk_pairs=config.chunk_pairs)
    targets = targets_of(examples).on(batches.device)
    followed = None if state.followed is None else score_batches(state.followed, batches)

    def encode(chunk: PairBatch) -> Tensor:
        return training_logits(state.model, chunk)

    def loss_of(logits: Tensor) -> Tensor:
        return rerank_loss(batches.table(logits), targets, config.loss, followed)

    # One worker means a model so large that the memory of one chunk is all there is.
    accumulate = cached_gradients if state.model.workers == 1 else plain_gradients
    return accumulate(encode, batches.chunks, loss_of, state.trained)


def _measure(
    model: PairModel,
    examples: Sequence[RerankExample],
    target: Path,
    listener: Listener,
    *,
    step: int,
) -> None:
    batches = pair_batches(model, examples, chunk_pairs=32)
    table = score_batches(model, batches).double().cpu().numpy()
    scores = [row[:size] for row, size in zip(table, batches.sizes, strict=True)]
    _report(development(examples, scores, step=step), target, listener)


def _report(found: Development, target: Path, listener: Listener) -> None:
    append_line(target / DEVELOPMENT_FILE, json.dumps(asdict(found)))
    listener.report(found)
