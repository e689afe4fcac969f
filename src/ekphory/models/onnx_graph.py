"""Writes the ONNX graph of a BERT-like sentence encoder, from its weights."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ekphory.errors import MissingExtra, ModelError
from ekphory.models.late_bound import EmbedderComponents, Linear, read_components
from ekphory.types import MEMORY_TYPES

try:
    from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper
    from safetensors.numpy import load_file
except ImportError as error:
    raise MissingExtra("export", "Exporting an embedder") from error

FLOAT = int(TensorProto.FLOAT)
INT32 = int(TensorProto.INT32)
ONNX_OPSET = 20  # the first with Gelu
IR_VERSION = 9  # what ONNX Runtime 1.20 can read
MICROSOFT = "com.microsoft"
TEXT_INPUTS = ("input_ids", "attention_mask")
PAIR_INPUTS = (*TEXT_INPUTS, "token_type_ids")
NO_ATTRIBUTES: Mapping[str, int | float] = {}


class GraphBuilder:
    """Collects nodes and constants, and makes the model of them."""

    def __init__(self) -> None:
        self._nodes: list[NodeProto] = []
        self._constants: list[TensorProto] = []

    def constant(self, value: NDArray[Any]) -> str:
        """Add a constant and return its name."""
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(
        self,
        operator: str,
        inputs: Sequence[str],
        *,
        domain: str = "",
        attributes: Mapping[str, int | float] = NO_ATTRIBUTES,
    ) -> str:
        """Add a node with one output and return the output's name."""
        return self.nodes(operator, inputs, outputs=1, domain=domain, attributes=attributes)[0]

    def nodes(
        self,
        operator: str,
        inputs: Sequence[str],
        *,
        outputs: int,
        domain: str = "",
        attributes: Mapping[str, int | float] = NO_ATTRIBUTES,
    ) -> list[str]:
        """Add a node with several outputs and return their names."""
        name = f"{operator}_{len(self._nodes)}"
        names = [f"{name}_{output}" for output in range(outputs)]
        node = helper.make_node(operator, inputs, names, name=name, domain=domain)
        node.attribute.extend(helper.make_attribute(key, attributes[key]) for key in attributes)
        self._nodes.append(node)
        return names

    def name_output(self, tensor: str, name: str) -> None:
        """Name a tensor as an output of the graph."""
        self._nodes.append(helper.make_node("Identity", [tensor], [name], name=f"output_{name}"))

    def model(
        self,
        outputs: Sequence[ValueInfoProto],
        *,
        inputs: Sequence[str] = TEXT_INPUTS,
        given: Sequence[ValueInfoProto] = (),
    ) -> ModelProto:
        """Finish: a model whose inputs are int64 (batch, tokens), and others that are `given`."""
        shape = ["batch", "tokens"]
        own = [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in inputs]
        taken, held = [*given, *own], self._constants
        graph = helper.make_graph(self._nodes, "encoder", taken, list(outputs), held)
        opsets = [helper.make_opsetid("", ONNX_OPSET), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(
            graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="ekphory"
        )


def float_output(name: str, shape: Sequence[str | int | None] | None) -> ValueInfoProto:
    """Describe a float32 output of a graph; None leaves its shape open."""
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


# The weights.

Array = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Projection:
    """`x @ weight + bias`; weight has shape (inputs, outputs)."""

    weight: Array
    bias: Array


@dataclass(frozen=True, slots=True)
class Normalisation:
    """Scale and shift of a layer normalisation."""

    scale: Array
    shift: Array


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One encoder layer.

    Attributes:
        query_key_value: The three input projections side by side, shape (hidden, 3 * hidden).
        attention_output: From the heads back to the hidden size.
        attention_norm: After the attention's residual sum.
        inner: From the hidden size to the feed-forward size.
        outer: From the feed-forward size back.
        outer_norm: After the feed-forward's residual sum.
    """

    query_key_value: Projection
    attention_output: Projection
    attention_norm: Normalisation
    inner: Projection
    outer: Projection
    outer_norm: Normalisation


@dataclass(frozen=True, slots=True)
class EncoderWeights:
    """A whole encoder.

    Attributes:
        words: Word vectors, shape (vocabulary, hidden).
        positions: Position vectors plus the vector of token type 0, shape (positions, hidden).
        embedding_norm: After the sum of the two.
        layers: From input to output.
        heads: Number of attention heads; divides `hidden`.
        epsilon: What layer normalisation adds to the variance.
        components: What reads or follows the pooled output; None for a plain sentence encoder.
    """

    words: Array
    positions: Array
    embedding_norm: Normalisation
    layers: tuple[LayerWeights, ...]
    heads: int
    epsilon: float
    components: EmbedderComponents | None = None


def load_encoder_weights(directory: Path) -> EncoderWeights:
    """Read `config.json`, `model.safetensors` and the components of a BERT-like encoder.

    Raises:
        ModelError: A file is missing or the architecture is not the expected one.
    """
    config = _read_config(directory / "config.json")
    path = directory / "model.safetensors"
    if not path.is_file():
        raise ModelError(f"{path}: no such file. Give a directory that holds model.safetensors.")
    named = {name.removeprefix("bert."): value for name, value in load_file(path).items()}
    tensors = {name: np.ascontiguousarray(value, np.float32) for name, value in named.items()}
    components, hidden = read_components(directory), int(config["hidden_size"])
    if components is not None and components.dimension != hidden:
        problem = f"components for {components.dimension} channels beside an encoder of {hidden}"
        raise ModelError(f"{directory}: {problem}. Save the model again.")
    prefix, numbers = "embeddings", range(int(config["num_hidden_layers"]))
    try:
        token_type = tensors[f"{prefix}.token_type_embeddings.weight"][0]
        return EncoderWeights(
            words=tensors[f"{prefix}.word_embeddings.weight"],
            positions=tensors[f"{prefix}.position_embeddings.weight"] + token_type,
            embedding_norm=_normalisation(tensors, f"{prefix}.LayerNorm"),
            layers=tuple(_layer(tensors, f"encoder.layer.{number}") for number in numbers),
            heads=int(config["num_attention_heads"]),
            epsilon=float(config.get("layer_norm_eps", 1e-12)),
            components=components,
        )
    except KeyError as error:
        remedy = "Only BERT-like encoders can be exported."
        raise ModelError(f"{path}: tensor {error} is missing. {remedy}") from error


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        ModelError: The file is missing or does not hold a JSON object.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot be read as JSON ({error}).") from error
    if not isinstance(content, dict):
        raise ModelError(f"{path}: does not hold a JSON object.")
    return content


def _read_config(path: Path) -> dict[str, Any]:
    config = read_json(path)
    for field, wanted in (("model_type", "bert"), ("hidden_act", "gelu")):
        if config.get(field) != wanted:
            problem = f"{path}: {field}={config.get(field)!r} cannot be exported"
            raise ModelError(f"{problem}. Only {field}={wanted!r} is known.")
    return config


def _layer(tensors: Mapping[str, Array], prefix: str) -> LayerWeights:
    names = (f"{prefix}.attention.self.{name}" for name in ("query", "key", "value"))
    parts = [_projection(tensors, name) for name in names]
    weight = np.concatenate([part.weight for part in parts], axis=1)
    return LayerWeights(
        query_key_value=Projection(weight, np.concatenate([part.bias for part in parts])),
        attention_output=_projection(tensors, f"{prefix}.attention.output.dense"),
        attention_norm=_normalisation(tensors, f"{prefix}.attention.output.LayerNorm"),
        inner=_projection(tensors, f"{prefix}.intermediate.dense"),
        outer=_projection(tensors, f"{prefix}.output.dense"),
        outer_norm=_normalisation(tensors, f"{prefix}.output.LayerNorm"),
    )


def _projection(tensors: Mapping[str, Array], name: str) -> Projection:
    return Projection(np.ascontiguousarray(tensors[f"{name}.weight"].T), tensors[f"{name}.bias"])


def _normalisation(tensors: Mapping[str, Array], name: str) -> Normalisation:
    return Normalisation(tensors[f"{name}.weight"], tensors[f"{name}.bias"])


# The graph, for any arithmetic of its projections.

SiteKind = Literal["query_key_value", "attention_output", "inner", "outer"]


@dataclass(frozen=True, slots=True)
class Site:
    """One place where activations meet weights: the input of a projection.

    Attributes:
        layer: Zero-based.
        kind: Which projection of the layer reads it.
    """

    layer: int
    kind: SiteKind


@dataclass(frozen=True, slots=True)
class Activation:
    """A tensor in the form in which projections read it.

    Attributes:
        tensor: Its name in the graph.
        site: Where it is.
        channels: Which channels of the site it holds, ascending or not; None for all.
    """

    tensor: str
    site: Site
    channels: NDArray[np.intp] | None = None


class Arithmetic:
    """How the projections of an encoder are computed: here in 32-bit float, as the reference."""

    def words(self, graph: GraphBuilder, table: Array) -> str:
        """Look the `input_ids` up in the table of word vectors; returns a float tensor's name."""
        return graph.node("Gather", [graph.constant(table), "input_ids"])

    def prepare(self, _graph: GraphBuilder, activation: Activation, /) -> str:
        """Bring an activation into the form that `project` reads."""
        return activation.tensor

    def project(
        self, graph: GraphBuilder, _activation: Activation, prepared: str, projection: Projection, /
    ) -> str:
        """Compute `activation @ weight + bias`; returns a float tensor's name."""
        product = graph.node("MatMul", [prepared, graph.constant(projection.weight)])
        return graph.node("Add", [product, graph.constant(projection.bias)])

    def outer_groups(self, _layer: int, channels: int, /) -> Sequence[NDArray[np.intp]]:
        """Split the feed-forward channels into groups that are computed apart and summed."""
        return [np.arange(channels)]


class FloatArithmetic(Arithmetic):
    """Keeps the names of the tensors that activations are recorded from."""

    def __init__(self) -> None:
        self.tensors: dict[Site, str] = {}

    def prepare(self, graph: GraphBuilder, activation: Activation, /) -> str:
        """Note the tensor's name; floats need no preparation."""
        self.tensors[activation.site] = activation.tensor
        return super().prepare(graph, activation)


def build_encoder(weights: EncoderWeights, arithmetic: Arithmetic) -> ModelProto:
    """Build the encoder with mean pooling.

    The outputs are `embedding` (rows of length 1) and `pooled` (the mean before that), both float32
    (batch, hidden). Components add `content` (the pooled output projected, whose rows `embedding`
    then brings to length 1), and as far as they have the heads, `importance` (batch,) and
    `memory_type` (batch, 4), the logits. All of these are computed in float.
    """
    return _EmbedderWriter(weights, arithmetic).write()


class EncoderWriter:
    """Writes what embedders and rerankers have in common: from token ids to the last layer."""

    def __init__(self, weights: EncoderWeights, arithmetic: Arithmetic) -> None:
        self.graph = GraphBuilder()
        self.weights = weights
        self.arithmetic = arithmetic
        self.mask = self.graph.node("Cast", ["attention_mask"], attributes={"to": INT32})

    def last_layer(self) -> str:
        """Write the whole encoder; the tensor has shape (batch, tokens, hidden)."""
        hidden = self._embed()
        for number, layer in enumerate(self.weights.layers):
            attended = self._attend(number, layer, hidden)
            hidden = self._add_and_normalise(attended, hidden, layer.attention_norm)
            fed = self._feed_forward(number, layer, hidden)
            hidden = self._add_and_normalise(fed, hidden, layer.outer_norm)
        return hidden

    def words(self) -> str:
        """Write what is known of each token without its position; (batch, tokens, hidden)."""
        return self.arithmetic.words(self.graph, self.weights.words)

    def present(self) -> str:
        """Write the mask in float: 1 for each token, 0 for padding."""
        return self.graph.node("Cast", ["attention_mask"], attributes={"to": FLOAT})

    def mean(self, hidden: str, counted: str) -> str:
        """Write the mean over the tokens that count, by weights of shape (batch, tokens)."""
        graph = self.graph
        axis = graph.constant(np.array([1]))
        row = graph.node("Unsqueeze", [counted, axis])
        total = graph.node("Squeeze", [graph.node("MatMul", [row, hidden]), axis])
        count = graph.node("ReduceSum", [counted, axis], attributes={"keepdims": 1})
        return graph.node("Div", [total, count])

    def linear(self, tensor: str, layer: Linear) -> str:
        """Write a dense layer in float over rows of shape (batch, inputs)."""
        weight, bias = self.graph.constant(layer.weight), self.graph.constant(layer.bias)
        return self.graph.node("Gemm", [tensor, weight, bias], attributes={"transB": 1})

    def _embed(self) -> str:
        graph = self.graph
        words = self.words()
        tokens = graph.node("Shape", ["input_ids"], attributes={"start": 1, "end": 2})
        zero = graph.constant(np.array([0]))
        table = graph.constant(self.weights.positions)
        positions = graph.node("Slice", [table, zero, tokens, zero])
        return self._add_and_normalise(words, positions, self.weights.embedding_norm)

    def _attend(self, number: int, layer: LayerWeights, hidden: str) -> str:
        width = self.weights.words.shape[1]
        entry = Activation(hidden, Site(number, "query_key_value"))
        joined = self._project(entry, layer.query_key_value)
        sizes = self.graph.constant(np.array([width] * 3))
        parts = self.graph.nodes("Split", [joined, sizes], outputs=3, attributes={"axis": 2})
        # "" leaves out the optional bias: the projection has added it
        inputs, counted = [*parts, "", self.mask], {"num_heads": self.weights.heads}
        heads = self.graph.node("MultiHeadAttention", inputs, domain=MICROSOFT, attributes=counted)
        attended = Activation(heads, Site(number, "attention_output"))
        return self._project(attended, layer.attention_output)

    def _feed_forward(self, number: int, layer: LayerWeights, hidden: str) -> str:
        entry = Activation(hidden, Site(number, "inner"))
        prepared = self.arithmetic.prepare(self.graph, entry)
        total = ""
        groups = self.arithmetic.outer_groups(number, layer.outer.weight.shape[0])
        for channels in groups:
            inner = Projection(layer.inner.weight[:, channels], layer.inner.bias[channels])
            raised = self.arithmetic.project(self.graph, entry, prepared, inner)
            active = self.graph.node("Gelu", [raised])
            bias = layer.outer.bias if not total else np.zeros_like(layer.outer.bias)
            outer = Projection(layer.outer.weight[channels], bias)
            part = self._project(Activation(active, Site(number, "outer"), channels), outer)
            total = self.graph.node("Add", [total, part]) if total else part
        return total

    def _project(self, activation: Activation, projection: Projection) -> str:
        prepared = self.arithmetic.prepare(self.graph, activation)
        return self.arithmetic.project(self.graph, activation, prepared, projection)

    def _add_and_normalise(self, left: str, right: str, norm: Normalisation) -> str:
        # on CPU the fused SkipLayerNormalization is several times slower than these two
        total = self.graph.node("Add", [left, right])
        scale, shift = self.graph.constant(norm.scale), self.graph.constant(norm.shift)
        settings = {"axis": -1, "epsilon": self.weights.epsilon}
        return self.graph.node("LayerNormalization", [total, scale, shift], attributes=settings)


class _EmbedderWriter(EncoderWriter):
    def write(self) -> ModelProto:
        pooled = self.mean(self.last_layer(), self.present())
        self.graph.name_output(pooled, "pooled")
        components = self.weights.components
        parts = {} if components is None else self._parts(pooled, components)
        content = parts.get("content", pooled)
        embedding = self.graph.node("LpNormalization", [content], attributes={"axis": 1, "p": 2})
        for name, tensor in {"embedding": embedding, **parts}.items():
            self.graph.name_output(tensor, name)
        row: list[str | int | None] = ["batch", self.weights.words.shape[1]]
        shapes: dict[str, list[str | int | None]] = {"importance": ["batch"]}
        shapes["memory_type"] = ["batch", len(MEMORY_TYPES)]
        names = ("embedding", "pooled", *parts)
        return self.graph.model([float_output(name, shapes.get(name, row)) for name in names])

    def _parts(self, pooled: str, components: EmbedderComponents) -> dict[str, str]:
        found = {"content": self.linear(pooled, components.projection)}
        if components.importance is not None:
            first, second = components.importance
            active = self.graph.node("Relu", [self.linear(pooled, first)])
            share = self.graph.node("Sigmoid", [self.linear(active, second)])
            axis = self.graph.constant(np.array([1]))
            found["importance"] = self.graph.node("Squeeze", [share, axis])
        if components.memory_type is not None:
            found["memory_type"] = self.linear(pooled, components.memory_type)
        return found
