"""Turns an exported 8-bit embedder back into weights that training can start from."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import numpy as np

from ekphory.errors import ModelError
from ekphory.models.embedder_components import EmbedderComponents, Linear, write_components
from ekphory.models.model_record import (
    LATE_BOUND_FILE,
    MODEL_FILE,
    TOKENIZER_FILE,
    ModelPart,
    ModelRecord,
    read_checked,
    read_record,
)
from ekphory.training.encoder_weights import Array
from ekphory.training.sentence_layout import Prompts, SentenceLayout, write_sentence_layout
from ekphory.training.unpacked_encoder import GraphReader, write_encoder

PARTS: tuple[ModelPart, ...] = get_args(ModelPart)


def is_unpackable(record: ModelRecord) -> bool:
    """Tell whether the model is an 8-bit embedder with age, type and both heads."""
    return record.made_by.get("quantisation") == "int8" and set(record.parts) == set(PARTS)


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
    components = _components(graph.dense_layers(), _late_bound(source))
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


def _components(layers: list[Linear], late_bound: tuple[Array, Array]) -> EmbedderComponents:
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


def _late_bound(source: Path) -> tuple[Array, Array]:
    with np.load(source / LATE_BOUND_FILE, allow_pickle=False) as parts:
        return parts["age"], parts["type"]
