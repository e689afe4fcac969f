"""What an ONNX embedder is exported from: a sentence-transformers directory, checked."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from ekphory.errors import ModelError
from ekphory.models.embedder_components import EmbedderComponents
from ekphory.models.model_record import TOKENIZER_FILE
from ekphory.models.torch_layouts import AGENTRANK_FILE
from ekphory.training.encoder_weights import EncoderWeights, load_encoder_weights, read_json
from ekphory.training.sentence_layout import prompts_of, window_of

_EXPORTABLE = frozenset({"Transformer", "Pooling", "Dense", "Normalize"})


@dataclass(frozen=True, slots=True)
class ExportSource:
    """A model to export.

    Attributes:
        weights: Its encoder, and its components where it has some.
        tokenizer: Its tokenizer.
        max_tokens: Its longest input, special tokens included.
        query_prompt, passage_prompt: What stands before every query, and every passage.
    """

    weights: EncoderWeights
    tokenizer: Tokenizer
    max_tokens: int
    query_prompt: str
    passage_prompt: str


def load_export_source(directory: Path) -> ExportSource:
    """Read a model directory.

    Raises:
        MissingExtra: safetensors is not installed.
        ModelError: A file is missing, or the model does what the graph cannot.
    """
    if (directory / AGENTRANK_FILE).is_file():
        raise ModelError(
            f"{directory / AGENTRANK_FILE}: AgentRank's layout is not exported as it is. "
            "Save it anew: Embedder.from_pretrained(directory).save_pretrained(other)"
        )
    weights = load_encoder_weights(directory)
    _check_modules(directory, weights)
    max_tokens = min(window_of(directory), weights.shape.positions)
    path = directory / TOKENIZER_FILE
    if not path.is_file():
        raise ModelError(f"{path}: no such file. Save the model with a fast tokenizer.")
    prompts = prompts_of(directory)
    return ExportSource(
        weights=replace(weights, positions=weights.positions[:max_tokens]),
        tokenizer=Tokenizer.from_file(str(path)),
        max_tokens=max_tokens,
        query_prompt=prompts.query,
        passage_prompt=prompts.passage,
    )


def _check_modules(directory: Path, weights: EncoderWeights) -> None:
    path = directory / "1_Pooling" / "config.json"
    if path.is_file() and not _is_mean(read_json(path)):
        raise ModelError(f"{directory / '1_Pooling'}: only mean pooling can be exported.")
    kinds = _module_kinds(directory)
    if kinds - _EXPORTABLE:
        raise ModelError(f"{directory}: module {sorted(kinds - _EXPORTABLE)} cannot be exported.")
    if "Dense" in kinds and weights.components is None:
        raise ModelError(f"{directory}: a Dense module without components cannot be exported.")
    if weights.components is not None:
        _check_projection(directory / "2_Dense" / "model.safetensors", weights.components)


def _is_mean(pooling: dict[str, Any]) -> bool:
    return bool(pooling.get("pooling_mode_mean_tokens")) or pooling.get("pooling_mode") == "mean"


def _module_kinds(directory: Path) -> set[str]:
    """Names of the module classes; none where `modules.json` is missing."""
    path = directory / "modules.json"
    if not path.is_file():
        return set()
    return {str(module["type"]).rpartition(".")[2] for module in json.loads(path.read_text())}


def _check_projection(path: Path, components: EmbedderComponents) -> None:
    """Refuse components that sentence-transformers would not agree with."""
    if not path.is_file():
        return
    from safetensors.numpy import load_file

    found = load_file(path)
    projection = components.projection
    expected = {"linear.weight": projection.weight, "linear.bias": projection.bias}
    for name, value in expected.items():
        if name not in found or not np.array_equal(found[name], value):
            raise ModelError(
                f"{path}: {name} is not the projection of the components beside it. "
                "Save the model again."
            )
