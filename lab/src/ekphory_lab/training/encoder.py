"""The embedder in torch: encoder, age, type, projection, its losses, and its traced export."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnxruntime import InferenceSession
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import nn
from transformers import AutoConfig, AutoModel, AutoTokenizer

from ekphory.errors import InvalidInput, ModelError
from ekphory.models import late_bound, onnx_export
from ekphory.models.model_record import TOKENIZER_FILE, ModelRecord
from ekphory.models.onnx_graph import IR_VERSION, ONNX_OPSET, TEXT_INPUTS
from ekphory.models.torch_embedder import read_pooling
from ekphory.threads import count_usable_cores
from ekphory.types import MEMORY_TYPES
from ekphory_lab.training import run_files

# Where training computes, and in which precision: bfloat16 where the processor has it.

_DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}
_CAPABILITIES = ("amx_bf16", "avx512_bf16")


def training_device() -> str:
    """Return the GPU where there is one, else the processor."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def mixed_precision(device: str = "cpu", precision: run_files.Precision = "auto") -> torch.autocast:
    """Return the context in which products are computed; weights stay in float.

    A processor without bfloat16 emulates it at half the speed of float, measured with 24 pairs of
    80 tokens on AVX-512 without its BF16 part: 3.5 s against 1.8 s a pass and its gradients.
    """
    automatic = "bfloat16" if has_bfloat16(device) else "float32"
    dtype = _DTYPES.get(automatic if precision == "auto" else precision)
    return torch.autocast(device, dtype=dtype or torch.bfloat16, enabled=dtype is not None)


def gradient_scale(precision: run_files.Precision) -> float:
    """Return what gradients are multiplied by on their way back, or small ones become 0."""
    return 2.0**10 if precision == "float16" else 1.0


def has_bfloat16(device: str = "cpu") -> bool:
    """Whether the device multiplies bfloat16 itself; False where torch cannot tell."""
    if device != "cpu":
        return bool(torch.cuda.is_bf16_supported())
    known: Mapping[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return any(bool(known.get(name)) for name in _CAPABILITIES)


# The losses of the embedder, and gradients of large batches in bounded memory.
#
# Needs torch. Scores are cosines; every function returns a scalar.

Tensor: TypeAlias = Any
"""A torch tensor; torch is read as untyped."""


def ranking_loss(scores: Tensor, positives: Tensor, *, temperature: float) -> Tensor:
    """Multiple-negatives ranking with any number of positives: -log of their share.

    Source: van den Oord, Li and Vinyals, "Representation Learning with Contrastive Predictive
    Coding", 2018; with several positives Miech et al., "End-to-End Learning of Visual
    Representations from Uncurated Instructional Videos", CVPR 2020 (MIL-NCE).

    Args:
        scores: Shape (questions, passages).
        positives: True where the passage answers the question; same shape.
        temperature: What scores are divided by.
    """
    logits = scores / temperature
    answered = logits.masked_fill(~positives, float("-inf"))
    return (logits.logsumexp(dim=1) - answered.logsumexp(dim=1)).mean()


def teacher_loss(scores: Tensor, teacher: Tensor, *, temperature: float) -> Tensor:
    """Kullback-Leibler divergence of the student's distribution over passages from the teacher's.

    Args:
        scores: The student's, shape (questions, passages).
        teacher: The teacher's logits, same shape.
        temperature: What the student's scores are divided by.
    """
    wanted = teacher.log_softmax(dim=1)
    given = (scores / temperature).log_softmax(dim=1)
    return (wanted.exp() * (wanted - given)).sum(dim=1).mean()


def anchor_loss(vectors: Tensor, base: Tensor) -> Tensor:
    """One minus the mean cosine with the base model's vectors; both of length 1."""
    return 1 - (vectors * base).sum(dim=1).mean()


def plain_gradients(
    encode: Callable[[Any], Tensor],
    chunks: Sequence[Any],
    loss_of: Callable[[Tensor], Tensor],
    weights: Sequence[Tensor],
    *,
    scale: float = 1.0,
) -> float:
    """Encode all chunks, take the loss of all vectors together, and add its gradients up.

    Each chunk is encoded by one thread, and as many at once as there are cores: on a busy machine
    no thread waits for another at every layer. A GPU gets one chunk after the other. The sum has a
    fixed order.

    Args:
        encode: Gives the vectors of a chunk.
        chunks: What is encoded; the vectors are put together in this order.
        loss_of: Gives a scalar from all vectors.
        weights: What gets the gradients.
        scale: What they are multiplied by on their way back, as `gradient_scale` says.
    """
    with _workers(weights) as workers:
        vectors = list(workers.map(encode, chunks))
        loss, parts = _loss_and_parts(vectors, loss_of)
        _add_up(weights, workers.map(lambda v, g: _gradients(v, g, weights, scale), vectors, parts))
    return loss


def cached_gradients(
    encode: Callable[[Any], Tensor],
    chunks: Sequence[Any],
    loss_of: Callable[[Tensor], Tensor],
    weights: Sequence[Tensor],
    *,
    scale: float = 1.0,
) -> float:
    """Like `plain_gradients`, with the memory of one chunk and the time of one more encoding.

    Source: Gao, Zhang, Han and Callan, "Scaling Deep Contrastive Learning Batch Size under Memory
    Limited Setup", RepL4NLP 2021 (GradCache). The random state is put back before the second
    encoding, so that dropout is the same.
    """
    states, vectors = [], []
    with torch.no_grad():
        for chunk in chunks:
            states.append(torch.get_rng_state())
            vectors.append(encode(chunk))
    loss, parts = _loss_and_parts(vectors, loss_of)
    after = torch.get_rng_state()
    for chunk, state, part in zip(chunks, states, parts, strict=True):
        torch.set_rng_state(state)
        _add_up(weights, [_gradients(encode(chunk), part, weights, scale)])
    torch.set_rng_state(after)
    return loss


def _loss_and_parts(
    vectors: Sequence[Tensor], loss_of: Callable[[Tensor], Tensor]
) -> tuple[float, Sequence[Tensor]]:
    leaf = torch.cat([part.detach() for part in vectors]).requires_grad_()
    loss = loss_of(leaf)
    loss.backward()
    return float(loss.detach()), leaf.grad.split([len(part) for part in vectors])


def _gradients(
    vectors: Tensor, part: Tensor, weights: Sequence[Tensor], scale: float
) -> Sequence[Tensor]:
    gradients: Sequence[Tensor] = torch.autograd.grad(vectors, weights, part * scale)
    return gradients if scale == 1 else [gradient / scale for gradient in gradients]


def _add_up(weights: Sequence[Tensor], found: Iterable[Sequence[Tensor]]) -> None:
    for gradients in found:
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.grad = gradient if weight.grad is None else weight.grad.add_(gradient)


def _workers(weights: Sequence[Tensor]) -> ThreadPoolExecutor:
    threads = 1 if any(weight.is_cuda for weight in weights) else count_usable_cores()
    return ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))


# The optimiser of a run, its steps and its checkpoints.


@dataclass(frozen=True, slots=True)
class Optimizer:
    """AdamW with a rate that rises and falls.

    Attributes:
        trained: All weights that are trained.
        adam, schedule: torch's.
        largest_gradient: Norm to which gradients are clipped.
    """

    trained: Sequence[Tensor]
    adam: Any
    schedule: Any
    largest_gradient: float

    def step(self) -> None:
        """Change the weights by their gradients, which begin anew."""
        norm = torch.nn.utils.clip_grad_norm_(self.trained, self.largest_gradient)
        if not torch.isfinite(norm):
            # In float16 a gradient may be too large: without any, the step changes nothing.
            self.adam.zero_grad()
        self.adam.step()
        self.schedule.step()
        self.adam.zero_grad()

    def write_checkpoint(self, target: Path, *, done: int, **content: Any) -> None:  # noqa: ANN401
        """Write all that the run needs to go on, `content` among it."""
        content |= {
            "done": done,
            "optimizer": self.adam.state_dict(),
            "schedule": self.schedule.state_dict(),
            "random": torch.get_rng_state(),
        }
        partial = target / f"{run_files.CHECKPOINT_FILE}.partial"
        torch.save(content, partial)
        partial.replace(target / run_files.CHECKPOINT_FILE)

    def restore_checkpoint(self, target: Path) -> dict[str, Any] | None:
        """Go on where the last checkpoint was written, and return it; None without one."""
        path = target / run_files.CHECKPOINT_FILE
        if not path.is_file():
            return None
        # The random state belongs on the processor; the rest goes where the weights are.
        content: dict[str, Any] = torch.load(path, weights_only=True, map_location="cpu")
        self.adam.load_state_dict(content["optimizer"])
        self.schedule.load_state_dict(content["schedule"])
        torch.set_rng_state(content["random"])
        run_files.forget_losses(target, after=int(content["done"]))
        return content


def new_optimizer(
    config: run_files.RunConfig, steps: int, named: Mapping[str, Tensor], apart: Mapping[str, Any]
) -> Optimizer:
    """Return the optimiser of a new run.

    Args:
        config: Rates and decay; biases and normalisations are spared of it.
        steps: Length of the run.
        named: The weights by name, those that are `apart` left out.
        apart: A group of weights (`params`) with settings of its own.
    """
    is_spared = {name: name.endswith("bias") or "norm" in name.lower() for name in named}
    decayed, spared = (
        [weight for name, weight in named.items() if is_spared[name] is wanted]
        for wanted in (False, True)
    )
    adam = torch.optim.AdamW(
        [
            {"params": decayed, "weight_decay": config.weight_decay},
            {"params": spared, "weight_decay": 0.0},
            dict(apart),
        ],
        lr=config.learning_rate,
    )
    rate = run_files.rise_and_fall(steps, warm_up=config.warm_up)
    schedule = torch.optim.lr_scheduler.LambdaLR(adam, rate)
    trained = [*named.values(), *apart["params"]]
    return Optimizer(trained, adam, schedule, config.largest_gradient)


# The embedder in torch: encoder, mean pooling, age, type, projection, and two heads.
#
#     z(memory, age, type) = W (pooled + age[bucket] + type[t]) + b
#
# A query is W pooled + b. Importance and type are read from `pooled`. Needs torch.

_IMPORTANCE_HIDDEN = 64
_DROPOUTS = (
    *("hidden_dropout_prob", "attention_probs_dropout_prob"),  # BERT's
    *("embedding_dropout", "attention_dropout", "mlp_dropout"),  # ModernBERT's
    "dropout",  # DistilBERT's, beside `attention_dropout`
)


@dataclass(frozen=True, slots=True)
class AgentEncoder:
    """The trainable parts.

    Attributes:
        parts: `encoder`, `projection`, `age`, `kind` (the type's vectors), `importance` and
            `memory_type`.
        tokenizer: The encoder's.
        max_tokens: Longest text when the model is used.
        prompts: What stands before queries and passages, also in training.
    """

    parts: Any
    tokenizer: Any
    max_tokens: int
    prompts: onnx_export.Prompts = onnx_export.NO_PROMPTS

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self.parts["projection"].out_features)

    @property
    def device(self) -> Any:  # noqa: ANN401  torch's
        """Where the weights are, and the tokens go."""
        return self.parts["projection"].weight.device

    def pooled(self, tokens: Any) -> Tensor:  # noqa: ANN401  a tokenizer's batch
        """Mean of the last layer over a batch's tokens, in float; shape (texts, dimension)."""
        states = self.parts["encoder"](**tokens).last_hidden_state.float()
        mask = tokens["attention_mask"].unsqueeze(-1).float()
        return (states * mask).sum(dim=1) / mask.sum(dim=1)

    def vectors(self, tokens: Any) -> Tensor:  # noqa: ANN401  a tokenizer's batch
        """Vectors without age and type, of length 1."""
        return nn.functional.normalize(self.project(self.pooled(tokens)), dim=1)

    def project(self, pooled: Tensor) -> Tensor:
        """W pooled + b, in float."""
        projection = self.parts["projection"]
        return nn.functional.linear(pooled, projection.weight, projection.bias)

    def memory_vectors(self, pooled: Tensor, ages: Tensor, types: Tensor) -> Tensor:
        """Vectors of memories of these age buckets and types, of length 1; any leading shape."""
        added = pooled + self.parts["age"](ages) + self.parts["kind"](types)
        return nn.functional.normalize(self.project(added), dim=-1)

    def importance(self, pooled: Tensor) -> Tensor:
        """Predicted importance in [0, 1]; shape (texts,)."""
        return torch.sigmoid(self.parts["importance"](pooled)).squeeze(-1)

    def memory_type_logits(self, pooled: Tensor) -> Tensor:
        """One logit per type; shape (texts, 4)."""
        return self.parts["memory_type"](pooled)

    def tokens(self, texts: Sequence[str], *, max_tokens: int) -> Any:  # noqa: ANN401
        """Tokenise a batch, padded to its longest text, cut also where the model ends."""
        tokens = self.tokenizer(
            list(texts),
            padding=True,
            truncation=True,
            max_length=min(max_tokens, self.max_tokens),
            return_tensors="pt",
        )
        return tokens.to(self.device)


def load_transformer(directory: Path, **options: Any) -> Any:  # noqa: ANN401  transformers'
    """Load an encoder in float, which drops nothing out in training.

    Raises:
        ModelError: It cannot be loaded.
    """
    try:
        config = AutoConfig.from_pretrained(directory, local_files_only=True)
        # Each architecture has names of its own, and refuses those of others.
        for name in _DROPOUTS:
            if hasattr(config, name):
                setattr(config, name, 0.0)
        return AutoModel.from_pretrained(
            directory,
            config=config,
            # Seven times as fast as fused attention in bfloat16 on a processor without AMX.
            attn_implementation="eager",
            local_files_only=True,
            dtype=torch.float32,
            **options,
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{directory}: cannot be loaded as an encoder ({error}).") from error


def _new_parts(encoder: Any) -> Any:  # noqa: ANN401  torch's modules
    size = int(encoder.config.hidden_size)
    projection = nn.Linear(size, size)
    age, kind = nn.Embedding(late_bound.AGE_BUCKETS, size), nn.Embedding(len(MEMORY_TYPES), size)
    nn.init.eye_(projection.weight)
    for tensor in (projection.bias, age.weight, kind.weight):
        nn.init.zeros_(tensor)
    importance = nn.Sequential(
        nn.Linear(size, _IMPORTANCE_HIDDEN), nn.ReLU(), nn.Linear(_IMPORTANCE_HIDDEN, 1)
    )
    return nn.ModuleDict(
        {
            "encoder": encoder,
            "projection": projection,
            "age": age,
            "kind": kind,
            "importance": importance,
            "memory_type": nn.Linear(size, len(MEMORY_TYPES)),
        }
    )


# Weights between the base model's and the trained ones: less forgotten, most of it learned.
#
# Needs torch.

_AVERAGED = ("encoder", "projection")


def averaged(base: AgentEncoder, trained: AgentEncoder, *, share: float) -> AgentEncoder:
    """Return `(1 - share) * base + share * trained` for encoder and projection.

    Source: Wortsman et al., "Robust fine-tuning of zero-shot models", CVPR 2022 (WiSE-FT). Age,
    type and heads are the trained ones.

    Raises:
        InvalidInput: The share is not within 0 and 1.
    """
    if not 0 <= share <= 1:
        raise InvalidInput("share", share, "is not within 0 and 1", "Give 1 for the trained ones.")
    parts = deepcopy(trained.parts)
    for name in _AVERAGED:
        first, second = base.parts[name].state_dict(), trained.parts[name].state_dict()
        mixed = {
            key: first[key].lerp(value, share) if value.is_floating_point() else value
            for key, value in second.items()
        }
        parts[name].load_state_dict(mixed)
    return replace(trained, parts=parts)


# Writes and reads the embedder's directory, which plain sentence-transformers loads as well.
#
# Beside the usual files stands `ekphory_components.safetensors`: age, type, projection and heads.

# How the file calls each part.
_PARTS = {
    "age": "age",
    "type": "kind",
    "projection": "projection",
    "importance": "importance",
    "memory_type": "memory_type",
}


def save_agent_encoder(encoder: AgentEncoder, directory: Path) -> None:
    """Write everything; the same weights give the same files."""
    directory.mkdir(parents=True, exist_ok=True)
    encoder.parts["encoder"].save_pretrained(directory)
    encoder.tokenizer.save_pretrained(directory)
    components = late_bound.build_components(_components(encoder), where=directory)
    layout = onnx_export.SentenceLayout(
        projection=components.projection, max_tokens=encoder.max_tokens, prompts=encoder.prompts
    )
    onnx_export.write_sentence_layout(layout, directory)
    late_bound.write_components(components, directory)


def load_agent_encoder(directory: Path) -> AgentEncoder:
    """Read a directory; without components the projection is the identity, age and type zero.

    Args:
        directory: A sentence-transformers model with mean pooling; what it drops out in training
            is not dropped.

    Raises:
        ModelError: It cannot be loaded, or its components are not those of this encoder.
    """
    transformer = load_transformer(directory)
    try:
        tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{directory}: its tokenizer cannot be loaded ({error}).") from error
    window, prompts = onnx_export.read_window(directory), onnx_export.read_prompts(directory)
    positions = getattr(transformer.config, "max_position_embeddings", None) or window
    parts = _new_parts(transformer)
    if (path := directory / late_bound.COMPONENTS_FILE).is_file():
        load_parts(parts, path, _PARTS)
    return AgentEncoder(parts, tokenizer, min(window, positions), prompts)


def load_parts(parts: Any, path: Path, named: Mapping[str, str]) -> None:  # noqa: ANN401  torch's
    """Read parts of a model from a file.

    Args:
        parts: The modules, by name.
        path: A safetensors file.
        named: Name of each part that is read, by how the file calls it.

    Raises:
        ModelError: They are not those of this model.
    """
    tensors = load_file(path)
    for name, part in named.items():
        own = {
            key.removeprefix(f"{name}."): value
            for key, value in tensors.items()
            if key.startswith(f"{name}.")
        }
        try:
            parts[part].load_state_dict(own)
        except RuntimeError as error:
            raise ModelError(f"{path}: does not fit its encoder ({error}).") from error


def _components(encoder: AgentEncoder) -> dict[str, NDArray[np.float32]]:
    return {
        f"{name}.{key}": value.detach().cpu().numpy()
        for name, part in _PARTS.items()
        for key, value in encoder.parts[part].state_dict().items()
    }


# Exports an encoder of any build as ONNX: torch writes down what it computes.

_CHECKED = ((1, 3), (2, 9), (3, 40))
"""Texts and tokens of the batches for which ONNX Runtime must give what torch gives."""
_TOLERANCE = 1e-3


class _Traced(nn.Module):  # type: ignore[misc]  # torch is read as untyped
    """What the graph computes: the outputs of `onnx_graph.build_encoder`, by name."""

    def __init__(
        self, encoder: AgentEncoder, components: late_bound.EmbedderComponents | None
    ) -> None:
        super().__init__()
        self.parts = encoder.parts
        self._encoder = encoder
        heads = ("importance", "memory_type")
        self._heads = [head for head in heads if getattr(components, head, None) is not None]
        self.names = ["embedding", "pooled", *(["content"] if components else []), *self._heads]

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, ...]:
        encoder = self._encoder
        tokens = {"input_ids": input_ids, "attention_mask": attention_mask}
        pooled = encoder.pooled(tokens)
        content = encoder.project(pooled)
        found = {
            "embedding": nn.functional.normalize(content, dim=1),
            "pooled": pooled,
            "content": content,
        }
        if "importance" in self._heads:
            found["importance"] = encoder.importance(pooled)
        if "memory_type" in self._heads:
            found["memory_type"] = encoder.memory_type_logits(pooled)
        return tuple(found[name] for name in self.names)


def export_traced_embedder(
    source: Path, target: Path, *, description: onnx_export.ModelDescription
) -> ModelRecord:
    """Write what `export_embedder` writes, in 32-bit float, of an encoder with mean pooling.

    Args:
        source: A sentence-transformers model, or one that was trained here.
        target: Made if needed; the files in it are replaced.
        description: What the record says about the model.

    Raises:
        ModelError: The source cannot be loaded, or what was exported gives other numbers.
    """
    if read_pooling(source) != "mean":
        raise ModelError(f"{source / '1_Pooling'}: only mean pooling can be exported.")
    encoder, components = load_agent_encoder(source), late_bound.read_components(source)
    model = _Traced(encoder, components).eval()
    content = _trace(model)
    _check(model, content, source, most_tokens=encoder.max_tokens)
    graph = onnx.load_from_string(content)
    graph.ir_version = IR_VERSION
    parts = onnx_export.ExportParts(
        components=components,
        dimension=encoder.dimension,
        tokenizer=Tokenizer.from_file(str(source / TOKENIZER_FILE)),
        max_tokens=encoder.max_tokens,
        prompts=encoder.prompts,
    )
    made_by = {"quantisation": "float32", "traced": torch.__version__}
    return onnx_export.write_export(parts, graph, target, description=description, made_by=made_by)


def _trace(model: _Traced) -> bytes:
    stream = io.BytesIO()
    with warnings.catch_warnings():
        # Of what torch warns of, shapes that are written down as constants, `_check` finds out.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            _batch((2, 7)),
            stream,
            input_names=list(TEXT_INPUTS),
            output_names=model.names,
            dynamic_axes={name: {0: "batch"} for name in model.names}
            | {name: {0: "batch", 1: "tokens"} for name in TEXT_INPUTS},
            opset_version=ONNX_OPSET,
            dynamo=False,
        )
    return stream.getvalue()


def _batch(shape: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return token ids, and a mask in which the last text is shorter than the others."""
    ids = torch.arange(int(np.prod(shape))).reshape(*shape) % 11 + 4
    mask = torch.ones_like(ids)
    if len(ids) > 1:
        mask[-1, shape[1] // 2 :] = 0
    return ids, mask


def _check(model: _Traced, content: bytes, source: Path, *, most_tokens: int) -> None:
    session = InferenceSession(content, providers=["CPUExecutionProvider"])
    for texts, tokens in _CHECKED:
        batch = _batch((texts, min(tokens, most_tokens)))
        with torch.no_grad():
            wanted = model(*batch)[0].numpy()
        given = dict(zip(TEXT_INPUTS, (each.numpy() for each in batch), strict=True))
        found = session.run(["embedding"], given)[0]
        if np.abs(found - wanted).max() > _TOLERANCE:
            kind = model.parts["encoder"].config.model_type
            raise ModelError(
                f"{source}: ONNX Runtime gives other vectors than torch for this {kind}. "
                "Run it with torch: Embedder.from_pretrained(directory)."
            )
