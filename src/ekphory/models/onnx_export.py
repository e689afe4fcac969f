"""Exports a sentence-transformers directory as an ONNX embedder without torch, and back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from ekphory.errors import MissingExtra, ModelError
from ekphory.models import onnx_graph
from ekphory.models.late_bound import EmbedderComponents, Linear, write_components
from ekphory.models.model_record import (
    LATE_BOUND_FILE,
    MODEL_FILE,
    TOKENIZER_FILE,
    ModelPart,
    ModelRecord,
    content_revision,
    hash_files,
    read_checked,
    read_record,
    write_record,
)
from ekphory.models.torch_embedder import AGENTRANK_FILE

try:
    import onnx
    from onnx import ModelProto, NodeProto, numpy_helper
    from safetensors.numpy import load_file, save_file
except ImportError as error:
    raise MissingExtra("export", "Exporting an embedder") from error

# The files of sentence-transformers beside an encoder.

DEFAULT_MAX_TOKENS = 256
_MODULES_FILE = "modules.json"
_PROMPTS_FILE = "config_sentence_transformers.json"
_WINDOW_FILE = "sentence_bert_config.json"
_POOLING_FILE = "1_Pooling/config.json"
_DENSE_FILE = "2_Dense/model.safetensors"
_PASSAGE_PROMPTS = ("document", "passage")
_NO_WINDOW = 10**6
"""Tokenizers that were given no window say a larger number than this."""
_MODULES = {
    "Transformer": "",
    "Pooling": "1_Pooling",
    "Dense": "2_Dense",
    "Normalize": "3_Normalize",
}
"""Folder of each module, in order."""


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


def read_window(directory: Path) -> int:
    """Return the longest input in tokens; sentence-transformers writes it to one of two files."""
    own = _optional_json(directory / _WINDOW_FILE).get("max_seq_length")
    given = own, _optional_json(directory / "tokenizer_config.json").get("model_max_length")
    numbers = (window for window in given if isinstance(window, int | float))
    return next((int(each) for each in numbers if each < _NO_WINDOW), DEFAULT_MAX_TOKENS)


def read_prompts(directory: Path) -> Prompts:
    """Read the prompts that the directory names; empty ones where it names none."""
    named = _optional_json(directory / _PROMPTS_FILE).get("prompts") or {}
    passage = next(filter(None, map(named.get, _PASSAGE_PROMPTS)), "")
    return Prompts(query=named.get("query") or "", passage=passage)


def write_sentence_layout(layout: SentenceLayout, directory: Path) -> None:
    """Write the files; the same layout gives the same bytes."""
    size, kinds = len(layout.projection.bias), "sentence_transformers.models"
    prompts = {"query": layout.prompts.query, "document": layout.prompts.passage}
    similarity = {"similarity_fn_name": "cosine"}
    identity = {"bias": True, "activation_function": "torch.nn.modules.linear.Identity"}
    contents: dict[str, Any] = {
        _MODULES_FILE: [
            {"idx": number, "name": str(number), "path": folder, "type": f"{kinds}.{kind}"}
            for number, (kind, folder) in enumerate(_MODULES.items())
        ],
        _PROMPTS_FILE: {"prompts": prompts, "default_prompt_name": None, **similarity},
        _WINDOW_FILE: {"max_seq_length": layout.max_tokens, "do_lower_case": False},
        _POOLING_FILE: {"word_embedding_dimension": size, "pooling_mode_mean_tokens": True},
        "2_Dense/config.json": {"in_features": size, "out_features": size, **identity},
    }
    for folder in _MODULES.values():
        (directory / folder).mkdir(exist_ok=True)
    _write_json(contents, directory)
    save_file(_dense_tensors(layout.projection), directory / _DENSE_FILE)


def _write_json(contents: Mapping[str, Any], directory: Path) -> None:
    for name, content in contents.items():
        (directory / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _dense_tensors(projection: Linear) -> dict[str, Any]:
    tensors = {"linear.weight": projection.weight, "linear.bias": projection.bias}
    return {name: np.ascontiguousarray(value) for name, value in tensors.items()}


def _optional_json(path: Path) -> dict[str, Any]:
    return onnx_graph.read_json(path) if path.is_file() else {}


# What is exported: a directory, checked.


@dataclass(frozen=True, slots=True)
class ExportParts:
    """What is written beside the graph of an exported model.

    Attributes:
        components: Its components; None for a plain sentence encoder.
        dimension: Length of a vector.
        tokenizer: Its tokenizer.
        max_tokens: Its longest input, special tokens included.
        prompts: What stands before every query, and every passage.
    """

    components: EmbedderComponents | None
    dimension: int
    tokenizer: Tokenizer
    max_tokens: int
    prompts: Prompts


def load_export_source(directory: Path) -> tuple[onnx_graph.EncoderWeights, ExportParts]:
    """Read a BERT-like model to export: its weights, and what is written beside the graph.

    Raises:
        ModelError: A file is missing, or the model does what the graph cannot.
    """
    if (directory / AGENTRANK_FILE).is_file():
        raise ModelError(
            f"{directory / AGENTRANK_FILE}: AgentRank's layout is not exported as it is. "
            "Save it anew: Embedder.from_pretrained(directory).save_pretrained(other)"
        )
    weights = onnx_graph.load_encoder_weights(directory)
    _check_modules(directory, weights)
    most = min(read_window(directory), len(weights.positions))
    path = directory / TOKENIZER_FILE
    if not path.is_file():
        raise ModelError(f"{path}: no such file. Save the model with a fast tokenizer.")
    tokenizer, width = Tokenizer.from_file(str(path)), weights.words.shape[1]
    parts = ExportParts(weights.components, width, tokenizer, most, read_prompts(directory))
    return replace(weights, positions=weights.positions[:most]), parts


def _check_modules(directory: Path, weights: onnx_graph.EncoderWeights) -> None:
    path = directory / _POOLING_FILE
    pooling = onnx_graph.read_json(path) if path.is_file() else {"pooling_mode": "mean"}
    if not pooling.get("pooling_mode_mean_tokens") and pooling.get("pooling_mode") != "mean":
        raise ModelError(f"{directory / '1_Pooling'}: only mean pooling can be exported.")
    path = directory / _MODULES_FILE
    modules = json.loads(path.read_text()) if path.is_file() else []
    kinds = {str(module["type"]).rpartition(".")[2] for module in modules}
    if unknown := kinds - _MODULES.keys():
        raise ModelError(f"{directory}: module {sorted(unknown)} cannot be exported.")
    if "Dense" in kinds and weights.components is None:
        raise ModelError(f"{directory}: a Dense module without components cannot be exported.")
    path = directory / _DENSE_FILE
    if weights.components is None or not path.is_file():
        return
    found = load_file(path)
    for name, value in _dense_tensors(weights.components.projection).items():
        # sentence-transformers would not agree with such components.
        if name not in found or not np.array_equal(found[name], value):
            problem = f"{path}: {name} is not the projection of the components beside it"
            raise ModelError(f"{problem}. Save the model again.")


# The export itself.


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


_HEADS: tuple[ModelPart, ...] = ("importance", "memory_type")


def export_embedder(source: Path, target: Path, *, description: ModelDescription) -> ModelRecord:
    """Write `model.onnx` in 32-bit float, `tokenizer.json` and `model.json`.

    A source with components gives a graph with `content` and the heads it has, and beside it the
    vectors of age and type, projected, in `late_bound.npz`.

    Args:
        source: A BERT-like sentence-transformers model with mean pooling, weights as safetensors.
        target: Made if needed; the files in it are replaced.
        description: What the record says about the model.

    Raises:
        ModelError: The source cannot be exported.
    """
    weights, parts = load_export_source(source)
    made_by = {"quantisation": "float32", "calibration_texts": 0, "calibration_files": {}}
    model = onnx_graph.build_encoder(weights, onnx_graph.FloatArithmetic())
    return write_export(parts, model, target, description=description, made_by=made_by)


def write_export(
    source: ExportParts,
    model: ModelProto,
    target: Path,
    *,
    description: ModelDescription,
    made_by: Mapping[str, Any],
) -> ModelRecord:
    """Write what `export_embedder` says; the same input gives the same bytes.

    Args:
        source: What is written beside the graph.
        model: The graph.
        target: Made if needed; the files in it are replaced.
        description: What the record says about the model.
        made_by: How the graph was made; part of the record.
    """
    target.mkdir(parents=True, exist_ok=True)
    (target / MODEL_FILE).write_bytes(model.SerializeToString(deterministic=True))
    source.tokenizer.no_padding()
    source.tokenizer.no_truncation()
    source.tokenizer.save(str(target / TOKENIZER_FILE), pretty=False)
    (target / LATE_BOUND_FILE).unlink(missing_ok=True)
    components, names = source.components, [MODEL_FILE, TOKENIZER_FILE]
    parts: tuple[ModelPart, ...] = ()
    if components is not None:
        bound = components.late_bound()
        np.savez(target / LATE_BOUND_FILE, age=bound.age, type=bound.type)
        names.append(LATE_BOUND_FILE)
        heads = (head for head in _HEADS if getattr(components, head) is not None)
        parts = ("late_bound", *heads)
    hashes = hash_files(target, *names)
    prompts = {
        "query": description.query_prompt or source.prompts.query,
        "passage": description.passage_prompt or source.prompts.passage,
    }
    record = ModelRecord(
        name=description.name,
        revision=content_revision(hashes, prompts=prompts),
        dimension=source.dimension,
        max_tokens=source.max_tokens,
        query_prompt=prompts["query"],
        passage_prompt=prompts["passage"],
        parts=parts,
        licence=description.licence,
        source=description.source,
        made_by={"command": "ekphory train export", **made_by},
        files=hashes,
    )
    write_record(record, target)
    return record


# An exported 8-bit embedder turned back into weights, node by node as `onnx_graph.py` writes
# them. What comes back is what the exported model computes
# with; what rounding to 8 bits took away stays lost.

POSITIONS = 512
"""BERT's; beyond the exported ones the last is repeated, so that longer texts can be read."""


Pair = tuple[onnx_graph.Array, onnx_graph.Array]
"""Weight and bias."""


@dataclass(frozen=True, slots=True)
class UnpackedEncoder:
    """What stood in an exported graph before its head.

    Attributes:
        tensors: By the names of `BertModel`.
        heads: Attention heads.
        positions: Positions that were exported.
    """

    tensors: Mapping[str, onnx_graph.Array]
    heads: int
    positions: int


class GraphReader:
    """Reads an exported graph of embedder or reranker."""

    def __init__(self, content: bytes) -> None:
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
        nodes = self._of("Gemm")
        return [Linear(self._stored(node.input[1]), self._value(node, 2)) for node in nodes]

    def _of(self, operator: str) -> Iterator[NodeProto]:
        return (node for node in self._nodes if node.op_type == operator)

    def _value(self, node: NodeProto, place: int) -> NDArray[Any]:
        return self._constants[node.input[place]]

    def _stored(self, name: str) -> onnx_graph.Array:
        # 16-bit matrices are brought to 32 bits by a node between.
        if name not in self._constants:
            name = self._producers[name].input[0]
        return np.asarray(self._constants[name], np.float32)

    def _embeddings(self) -> dict[str, onnx_graph.Array]:
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
    """Write `model.safetensors`, `config.json` and `tokenizer_config.json` of a `BertModel`."""
    contiguous = {name: np.ascontiguousarray(value) for name, value in found.tensors.items()}
    save_file(contiguous, target / "model.safetensors", metadata={"format": "pt"})
    tokenizer = {"tokenizer_class": "BertTokenizerFast"}
    _write_json({"config.json": _config(found), "tokenizer_config.json": tokenizer}, target)


def _config(found: UnpackedEncoder) -> dict[str, Any]:
    vocabulary, width = found.tensors["embeddings.word_embeddings.weight"].shape
    return {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": width,
        "intermediate_size": found.tensors["encoder.layer.0.intermediate.dense.bias"].shape[0],
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": POSITIONS,
        "num_attention_heads": found.heads,
        "num_hidden_layers": sum(name.endswith("self.query.bias") for name in found.tensors),
        "type_vocab_size": 2,
        "vocab_size": vocabulary,
        "pad_token_id": 0,
    }


def unpack_embedder(source: Path, target: Path) -> None:
    """Write an exported embedder as `BertModel`, tokenizer and components.

    The directory loads in plain `AutoModel` and `SentenceTransformer`.

    Args:
        source: Directory that `ekphory train export` wrote, with components and 8-bit weights.
        target: Made if needed.

    Raises:
        ModelError: The source is not such a model.
    """
    record = read_record(source)
    if not record.is_unpackable:
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
    prompts = Prompts(query=record.query_prompt, passage=record.passage_prompt)
    layout = SentenceLayout(projection=projection, max_tokens=encoder.positions, prompts=prompts)
    write_sentence_layout(layout, target)
