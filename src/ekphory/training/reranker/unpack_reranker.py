"""Turns an exported 8-bit reranker back into weights that training can go on from."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ekphory.errors import MissingExtra, ModelError
from ekphory.models.embedder_components import Linear
from ekphory.models.model_record import MODEL_FILE, TOKENIZER_FILE, read_checked
from ekphory.models.reranker_record import read_reranker_record
from ekphory.training.encoder_weights import Array
from ekphory.training.reranker.cross_encoder_graph import HEAD_FILE
from ekphory.training.unpacked_encoder import GraphReader, write_encoder


def unpack_reranker(source: Path, target: Path) -> None:
    """Write an exported reranker as what a run's folder `model` holds: encoder, tokenizer, head.

    Args:
        source: Directory that `ekphory train export-reranker` wrote.
        target: Made if needed.

    Raises:
        MissingExtra: onnx or safetensors is not installed.
        ModelError: The source is no such model.
    """
    try:
        from safetensors.numpy import save_file
    except ImportError as error:
        raise MissingExtra("export", "Unpacking a reranker") from error
    record = read_reranker_record(source)
    if record.made_by.get("quantisation") != "int8":
        raise ModelError(
            f"{source}: {record.name} is not a reranker of 8-bit integers. "
            "Give one that `ekphory train export-reranker` wrote."
        )
    graph = GraphReader(read_checked(source / MODEL_FILE, record.files[MODEL_FILE]))
    encoder, head = graph.encoder(), _head(graph.dense_layers())
    target.mkdir(parents=True, exist_ok=True)
    write_encoder(encoder, target)
    save_file(head, target / HEAD_FILE)
    (target / TOKENIZER_FILE).write_bytes((source / TOKENIZER_FILE).read_bytes())


def _head(layers: list[Linear]) -> dict[str, Array]:
    # The projection is written twice, for the question and for the target.
    projection, _, dense, match, out = layers
    named = {"projection": projection, "dense": dense, "match": match}
    weights = {f"{name}.weight": layer.weight for name, layer in named.items()}
    shifts = {f"{name}.bias": layer.bias for name, layer in named.items()}
    whole = {**weights, **shifts, "out.weight": out.weight}
    return {name: np.ascontiguousarray(value, np.float32) for name, value in whole.items()}
