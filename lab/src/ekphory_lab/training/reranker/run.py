"""A training run of a reranker: one loop, resumable, with a manifest."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any, get_args

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel, get_swa_multi_avg_fn

from ekphory.errors import InvalidInput
from ekphory_lab.evaluation.metrics import PairedTest, paired_test
from ekphory_lab.evaluation.runner import Progress
from ekphory_lab.training import run_files
from ekphory_lab.training.encoder import (
    Optimizer,
    Tensor,
    cached_gradients,
    gradient_scale,
    new_optimizer,
    plain_gradients,
    teacher_loss,
)
from ekphory_lab.training.reranker import models
from ekphory_lab.training.reranker.config import RerankerConfig, RerankLossWeights, Stages
from ekphory_lab.training.reranker.examples import (
    Development,
    RerankExample,
    development,
    first_stage_scores,
    log_loss,
)
from ekphory_lab.training.reranker.export import HEAD_FILE
from ekphory_lab.training.reranker.preparation import (
    EXAMPLE_FILES,
    ExampleMaking,
    prepare_examples,
)

# The losses of a reranker. Needs torch. All take logits of shape (questions, candidates).

_NEVER = -1e4
"""Stands for a logit of minus infinity where a difference of two must stay finite."""


@dataclass(frozen=True, slots=True)
class RerankTargets:
    """What is known of the candidates; tensors of shape (questions, candidates).

    Attributes:
        present: False where a question has fewer candidates than the longest list.
        relevant: True where the candidate answers.
        labels: Soft labels in [0, 1].
    """

    present: Tensor
    relevant: Tensor
    labels: Tensor


def rerank_loss(
    logits: Tensor, targets: RerankTargets, weights: RerankLossWeights, followed: Tensor | None
) -> Tensor:
    """Put the parts together.

    Args:
        logits: The model's.
        targets: What is known of the candidates.
        weights: How.
        followed: Logits of the model that is followed; None where none is.
    """
    loss = weights.contrast * info_nce(logits, targets, temperature=weights.temperature)
    if weights.soft:
        loss = loss + weights.soft * soft_cross_entropy(logits, targets)
    if followed is not None:
        present = targets.present
        student, teacher = (each.masked_fill(~present, _NEVER) for each in (logits, followed))
        loss = loss + weights.following * teacher_loss(student, teacher, temperature=1.0)
    return loss


def info_nce(logits: Tensor, targets: RerankTargets, *, temperature: float) -> Tensor:
    """Each answer against all wrong candidates of its question, and against no other answer.

    -log(exp(p) / (exp(p) + sum exp(n))), the mean over the answers of a question and then over the
    questions. Source: van den Oord, Li and Vinyals, 2018; several answers as ours.
    """
    scaled = logits / temperature
    wrong = targets.present & ~targets.relevant
    against = scaled.masked_fill(~wrong, float("-inf")).logsumexp(dim=1, keepdim=True)
    each = functional.softplus(against - scaled)
    answers = targets.relevant.float()
    return ((each * answers).sum(dim=1) / answers.sum(dim=1)).mean()


def soft_cross_entropy(logits: Tensor, targets: RerankTargets) -> Tensor:
    """Binary cross-entropy with the soft labels, the mean over all candidates."""
    each = functional.binary_cross_entropy_with_logits(logits, targets.labels, reduction="none")
    return each[targets.present].mean()


def padded(rows: list[list[float]], width: int) -> Tensor:
    """Put rows of different length into one tensor, with zeros at their end."""
    return torch.tensor([[*row, *[0.0] * (width - len(row))] for row in rows])


# Examples as batches of pairs, and their logits put back in order. Needs torch.


@dataclass(frozen=True, slots=True)
class PairBatches:
    """The pairs of some examples in chunks of similar length.

    Attributes:
        chunks: What is encoded.
        order: Which pair, counted over all examples, stands at each place of the chunks.
        sizes: How many candidates each example has.
    """

    chunks: Sequence[models.PairBatch]
    order: Tensor
    sizes: Sequence[int]

    @property
    def device(self) -> Any:  # noqa: ANN401  torch's
        """Where the pairs are."""
        return self.chunks[0].ids.device

    def table(self, logits: Tensor) -> Tensor:
        """Bring logits in the order of the chunks to shape (examples, candidates), 0 if absent."""
        order = self.order.to(logits.device)
        ordered = torch.empty_like(logits).index_copy(0, order, logits)
        parts = ordered.split(list(self.sizes))
        return torch.nn.utils.rnn.pad_sequence(parts, batch_first=True)


def pair_batches(
    model: models.PairModel, examples: Sequence[RerankExample], *, chunk_pairs: int
) -> PairBatches:
    """Tokenise all pairs and cut them into chunks."""
    pairs = [pair for example in examples for pair in model.pairs(example)]
    order = sorted(range(len(pairs)), key=lambda place: len(pairs[place].ids))
    chunks = [
        model.batch([pairs[place] for place in order[start : start + chunk_pairs]])
        for start in range(0, len(order), chunk_pairs)
    ]
    return PairBatches(
        chunks, torch.tensor(order), [len(example.candidates) for example in examples]
    )


def targets_of(examples: Sequence[RerankExample], device: Any) -> RerankTargets:  # noqa: ANN401
    """Return the labels of the examples' candidates; without soft ones 1 for answers, 0 else."""
    width = max(len(example.candidates) for example in examples)
    relevant = [[float(each.relevant) for each in example.candidates] for example in examples]
    labels = [list(example.labels) or own for example, own in zip(examples, relevant, strict=True)]
    present = [[1.0] * len(row) for row in relevant]
    shown, answers, soft = (padded(rows, width).to(device) for rows in (present, relevant, labels))
    return RerankTargets(shown.bool(), answers.bool(), soft)


def score_batches(model: models.PairModel, batches: PairBatches) -> Tensor:
    """Score without gradients; shape (examples, candidates)."""

    def score(chunk: models.PairBatch) -> Tensor:
        with torch.no_grad():
            return models.training_logits(model, chunk)

    if model.workers == 1:
        return batches.table(torch.cat([score(chunk) for chunk in batches.chunks]))
    threads = {"initializer": torch.set_num_threads, "initargs": (1,)}
    with ThreadPoolExecutor(model.workers, **threads) as workers:
        return batches.table(torch.cat(list(workers.map(score, batches.chunks))))


# What changes while a reranker is trained, and how it is written down. Needs torch.


@dataclass(frozen=True, slots=True)
class RunState:
    """A run between two steps.

    Attributes:
        model: What is trained.
        early: Its first layers with a head of their own, which are trained with it; None for none.
        followed: The model whose scores it follows; None where it follows none.
        optimizer: Has the weights that are trained.
        mean: The mean of the weights over the last steps. Source: Izmailov et al., "Averaging
            Weights Leads to Wider Optima and Better Generalization", UAI 2018.
    """

    model: models.PairModel
    early: models.CrossEncoder | None
    followed: models.PairModel | None
    optimizer: Optimizer
    mean: AveragedModel

    @property
    def weights(self) -> nn.ParameterList:
        """All that is trained."""
        return nn.ParameterList(self.optimizer.trained)


def new_state(config: RerankerConfig, base: Path, followed: Path | None = None) -> RunState:
    """Load the base, and the model that is followed, and begin.

    Raises:
        InvalidInput: The base has not the layers that are to be kept, or the configuration follows
            a model and there is none, or the reverse.
        MissingExtra: The architecture needs peft, which is not installed.
        ModelError: The base cannot be loaded.
    """
    model, larger = _models(config, base, followed)
    named = models.trained_weights(model)
    early = _early(config, model)
    if early is not None:
        named |= {
            f"early.{name}": weight
            for name, weight in models.trained_weights(early).items()
            if name.partition(".")[0] in models.HEAD_PARTS
        }
    new = {*models.HEAD_PARTS[1:], "early"}
    head = [name for name in named if name.partition(".")[0] in new]
    apart = {
        "params": [named.pop(name) for name in head],
        "weight_decay": config.weight_decay,
        "lr": config.head_factor * config.learning_rate,
    }
    optimizer = new_optimizer(config, config.steps, named, apart)
    mean = AveragedModel(nn.ParameterList(optimizer.trained), multi_avg_fn=get_swa_multi_avg_fn())
    return RunState(model, early, larger, optimizer, mean)


def _early(config: RerankerConfig, model: models.PairModel) -> models.CrossEncoder | None:
    if not config.exit_layer or not isinstance(model, models.CrossEncoder):
        return None
    early = models.with_exit(model, config.exit_layer)
    early.parts.train()
    return early


def write_checkpoint(state: RunState, target: Path, *, done: int) -> None:
    """Write all that a run needs to go on; frozen weights are the base's."""
    weights, mean = state.weights.state_dict(), state.mean.state_dict()
    state.optimizer.write_checkpoint(target, done=done, weights=weights, mean=mean)


def restore_checkpoint(state: RunState, target: Path) -> int:
    """Bring the state to the run's last checkpoint; returns how many steps it has done."""
    content = state.optimizer.restore_checkpoint(target)
    if content is None:
        return 0
    state.weights.load_state_dict(content["weights"])
    state.mean.load_state_dict(content["mean"])
    return int(content["done"])


def _models(
    config: RerankerConfig, base: Path, followed: Path | None
) -> tuple[models.PairModel, models.PairModel | None]:
    if followed is not None and not config.loss.following:
        raise InvalidInput(
            "followed",
            str(followed),
            f"the configuration {config.name} follows no model",
            "Leave it out, or take `--config following`, `exchanging` or `exiting`.",
        )
    if config.architecture == "yes_no":
        language_model = models.load_yes_no_model(base, config.lora)
        language_model.parts.train()
        return language_model, None
    whole = models.load_cross_encoder(base)
    model = models.with_layers(whole, config.layers) if config.layers else whole
    model.parts["encoder"].get_input_embeddings().requires_grad_(False)
    model.parts.train()
    return model, _followed(config, whole, followed)


def _followed(
    config: RerankerConfig, whole: models.CrossEncoder, followed: Path | None
) -> models.CrossEncoder | None:
    if not config.loss.following:
        return None
    if followed is not None:
        if not (followed / HEAD_FILE).is_file():
            problem = f"has no {HEAD_FILE}, so no scores"
            remedy = "Give the directory of a trained reranker."
            raise InvalidInput("followed", str(followed), problem, remedy)
        return models.load_cross_encoder(followed)
    if not config.layers:
        raise InvalidInput(
            "followed",
            None,
            f"the configuration {config.name} follows the scores of a larger model",
            "Give its directory as `--followed`.",
        )
    return whole


# A training run of a reranker: one loop, resumable, with a manifest. Needs torch.

DEVELOPMENT_FILE = "development.jsonl"
EARLY_FOLDER = "early"
"""Gets the first layers with a head of their own, where a configuration trains them."""
Report = Callable[[Development], None]
"""Is told each measurement on held-back questions; the first is the first stage's."""


def train_reranker(
    config: RerankerConfig,
    making: ExampleMaking,
    *,
    places: run_files.RunPlaces,
    progress: Progress,
    report: Report,
) -> Path:
    """Train, or go on where a run in the same target stopped.

    Resuming gives the same weights as a run that was never stopped.

    Args:
        config: What is trained, and how.
        making: What examples are made with.
        places: Where to read and write.
        progress: Is told what is done, how much of it, and of how much.
        report: Is told each measurement.

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
        hashes["followed"] = run_files.weights_hash(places.followed)
    manifest = run_files.run_manifest(config, base=places.base, hashes=hashes)
    target.mkdir(parents=True, exist_ok=True)
    run_files.claim_folder(target, manifest)
    trained, held_back = prepare_examples(config, making, target, progress=progress)
    first = restore_checkpoint(state, target)
    measured = held_back[: config.held_back.measured]
    if not first:
        before = [first_stage_scores(example) for example in measured]
        _note(development(measured, before, step=-1), target, report)
    saved = monotonic()
    for step, batch in enumerate(islice(_batches(config, trained), first, None), start=first):
        if step % config.held_back.every_steps == 0 or step == config.second_stage:
            _measure(state.model, measured, target, report, step=step)
        loss = _step(state, batch, config, step=step)
        pairs = sum(len(each.candidates) for each in batch)
        run_files.note_loss(target, step, loss, read={"pairs": pairs})
        progress("training", step + 1, config.steps)
        if monotonic() - saved > config.checkpoint_seconds:
            write_checkpoint(state, target, done=step + 1)
            saved = monotonic()
    write_checkpoint(state, target, done=config.steps)
    if state.mean.n_averaged:
        state.weights.load_state_dict(state.mean.module.state_dict())
    _measure(state.model, measured, target, report, step=config.steps)
    state.model.save(target / run_files.MODEL_FOLDER)
    if state.early is not None:
        state.early.save(target / EARLY_FOLDER)
    return target / run_files.MODEL_FOLDER


def _batches(
    config: RerankerConfig, trained: Sequence[RerankExample]
) -> Iterator[Sequence[RerankExample]]:
    size = config.questions_per_step
    for epoch in range(config.epochs):
        random = Random(f"{config.seed}:{epoch}")  # noqa: S311  no secret
        order = random.sample(trained, len(trained))
        for start in range(0, config.steps // config.epochs * size, size):
            yield order[start : start + size]


def _step(
    state: RunState, examples: Sequence[RerankExample], config: RerankerConfig, *, step: int
) -> float:
    weights = config.loss_at(step)
    followed = _followed_scores(state.followed, examples, config)
    loss = _gradients(state.model, followed, examples, config, weights)
    if state.early is not None:
        beside = weights.times(config.exit_share)
        loss += _gradients(state.early, followed, examples, config, beside)
    state.optimizer.step()
    if step >= round((1 - config.averaged) * config.steps):
        state.mean.update_parameters(state.weights)
    return loss


def _followed_scores(
    larger: models.PairModel | None, examples: Sequence[RerankExample], config: RerankerConfig
) -> Tensor | None:
    if larger is None:
        return None
    # Tokenised anew: a larger model may read another vocabulary.
    return score_batches(larger, pair_batches(larger, examples, chunk_pairs=config.chunk_pairs))


def _gradients(
    model: models.PairModel,
    followed: Tensor | None,
    examples: Sequence[RerankExample],
    config: RerankerConfig,
    weights: RerankLossWeights,
) -> float:
    batches = pair_batches(model, examples, chunk_pairs=config.chunk_pairs)
    targets = targets_of(examples, batches.device)

    def encode(chunk: models.PairBatch) -> Tensor:
        return models.training_logits(model, chunk, precision=config.precision)

    def loss_of(logits: Tensor) -> Tensor:
        return rerank_loss(batches.table(logits), targets, weights, followed)

    # Of a language model the memory of one chunk is all there is.
    accumulate = cached_gradients if config.architecture == "yes_no" else plain_gradients
    scale = gradient_scale(config.precision)
    trained = list(models.trained_weights(model).values())
    return accumulate(encode, batches.chunks, loss_of, trained, scale=scale)


def _measure(
    model: models.PairModel,
    examples: Sequence[RerankExample],
    target: Path,
    report: Report,
    *,
    step: int,
) -> None:
    batches = pair_batches(model, examples, chunk_pairs=32)
    table = score_batches(model, batches).double().cpu().numpy()
    scores = [row[:size] for row, size in zip(table, batches.sizes, strict=True)]
    found = development(examples, scores, step=step)
    loss = round(log_loss(examples, scores), 4)
    _note(replace(found, log_loss=loss), target, report)


def _note(found: Development, target: Path, report: Report) -> None:
    run_files.append_line(target / DEVELOPMENT_FILE, json.dumps(asdict(found)))
    report(found)


# The two ways to take the loss, on the same examples.


def compare_stages(
    config: RerankerConfig,
    making: ExampleMaking,
    *,
    places: run_files.RunPlaces,
    progress: Progress,
    report: Report,
) -> dict[str, Development]:
    """Train by the joint loss, and by the two stages in sequence; return what each measured last.

    Both runs stand in folders of the target and may be gone on with. Beside them is said what the
    first stage of retrieval measured, and the sequence where its second stage begins.

    Raises:
        InvalidInput, MissingExtra, ModelError: As `train_reranker`.
    """
    found: dict[str, Development] = {}
    whole = places.target
    for stages in get_args(Stages):
        chosen, target = replace(config, stages=stages), whole / stages
        target.mkdir(parents=True, exist_ok=True)
        for name in EXAMPLE_FILES:
            made = whole / get_args(Stages)[0] / name
            if made.is_file() and not (target / name).is_file():
                shutil.copyfile(made, target / name)
        places = replace(places, target=target)
        train_reranker(chosen, making, places=places, progress=progress, report=report)
        measured = read_development(target)
        found["first stage of retrieval"] = measured[-1]
        if chosen.second_stage:
            found["soft labels alone"] = measured[chosen.second_stage]
        found[stages] = measured[chosen.steps]
    return found


def compare_sequence(found: Mapping[str, Development]) -> PairedTest | None:
    """Compare the sequence with the joint loss, question by question; None where none was kept."""
    joint, sequence = (np.array(found[name].each) for name in get_args(Stages))
    return paired_test(joint, sequence) if len(joint) == len(sequence) > 0 else None


def read_development(target: Path) -> dict[int, Development]:
    """Read what a run measured, by step; of a step that was taken twice the last."""
    lines = (target / DEVELOPMENT_FILE).read_text(encoding="utf-8").splitlines()
    return {row["step"]: Development(**row) for row in map(json.loads, lines)}
