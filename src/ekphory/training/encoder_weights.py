"""The weights of a BERT-like sentence encoder, read from a model directory without torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ekphory.errors import MissingExtra, ModelError
from ekphory.models.embedder_components import EmbedderComponents, read_components

Array = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class EncoderShape:
    """The sizes that decide the graph.

    Attributes:
        hidden: Length of a token's vector.
        heads: Number of attention heads; divides `hidden`.
        layers: Number of encoder layers.
        positions: Longest input in tokens that the weights allow.
        epsilon: What layer normalisation adds to the variance.
    """

    hidden: int
    heads: int
    layers: int
    positions: int
    epsilon: float


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
        shape: Its sizes.
        words: Word vectors, shape (vocabulary, hidden).
        positions: Position vectors plus the vector of token type 0, shape (positions, hidden).
        embedding_norm: After the sum of the two.
        layers: From input to output.
        components: What reads or follows the pooled output; None for a plain sentence encoder.
    """

    shape: EncoderShape
    words: Array
    positions: Array
    embedding_norm: Normalisation
    layers: tuple[LayerWeights, ...]
    components: EmbedderComponents | None = None


def load_encoder_weights(directory: Path) -> EncoderWeights:
    """Read `config.json`, `model.safetensors` and the components of a BERT-like encoder.

    Raises:
        MissingExtra: safetensors is not installed.
        ModelError: A file is missing or the architecture is not the expected one.
    """
    try:
        from safetensors.numpy import load_file
    except ImportError as error:
        raise MissingExtra("export", "Exporting an embedder") from error
    shape = _read_shape(directory)
    path = directory / "model.safetensors"
    if not path.is_file():
        raise ModelError(f"{path}: no such file. Give a directory that holds model.safetensors.")
    loaded: Mapping[str, NDArray[Any]] = load_file(path)
    tensors = {name.removeprefix("bert."): _as_float(value) for name, value in loaded.items()}
    components = read_components(directory)
    if components is not None and components.dimension != shape.hidden:
        raise ModelError(
            f"{directory}: components for {components.dimension} channels beside an encoder of "
            f"{shape.hidden}. Save the model again."
        )
    try:
        return replace(_assemble(tensors, shape), components=components)
    except KeyError as error:
        raise ModelError(
            f"{path}: tensor {error} is missing. Only BERT-like encoders can be exported."
        ) from error


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        ModelError: The file is missing or holds no JSON object.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot be read as JSON ({error}).") from error
    if not isinstance(content, dict):
        raise ModelError(f"{path}: holds no JSON object.")
    return content


def _read_shape(directory: Path) -> EncoderShape:
    config = read_json(directory / "config.json")
    for field, wanted in (("model_type", "bert"), ("hidden_act", "gelu")):
        if config.get(field) != wanted:
            raise ModelError(
                f"{directory / 'config.json'}: {field}={config.get(field)!r} cannot be exported. "
                f"Only {field}={wanted!r} is known."
            )
    return EncoderShape(
        hidden=int(config["hidden_size"]),
        heads=int(config["num_attention_heads"]),
        layers=int(config["num_hidden_layers"]),
        positions=int(config["max_position_embeddings"]),
        epsilon=float(config.get("layer_norm_eps", 1e-12)),
    )


def _as_float(value: NDArray[Any]) -> Array:
    return np.ascontiguousarray(value, dtype=np.float32)


def _assemble(tensors: Mapping[str, Array], shape: EncoderShape) -> EncoderWeights:
    token_type = tensors["embeddings.token_type_embeddings.weight"][0]
    return EncoderWeights(
        shape=shape,
        words=tensors["embeddings.word_embeddings.weight"],
        positions=tensors["embeddings.position_embeddings.weight"] + token_type,
        embedding_norm=_normalisation(tensors, "embeddings.LayerNorm"),
        layers=tuple(_layer(tensors, f"encoder.layer.{i}") for i in range(shape.layers)),
    )


def _layer(tensors: Mapping[str, Array], prefix: str) -> LayerWeights:
    parts = [
        _projection(tensors, f"{prefix}.attention.self.{n}") for n in ("query", "key", "value")
    ]
    return LayerWeights(
        query_key_value=Projection(
            np.concatenate([part.weight for part in parts], axis=1),
            np.concatenate([part.bias for part in parts]),
        ),
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
