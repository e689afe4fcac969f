"""Exports layers that were trained above the shared ones as ONNX in 8-bit integers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ekphory.errors import ModelError
from ekphory.models import onnx_graph
from ekphory.models.late_bound import Linear
from ekphory.models.onnx_reranker import PairTokens
from ekphory.models.reranker import SMALL_RERANKER
from ekphory.models.shared_layers import HIDDEN, LOGITS, MASK, SHARED_OUTPUT, TAGS, SharedLayers
from ekphory_lab.training import static_int8

if TYPE_CHECKING:
    from onnx import ModelProto

HEAD_FILE = "ekphory_heads.safetensors"
_BATCH = 16


class _UpperWriter(onnx_graph.EncoderWriter):
    """Writes the trained layers, from hidden states to logits of pairs and of tokens."""

    def __init__(
        self,
        weights: onnx_graph.EncoderWeights,
        heads: Mapping[str, Linear],
        arithmetic: onnx_graph.Arithmetic,
    ) -> None:
        super().__init__(weights, arithmetic)
        self.heads = heads

    def _embed(self) -> str:
        return HIDDEN

    def write(self) -> ModelProto:
        """Return the graph: hidden states and mask to `logits`, and to `tags` where there are any.

        Their shapes are (batch, kinds) and (batch, tokens, tags).
        """
        graph = self.graph
        hidden = self.last_layer()
        start, end = (graph.constant(np.array([place])) for place in (0, 1))
        tokens = graph.node("Slice", [hidden, start, end, end])
        first = graph.node("Squeeze", [tokens, end])
        joined = graph.node(
            "Concat", [first, self.mean(hidden, self.present())], attributes={"axis": 1}
        )
        graph.name_output(self.linear(joined, self.heads[LOGITS]), LOGITS)
        outputs = [onnx_graph.float_output(LOGITS, ["batch", len(self.heads[LOGITS].bias)])]
        if TAGS in self.heads:
            head = self.heads[TAGS]
            product = graph.node("MatMul", [hidden, graph.constant(head.weight.T.copy())])
            tagged = graph.node("Add", [product, graph.constant(head.bias)])
            graph.name_output(tagged, TAGS)
            outputs.append(onnx_graph.float_output(TAGS, ["batch", "tokens", len(head.bias)]))
        width = int(self.weights.words.shape[1])
        states = onnx_graph.float_output(HIDDEN, ["batch", "tokens", width])
        return graph.model(outputs, inputs=(MASK,), given=(states,))


def quantised_upper_layers(
    source: Path, shared: SharedLayers, ranged: Sequence[PairTokens]
) -> bytes:
    """Return the model of a run in 8 bits.

    Args:
        source: Folder `model` of the run.
        shared: The lower layers.
        ranged: Pairs over which activations are ranged.
    """
    weights, heads = _read(source)

    def build(encoder: onnx_graph.EncoderWeights, arithmetic: onnx_graph.Arithmetic) -> ModelProto:
        return _UpperWriter(encoder, heads, arithmetic).write()

    model = static_int8.quantised(build, weights, _batches(shared, ranged))
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def shared_record(shared: SharedLayers) -> dict[str, str]:
    """Return what a model's record says of the lower layers."""
    return {"name": SMALL_RERANKER, "revision": shared.revision, "output": SHARED_OUTPUT}


def _read(source: Path) -> tuple[onnx_graph.EncoderWeights, dict[str, Linear]]:
    from safetensors.numpy import load_file

    weights = onnx_graph.load_encoder_weights(source)
    path = source / HEAD_FILE
    if not path.is_file():
        raise ModelError(f"{path}: no such file. Name the folder `model` of a reader's run.")
    kept = load_file(path)
    heads = {LOGITS: Linear(kept["weight"], kept["bias"])}
    if "tag_weight" in kept:
        heads[TAGS] = Linear(kept["tag_weight"], kept["tag_bias"])
    return weights, heads


def _batches(
    shared: SharedLayers, tokens: Sequence[PairTokens]
) -> Iterator[dict[str, np.ndarray[Any, Any]]]:
    ordered = sorted(tokens, key=len)
    for start in range(0, len(ordered), _BATCH):
        yield shared.run(ordered[start : start + _BATCH])
