"""The ONNX graph of a BERT-like sentence encoder, for any arithmetic of its projections."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ekphory.models.embedder_components import EmbedderComponents, Linear
from ekphory.training.encoder_weights import (
    Array,
    EncoderWeights,
    LayerWeights,
    Normalisation,
    Projection,
)
from ekphory.training.graph_builder import (
    FLOAT,
    INT32,
    MICROSOFT,
    GraphBuilder,
    float_output,
)
from ekphory.types import MEMORY_TYPES

if TYPE_CHECKING:
    from onnx import ModelProto

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


class Arithmetic(Protocol):
    """How the projections of an encoder are computed."""

    def words(self, graph: GraphBuilder, table: Array) -> str:
        """Look the `input_ids` up in the table of word vectors; returns a float tensor's name."""
        ...

    def prepare(self, graph: GraphBuilder, activation: Activation, /) -> str:
        """Bring an activation into the form that `project` reads."""
        ...

    def project(
        self, graph: GraphBuilder, activation: Activation, prepared: str, projection: Projection, /
    ) -> str:
        """Compute `activation @ weight + bias`; returns a float tensor's name."""
        ...

    def outer_groups(self, layer: int, channels: int, /) -> Sequence[NDArray[np.intp]]:
        """Split the feed-forward channels into groups that are computed apart and summed."""
        ...


class FloatArithmetic:
    """Everything in 32-bit float: the reference, and what activations are recorded with."""

    def __init__(self) -> None:
        self.tensors: dict[Site, str] = {}

    def words(self, graph: GraphBuilder, table: Array) -> str:
        """Look the `input_ids` up."""
        return graph.node("Gather", [graph.constant(table), "input_ids"])

    def prepare(self, _graph: GraphBuilder, activation: Activation, /) -> str:
        """Note the tensor's name; floats need no preparation."""
        self.tensors[activation.site] = activation.tensor
        return activation.tensor

    def project(
        self,
        graph: GraphBuilder,
        _activation: Activation,
        prepared: str,
        projection: Projection,
        /,
    ) -> str:
        """Multiply and add."""
        product = graph.node("MatMul", [prepared, graph.constant(projection.weight)])
        return graph.node("Add", [product, graph.constant(projection.bias)])

    def outer_groups(self, _layer: int, channels: int, /) -> Sequence[NDArray[np.intp]]:
        """All channels together."""
        return [np.arange(channels)]


def build_encoder(weights: EncoderWeights, arithmetic: Arithmetic) -> ModelProto:
    """Build the encoder with mean pooling.

    The outputs are `embedding` (rows of length 1) and `pooled` (the mean before that), both float32
    (batch, hidden). Components add `content` (the pooled output projected, whose rows `embedding`
    then brings to length 1), and as far as they have the heads, `importance` (batch,) and
    `memory_type` (batch, 4), the logits. All of these are computed in float.
    """
    return _EmbedderWriter(weights, arithmetic).write()


def give_out(model: ModelProto, tensors: Iterable[str]) -> None:
    """Make inner float tensors of a model outputs too."""
    model.graph.output.extend(float_output(name, None) for name in tensors)


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
            hidden = self._add_and_normalise(
                self._feed_forward(number, layer, hidden), hidden, layer.outer_norm
            )
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
        return graph.node(
            "Div", [total, graph.node("ReduceSum", [counted, axis], attributes={"keepdims": 1})]
        )

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
        width = self.weights.shape.hidden
        joined = self._project(
            Activation(hidden, Site(number, "query_key_value")), layer.query_key_value
        )
        sizes = self.graph.constant(np.array([width] * 3))
        parts = self.graph.nodes("Split", [joined, sizes], outputs=3, attributes={"axis": 2})
        # "" leaves out the optional bias: the projection has added it
        heads = self.graph.node(
            "MultiHeadAttention",
            [*parts, "", self.mask],
            domain=MICROSOFT,
            attributes={"num_heads": self.weights.shape.heads},
        )
        return self._project(
            Activation(heads, Site(number, "attention_output")), layer.attention_output
        )

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
            part = self._project(
                Activation(active, Site(number, "outer"), channels),
                Projection(layer.outer.weight[channels], bias),
            )
            total = self.graph.node("Add", [total, part]) if total else part
        return total

    def _project(self, activation: Activation, projection: Projection) -> str:
        prepared = self.arithmetic.prepare(self.graph, activation)
        return self.arithmetic.project(self.graph, activation, prepared, projection)

    def _add_and_normalise(self, left: str, right: str, norm: Normalisation) -> str:
        # on CPU the fused SkipLayerNormalization is several times slower than these two
        total = self.graph.node("Add", [left, right])
        scale, shift = self.graph.constant(norm.scale), self.graph.constant(norm.shift)
        return self.graph.node(
            "LayerNormalization",
            [total, scale, shift],
            attributes={"axis": -1, "epsilon": self.weights.shape.epsilon},
        )


class _EmbedderWriter(EncoderWriter):
    def write(self) -> ModelProto:
        pooled = self.mean(self.last_layer(), self.present())
        self.graph.name_output(pooled, "pooled")
        components = self.weights.components
        parts = {} if components is None else self._parts(pooled, components)
        embedding = self.graph.node(
            "LpNormalization", [parts.get("content", pooled)], attributes={"axis": 1, "p": 2}
        )
        for name, tensor in {"embedding": embedding, **parts}.items():
            self.graph.name_output(tensor, name)
        return self.graph.model(
            [float_output(name, self._shape_of(name)) for name in ("embedding", "pooled", *parts)]
        )

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

    def _shape_of(self, output: str) -> list[str | int | None]:
        if output == "importance":
            return ["batch"]
        types = output == "memory_type"
        return ["batch", len(MEMORY_TYPES) if types else self.weights.shape.hidden]
