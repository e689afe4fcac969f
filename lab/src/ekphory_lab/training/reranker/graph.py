"""The ONNX graph of the cross-encoder, for any arithmetic of its projections."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ekphory.errors import MissingExtra, ModelError
from ekphory.models.late_bound import Linear
from ekphory.models.onnx_graph import (
    FLOAT,
    PAIR_INPUTS,
    Arithmetic,
    Array,
    EncoderWeights,
    EncoderWriter,
    float_output,
    load_encoder_weights,
)
from ekphory.models.onnx_reranker import MOST_TOKENS

if TYPE_CHECKING:
    from onnx import ModelProto


HEAD_FILE = "ekphory_reranker.safetensors"
"""What stands beside the encoder's weights in a trained cross-encoder's directory."""
LOGITS = "logits"


@dataclass(frozen=True, slots=True)
class CrossEncoderWeights:
    """A whole cross-encoder.

    Attributes:
        encoder: Its encoder.
        second_type: What token type 1 adds to a token beyond type 0, shape (hidden,).
        projection, match, dense, out: The head, as `models.py` has it.
        separator: Token id of [SEP].
        stored: How the head's two matrices are stored; they are computed in 32 bits.
    """

    encoder: EncoderWeights
    second_type: Array
    projection: Linear
    match: Linear
    dense: Linear
    out: Linear
    separator: int
    stored: Literal["float32", "float16"] = "float32"


def load_cross_encoder_weights(directory: Path, *, separator: int) -> CrossEncoderWeights:
    """Read a trained cross-encoder without torch; positions beyond the layout's are left out.

    Args:
        directory: Holds `config.json`, `model.safetensors` and the head.
        separator: Token id of [SEP].

    Raises:
        MissingExtra: safetensors is not installed.
        ModelError: A file is missing or holds something else.
    """
    try:
        from safetensors.numpy import load_file
    except ImportError as error:
        raise MissingExtra("export", "Exporting a reranker") from error
    path = directory / HEAD_FILE
    if not path.is_file():
        raise ModelError(f"{path}: no such file. Give the folder `model` of a reranker's run.")
    encoder = load_encoder_weights(directory)
    head = load_file(path)
    words = load_file(directory / "model.safetensors")
    try:
        types = words["embeddings.token_type_embeddings.weight"].astype(np.float32)
        parts: dict[str, Any] = {
            name: Linear(head[f"{name}.weight"], head.get(f"{name}.bias", _no_bias(head, name)))
            for name in ("projection", "match", "dense", "out")
        }
    except KeyError as error:
        raise ModelError(
            f"{directory}: tensor {error} is missing. Train the model again."
        ) from error
    shortened = replace(encoder, positions=encoder.positions[:MOST_TOKENS])
    return CrossEncoderWeights(
        encoder=shortened, second_type=types[1] - types[0], separator=separator, **parts
    )


def build_cross_encoder(weights: CrossEncoderWeights, arithmetic: Arithmetic) -> ModelProto:
    """Build the graph: `input_ids`, `attention_mask`, `token_type_ids` to `logits` (batch,).

    The encoder's projections follow `arithmetic`, the head is computed in float.
    """
    return _CrossEncoderWriter(weights, arithmetic).write()


class _CrossEncoderWriter(EncoderWriter):
    def __init__(self, weights: CrossEncoderWeights, arithmetic: Arithmetic) -> None:
        super().__init__(weights.encoder, arithmetic)
        self.whole = weights

    def words(self) -> str:
        added = np.stack([np.zeros_like(self.whole.second_type), self.whole.second_type])
        types = self.graph.node("Gather", [self.graph.constant(added), "token_type_ids"])
        return self.graph.node("Add", [super().words(), types])

    def write(self) -> ModelProto:
        graph, whole = self.graph, self.whole
        hidden, present = self.last_layer(), self.present()
        part = self.part()
        question = self.vector(hidden, present, part, 0)
        target = self.vector(hidden, present, part, 1)
        axis = graph.constant(np.array([1]))
        product = graph.node("Mul", [question, target])
        cosine = graph.node("ReduceSum", [product, axis], attributes={"keepdims": 1})
        rest = graph.node("Tanh", [self.matrix(self.mean(hidden, present), whole.dense)])
        score = graph.node("Add", [self.linear(cosine, whole.match), self.linear(rest, whole.out)])
        graph.name_output(graph.node("Squeeze", [score, axis]), LOGITS)
        return graph.model([float_output(LOGITS, ["batch"])], inputs=PAIR_INPUTS)

    def matrix(self, tensor: str, layer: Linear) -> str:
        if self.whole.stored == "float32":
            return self.linear(tensor, layer)
        stored = self.graph.constant(layer.weight.astype(np.float16))
        weight = self.graph.node("Cast", [stored], attributes={"to": FLOAT})
        bias = self.graph.constant(layer.bias)
        return self.graph.node("Gemm", [tensor, weight, bias], attributes={"transB": 1})

    def part(self) -> str:
        """How many [SEP] stand before each token, in float."""
        graph = self.graph
        ends = graph.node("Equal", ["input_ids", graph.constant(np.array(self.whole.separator))])
        counted = graph.node("Cast", [ends], attributes={"to": FLOAT})
        axis = graph.constant(np.array(1))
        return graph.node("CumSum", [counted, axis], attributes={"exclusive": 1})

    def vector(self, hidden: str, present: str, part: str, number: int) -> str:
        graph = self.graph
        inside = graph.node("Equal", [part, graph.constant(np.array(number, np.float32))])
        inside = graph.node("Cast", [inside], attributes={"to": FLOAT})
        mean = self.mean(hidden, graph.node("Mul", [inside, present]))
        projected = self.matrix(mean, self.whole.projection)
        return graph.node("LpNormalization", [projected], attributes={"axis": 1, "p": 2})


def _no_bias(head: dict[str, Array], name: str) -> Array:
    return np.zeros(len(head[f"{name}.weight"]), np.float32)
