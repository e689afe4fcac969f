"""Turns an exported 8-bit embedder back into weights."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from ekphory.errors import MissingExtra, ModelError
from ekphory.models.late_bound import EmbedderComponents, Linear, write_components
from ekphory.models.model_record import (
    LATE_BOUND_FILE,
    MODEL_FILE,
    TOKENIZER_FILE,
    ModelPart,
    ModelRecord,
    read_checked,
    read_record,
)
from ekphory.models.onnx_export import Prompts, SentenceLayout, write_sentence_layout
from ekphory.models.onnx_graph import Array

if TYPE_CHECKING:
    from onnx import NodeProto


# Node by node, as `onnx_graph.py` writes them. What comes back is what the exported model computes
# with; what rounding to 8 bits took away stays lost.

POSITIONS = 512
"""BERT's; beyond the exported ones the last is repeated, so that longer texts can be read."""


Pair = tuple[Array, Array]
"""Weight and bias."""


@dataclass(frozen=True, slots=True)
class UnpackedEncoder:
    """What stood in an exported graph before its head.

    Attributes:
        tensors: By the names of `BertModel`.
        heads: Attention heads.
        positions: Positions that were exported.
    """

    tensors: Mapping[str, Array]
    heads: int
    positions: int


class GraphReader:
    """Reads an exported graph of embedder or reranker.

    Raises:
        MissingExtra: onnx is not installed.
    """

    def __init__(self, content: bytes) -> None:
        try:
            import onnx
            from onnx import numpy_helper
        except ImportError as error:
            raise MissingExtra("export", "Unpacking a model") from error
        graph = onnx.load_from_string(content).graph
        self._constants: dict[str, NDArray[Any]] = {
            each.name: numpy_helper.to_array(each) for each in graph.initializer
        }
        self._producers = {name: node for node in graph.node for name in node.output}
        self._nodes = list(graph.node)

    def encoder(self) -> UnpackedEncoder:
        """Read everything up to the last layer."""
        pairs = {"embeddings.LayerNorm": next(norms := self._normalisations())}
        projections = map(self._projection, self._of("MatMulIntegerToFloat"))
        attention = list(self._of("MultiHeadAttention"))
        for number in range(len(attention)):
            for name, pair in _name_layer(projections, norms):
                pairs[f"encoder.layer.{number}.{name}"] = pair
        tensors = self._embeddings()
        for name, (weight, bias) in pairs.items():
            tensors |= {f"{name}.weight": weight, f"{name}.bias": bias}
        heads = next(each.i for each in attention[0].attribute if each.name == "num_heads")
        positions = len(self._value(next(self._of("Slice")), 0))
        return UnpackedEncoder(tensors, heads, positions)

    def dense_layers(self) -> list[Linear]:
        """Read the layers that are computed in float, in the order in which they were written."""
        return [
            Linear(self._stored(node.input[1]), self._value(node, 2)) for node in self._of("Gemm")
        ]

    def _of(self, operator: str) -> Iterator[NodeProto]:
        return (node for node in self._nodes if node.op_type == operator)

    def _value(self, node: NodeProto, place: int) -> NDArray[Any]:
        return self._constants[node.input[place]]

    def _stored(self, name: str) -> Array:
        # 16-bit matrices are brought to 32 bits by a node between.
        if name not in self._constants:
            name = self._producers[name].input[0]
        return np.asarray(self._constants[name], np.float32)

    def _embeddings(self) -> dict[str, Array]:
        tables = [self._value(node, 0) for node in self._of("Gather")]
        # Whoever tells token types apart looks them up before the words.
        *types, rows, scales = tables
        words = np.asarray(rows.astype(np.float32) * scales, np.float32)
        kept = self._value(next(self._of("Slice")), 0)
        missing = np.repeat(kept[-1:], max(POSITIONS - len(kept), 0), axis=0)
        # The exported positions hold the vector of type 0 already.
        none = np.zeros((2, words.shape[1]), np.float32)
        return {
            "embeddings.word_embeddings.weight": words,
            "embeddings.position_embeddings.weight": np.concatenate([kept, missing]),
            "embeddings.token_type_embeddings.weight": types[0] if types else none,
        }

    def _projection(self, node: NodeProto) -> Pair:
        weight = self._value(node, 1).astype(np.float32) * self._value(node, 3)
        balanced = self._producers[self._producers[node.input[0]].input[0]]
        if balanced.op_type == "Mul":
            weight = weight * self._value(balanced, 1)[:, None]
        return np.asarray(weight.T, np.float32), self._value(node, 6)

    def _normalisations(self) -> Iterator[Pair]:
        nodes = self._of("LayerNormalization")
        return ((self._value(node, 1), self._value(node, 2)) for node in nodes)


def _name_layer(projections: Iterator[Pair], norms: Iterator[Pair]) -> Iterator[tuple[str, Pair]]:
    """Take the projections and normalisations of one encoder layer, and name them."""
    weight, bias = next(projections)
    parts = zip(np.split(weight, 3), np.split(bias, 3), strict=True)
    for name, part in zip(("query", "key", "value"), parts, strict=True):
        yield f"attention.self.{name}", part
    yield "attention.output.dense", next(projections)
    yield "attention.output.LayerNorm", next(norms)
    # Ordinary and outlying channels stand apart; their order means nothing.
    first_in, first_out, second_in, second_out = (next(projections) for _ in range(4))
    inner, shifts = zip(first_in, second_in, strict=True)
    yield "intermediate.dense", (np.concatenate(inner), np.concatenate(shifts))
    outer = np.concatenate([first_out[0], second_out[0]], axis=1)
    yield "output.dense", (outer, first_out[1] + second_out[1])
    yield "output.LayerNorm", next(norms)


def write_encoder(found: UnpackedEncoder, target: Path) -> None:
    """Write `model.safetensors`, `config.json` and `tokenizer_config.json` of a `BertModel`.

    Raises:
        MissingExtra: safetensors is not installed.
    """
    try:
        from safetensors.numpy import save_file
    except ImportError as error:
        raise MissingExtra("export", "Unpacking a model") from error
    contiguous = {name: np.ascontiguousarray(value) for name, value in found.tensors.items()}
    save_file(contiguous, target / "model.safetensors", metadata={"format": "pt"})
    contents = {
        "config.json": _config(found),
        "tokenizer_config.json": {"tokenizer_class": "BertTokenizerFast"},
    }
    for name, content in contents.items():
        (target / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _config(found: UnpackedEncoder) -> dict[str, Any]:
    words = found.tensors["embeddings.word_embeddings.weight"]
    return {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": words.shape[1],
        "intermediate_size": found.tensors["encoder.layer.0.intermediate.dense.bias"].shape[0],
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": POSITIONS,
        "num_attention_heads": found.heads,
        "num_hidden_layers": sum(
            name.endswith("attention.self.query.bias") for name in found.tensors
        ),
        "type_vocab_size": 2,
        "vocab_size": words.shape[0],
        "pad_token_id": 0,
    }


def is_unpackable(record: ModelRecord) -> bool:
    """Return whether the model is an 8-bit embedder with age, type and both heads."""
    return record.made_by.get("quantisation") == "int8" and set(record.parts) == set(
        get_args(ModelPart)
    )


def unpack_embedder(source: Path, target: Path) -> None:
    """Write an exported embedder as `BertModel`, tokenizer and components.

    The directory loads in plain `AutoModel` and `SentenceTransformer`.

    Args:
        source: Directory that `ekphory train export` wrote, with components and 8-bit weights.
        target: Made if needed.

    Raises:
        MissingExtra: onnx or safetensors is not installed.
        ModelError: The source is no such model.
    """
    record = read_record(source)
    if not is_unpackable(record):
        raise ModelError(
            f"{source}: {record.name} is not an 8-bit embedder with age, type and both heads. "
            "Give one that `ekphory train export --calibration` wrote."
        )
    graph = GraphReader(read_checked(source / MODEL_FILE, record.files[MODEL_FILE]))
    encoder = graph.encoder()
    projection, first, second, memory_type = graph.dense_layers()
    inverse = np.linalg.inv(projection.weight.astype(np.float64)).T
    with np.load(source / LATE_BOUND_FILE, allow_pickle=False) as parts:
        age, kind = (np.asarray(parts[name] @ inverse, np.float32) for name in ("age", "type"))
    components = EmbedderComponents(age, kind, projection, (first, second), memory_type)
    target.mkdir(parents=True, exist_ok=True)
    write_encoder(encoder, target)
    write_components(components, target)
    (target / TOKENIZER_FILE).write_bytes((source / TOKENIZER_FILE).read_bytes())
    layout = SentenceLayout(
        projection=components.projection,
        max_tokens=encoder.positions,
        prompts=Prompts(query=record.query_prompt, passage=record.passage_prompt),
    )
    write_sentence_layout(layout, target)
