"""Turns an exported 8-bit embedder back into weights that training can start from.

The encoder is read node by node in the order in which `encoder_graph` writes it. What comes back is
what the exported model computes with; what rounding to 8 bits took away stays lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from recollect.errors import MissingExtra, ModelError
from recollect.models.embedder_components import EmbedderComponents, Linear, write_components
from recollect.models.model_record import (
    LATE_BOUND_FILE,
    MODEL_FILE,
    TOKENIZER_FILE,
    ModelPart,
    ModelRecord,
    read_checked,
    read_record,
)
from recollect.training.encoder_weights import Array
from recollect.training.sentence_layout import Prompts, SentenceLayout, write_sentence_layout

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

PARTS: tuple[ModelPart, ...] = get_args(ModelPart)
POSITIONS = 512
"""BERT's; beyond the exported ones the last is repeated, so that longer pairs can be read."""


@dataclass(frozen=True, slots=True)
class Unpacked:
    """What stood in an exported model.

    Attributes:
        tensors: By the names of `BertModel`.
        heads: Attention heads.
        positions: Positions that were exported.
        components: The parts beside the encoder.
    """

    tensors: dict[str, Array]
    heads: int
    positions: int
    components: EmbedderComponents


def is_unpackable(record: ModelRecord) -> bool:
    """Tell whether the model is an 8-bit embedder with age, type and both heads."""
    return record.made_by.get("quantisation") == "int8" and set(record.parts) == set(PARTS)


def unpack_embedder(source: Path, target: Path) -> None:
    """Write an exported embedder as `BertModel`, tokenizer and components.

    The directory loads in plain `AutoModel` and `SentenceTransformer`.

    Args:
        source: Directory that `recollect train export` wrote, with components and 8-bit weights.
        target: Made if needed.

    Raises:
        MissingExtra: onnx or safetensors is not installed.
        ModelError: The source is no such model.
    """
    try:
        import onnx
        from safetensors.numpy import save_file
    except ImportError as error:
        raise MissingExtra("export", "Unpacking an embedder") from error
    record = read_record(source)
    if not is_unpackable(record):
        raise ModelError(
            f"{source}: {record.name} is not an 8-bit embedder with age, type and both heads. "
            "Give one that `recollect train export --calibration` wrote."
        )
    graph = read_checked(source / MODEL_FILE, record.files[MODEL_FILE])
    found = _Reader(onnx.load_from_string(graph)).read(_late_bound(source))
    target.mkdir(parents=True, exist_ok=True)
    contiguous = {name: np.ascontiguousarray(value) for name, value in found.tensors.items()}
    save_file(contiguous, target / "model.safetensors", metadata={"format": "pt"})
    write_components(found.components, target)
    (target / TOKENIZER_FILE).write_bytes((source / TOKENIZER_FILE).read_bytes())
    _write_json(target / "config.json", _config(found))
    _write_json(target / "tokenizer_config.json", {"tokenizer_class": "BertTokenizerFast"})
    layout = SentenceLayout(
        projection=found.components.projection,
        max_tokens=found.positions,
        prompts=Prompts(query=record.query_prompt, passage=record.passage_prompt),
    )
    write_sentence_layout(layout, target)


class _Reader:
    def __init__(self, model: ModelProto) -> None:
        from onnx import numpy_helper

        self._constants: dict[str, NDArray[Any]] = {
            each.name: numpy_helper.to_array(each) for each in model.graph.initializer
        }
        self._producers = {name: node for node in model.graph.node for name in node.output}
        self._nodes = list(model.graph.node)

    def read(self, late_bound: tuple[Array, Array]) -> Unpacked:
        tensors = dict(self._embeddings())
        projections = self._of("MatMulIntegerToFloat")
        norms = self._of("LayerNormalization")
        tensors |= self._normalisation("embeddings.LayerNorm", next(norms))
        attention = list(self._of("MultiHeadAttention"))
        for number in range(len(attention)):
            tensors |= dict(self._layer(f"encoder.layer.{number}", projections, norms))
        heads = next(each.i for each in attention[0].attribute if each.name == "num_heads")
        positions = len(self._value(next(self._of("Slice")), 0))
        return Unpacked(tensors, heads, positions, self._components(late_bound))

    def _of(self, *operators: str) -> Iterator[NodeProto]:
        return (node for node in self._nodes if node.op_type in operators)

    def _value(self, node: NodeProto, place: int) -> NDArray[Any]:
        return self._constants[node.input[place]]

    def _embeddings(self) -> Iterator[tuple[str, Array]]:
        gathers = self._of("Gather")
        rows, scales = (self._value(next(gathers), 0) for _ in range(2))
        words = np.asarray(rows.astype(np.float32) * scales, np.float32)
        yield "embeddings.word_embeddings.weight", words
        kept = self._value(next(self._of("Slice")), 0)
        missing = np.repeat(kept[-1:], max(POSITIONS - len(kept), 0), axis=0)
        yield "embeddings.position_embeddings.weight", np.concatenate([kept, missing])
        # The exported positions hold the vector of type 0 already.
        yield "embeddings.token_type_embeddings.weight", np.zeros((2, words.shape[1]), np.float32)

    def _layer(
        self, prefix: str, projections: Iterator[NodeProto], norms: Iterator[NodeProto]
    ) -> Iterator[tuple[str, Array]]:
        weight, bias = self._projection(next(projections))
        for name, rows, shift in zip(
            ("query", "key", "value"),
            np.split(weight, 3, axis=1),
            np.split(bias, 3),
            strict=True,
        ):
            yield f"{prefix}.attention.self.{name}.weight", rows.T
            yield f"{prefix}.attention.self.{name}.bias", shift
        yield from _dense(f"{prefix}.attention.output.dense", *self._projection(next(projections)))
        yield from self._normalisation(f"{prefix}.attention.output.LayerNorm", next(norms)).items()
        # Ordinary and outlying channels stand apart; their order means nothing.
        first_in, first_out, second_in, second_out = (
            self._projection(next(projections)) for _ in range(4)
        )
        yield from _dense(
            f"{prefix}.intermediate.dense",
            np.concatenate([first_in[0], second_in[0]], axis=1),
            np.concatenate([first_in[1], second_in[1]]),
        )
        yield from _dense(
            f"{prefix}.output.dense",
            np.concatenate([first_out[0], second_out[0]]),
            first_out[1] + second_out[1],
        )
        yield from self._normalisation(f"{prefix}.output.LayerNorm", next(norms)).items()

    def _projection(self, node: NodeProto) -> tuple[Array, Array]:
        weight = self._value(node, 1).astype(np.float32) * self._value(node, 3)
        balanced = self._producers[self._producers[node.input[0]].input[0]]
        if balanced.op_type == "Mul":
            weight = weight * self._value(balanced, 1)[:, None]
        return np.asarray(weight, np.float32), self._value(node, 6)

    def _normalisation(self, name: str, node: NodeProto) -> dict[str, Array]:
        return {f"{name}.weight": self._value(node, 1), f"{name}.bias": self._value(node, 2)}

    def _components(self, late_bound: tuple[Array, Array]) -> EmbedderComponents:
        layers = [Linear(self._value(node, 1), self._value(node, 2)) for node in self._of("Gemm")]
        projection, first, second, memory_type = layers
        inverse = np.linalg.inv(projection.weight.astype(np.float64)).T
        age, kind = (np.asarray(rows @ inverse, np.float32) for rows in late_bound)
        return EmbedderComponents(
            age=age,
            type=kind,
            projection=projection,
            importance=(first, second),
            memory_type=memory_type,
        )


def _dense(name: str, weight: Array, bias: Array) -> Iterator[tuple[str, Array]]:
    yield f"{name}.weight", weight.T
    yield f"{name}.bias", bias


def _late_bound(source: Path) -> tuple[Array, Array]:
    with np.load(source / LATE_BOUND_FILE, allow_pickle=False) as parts:
        return parts["age"], parts["type"]


def _config(found: Unpacked) -> dict[str, Any]:
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


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
