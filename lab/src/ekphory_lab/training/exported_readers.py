"""Brings an exported reader back into floats, so that training goes on from it. Needs torch.

The weights are those of the 8-bit file times their scales. What rounding took is not brought back;
what was moved between channels before it stays there, which changes nothing of the result.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import numpy_helper
from safetensors.torch import save_file
from transformers import BertConfig, BertModel

from ekphory.errors import ModelError
from ekphory.models import onnx_capture_reader, onnx_change_reader
from ekphory.models.model_record import MODEL_FILE, RECORD_FILE, read_checked
from ekphory_lab.training.reader_export import HEAD_FILE
from ekphory_lab.training.readers import KEPT_LAYERS

_READERS = (onnx_capture_reader.RECORD_KIND, onnx_change_reader.RECORD_KIND)
_PARTS = ("query", "key", "value")
_NORMS = ("attention.output.LayerNorm", "output.LayerNorm")
_Projected = tuple[NDArray[Any], NDArray[Any]]
"""Weights, shape (inputs, outputs), and the bias."""


def write_as_trained(source: Path, target: Path) -> Path:
    """Write the folder `model` of a run whose export a reader could be; return it.

    Its vectors of words are not the reader's: what is trained stands above the shared layers.

    Args:
        source: Folder of the exported reader.
        target: The folder `model`; made if needed.

    Raises:
        ModelError: It is another model, or a file of it is damaged.
    """
    graph = _Graph(_read_model(source))
    products, norms = graph.products(), iter(graph.norms())
    each = len(products) // len(KEPT_LAYERS)
    encoder = BertModel(_config(graph, inner=_inner_width(products[:each])))
    for number, layer in enumerate(encoder.encoder.layer):
        state = _projections(products[number * each : (number + 1) * each])
        for name, (weight, bias) in zip(_NORMS, norms, strict=False):
            state |= {f"{name}.weight": weight, f"{name}.bias": bias}
        layer.load_state_dict({name: _tensor(value) for name, value in state.items()})
    encoder.save_pretrained(target)
    heads = {name: _tensor(value) for name, value in graph.heads().items()}
    save_file(heads, target / HEAD_FILE)
    return target


def _read_model(source: Path) -> bytes:
    try:
        record = json.loads((source / RECORD_FILE).read_text(encoding="utf-8"))
        kind, sha256 = record["kind"], record["files"][MODEL_FILE]
    except (ValueError, KeyError, TypeError) as error:
        problem = f"{source / RECORD_FILE}: is not the record of a model ({error!r})"
        raise ModelError(f"{problem}. Export the reader again.") from error
    if kind not in _READERS:
        named = f"Name one of these: {', '.join(_READERS)}."
        raise ModelError(f"{source}: holds a model of the kind {kind!r}. {named}")
    return read_checked(source / MODEL_FILE, sha256)


class _Graph:
    """The constants of an exported reader, in the order of the nodes that use them."""

    def __init__(self, model: bytes) -> None:
        graph = onnx.load_from_string(model).graph
        self._constants = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
        self._nodes = list(graph.node)
        self._made_by = {name: node for node in self._nodes for name in node.output}

    def products(self) -> list[_Projected]:
        """Return the projections of the encoder, in floats."""
        return [self._unround(node) for node in self.of_kind("MatMulIntegerToFloat")]

    def norms(self) -> list[_Projected]:
        """Return scale and shift of each normalisation."""
        return [self._given(node) for node in self.of_kind("LayerNormalization")]

    def heads(self) -> dict[str, NDArray[Any]]:
        """Return the classifiers' weights by their name in the file of heads."""
        (head,) = self.of_kind("Gemm")
        weight, bias = self._given(head)
        found = {"weight": weight, "bias": bias}
        for product in self.of_kind("MatMul"):
            if product.input[1] in self._constants:
                (added,) = (node for node in self._nodes if product.output[0] in node.input)
                found["tag_weight"] = self._constants[product.input[1]].T
                found["tag_bias"] = self._constants[added.input[1]]
        return found

    def setting(self, kind: str, name: str) -> Any:  # noqa: ANN401  onnx's
        """Return an attribute of the nodes of one kind."""
        return next(each for each in next(self.of_kind(kind)).attribute if each.name == name)

    def of_kind(self, kind: str) -> Iterator[Any]:
        """Yield the nodes of one kind."""
        return (node for node in self._nodes if node.op_type == kind)

    def _given(self, node: Any) -> _Projected:  # noqa: ANN401  onnx's
        weight, bias = node.input[1:]
        return self._constants[weight], self._constants[bias]

    def _unround(self, product: Any) -> _Projected:  # noqa: ANN401  onnx's
        given, rounded, _, scales, _, _, bias = product.input
        weight = self._constants[rounded].astype(np.float32) * self._constants[scales]
        before = self._made_by[self._made_by[given].input[0]]
        if before.op_type == "Mul":
            # The channels were balanced before rounding, and the weights against them.
            weight = weight * self._constants[before.input[1]][:, None]
        return weight, self._constants[bias]


def _config(graph: _Graph, *, inner: int) -> BertConfig:
    return BertConfig(
        vocab_size=1,
        hidden_size=len(graph.norms()[0][1]),
        num_hidden_layers=len(KEPT_LAYERS),
        num_attention_heads=graph.setting("MultiHeadAttention", "num_heads").i,
        intermediate_size=inner,
        layer_norm_eps=graph.setting("LayerNormalization", "epsilon").f,
    )


def _inner_width(layer: Sequence[_Projected]) -> int:
    return sum(len(bias) for _, bias in layer[2::2])


def _projections(layer: Sequence[_Projected]) -> dict[str, NDArray[Any]]:
    """Return a layer's projections by the names that BERT gives them."""
    (joined, joined_bias), (output, output_bias), *forward = layer
    # The channels of the feed-forward part are split in two: the ordinary, and a few apart.
    inner, outer = forward[::2], forward[1::2]
    weights, biases = np.split(joined, 3, axis=1), np.split(joined_bias, 3)
    state = {
        f"attention.self.{part}.weight": weight.T
        for part, weight in zip(_PARTS, weights, strict=True)
    }
    state |= {
        f"attention.self.{part}.bias": bias for part, bias in zip(_PARTS, biases, strict=True)
    }
    return state | {
        "attention.output.dense.weight": output.T,
        "attention.output.dense.bias": output_bias,
        "intermediate.dense.weight": np.concatenate([weight.T for weight, _ in inner]),
        "intermediate.dense.bias": np.concatenate([bias for _, bias in inner]),
        "output.dense.weight": np.concatenate([weight.T for weight, _ in outer], axis=1),
        "output.dense.bias": np.sum([bias for _, bias in outer], axis=0),
    }


def _tensor(value: NDArray[Any]) -> Any:  # noqa: ANN401  torch's
    return torch.from_numpy(np.array(value, np.float32))
