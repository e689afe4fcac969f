"""Writes and reads the embedder's directory, which plain sentence-transformers loads as well.

Beside the usual files stands `recollect_components.safetensors`: age, type, projection and heads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

from recollect.errors import ModelError
from recollect.models.embedder_components import (
    COMPONENTS_FILE,
    components_of,
    write_components,
)
from recollect.training.agent_encoder import AgentEncoder, load_base_encoder

# How the file calls each part.
_PARTS = {
    "age": "age",
    "type": "kind",
    "projection": "projection",
    "importance": "importance",
    "memory_type": "memory_type",
}
_MODULES = (
    ("0", "", "Transformer"),
    ("1", "1_Pooling", "Pooling"),
    ("2", "2_Dense", "Dense"),
    ("3", "3_Normalize", "Normalize"),
)


def save_agent_encoder(encoder: AgentEncoder, directory: Path) -> None:
    """Write everything; the same weights give the same files."""
    directory.mkdir(parents=True, exist_ok=True)
    encoder.parts["encoder"].save_pretrained(directory)
    encoder.tokenizer.save_pretrained(directory)
    _write_settings(encoder, directory)
    _save_dense(encoder, directory / "2_Dense")
    write_components(components_of(_components(encoder), where=directory), directory)


def load_agent_encoder(directory: Path, *, dropout: float = 0.0) -> AgentEncoder:
    """Read a directory with components; with none, projection, age and type say nothing.

    Raises:
        ModelError: It cannot be loaded, or its components are not those of this encoder.
    """
    encoder = load_base_encoder(directory, dropout=dropout)
    path = directory / COMPONENTS_FILE
    if not path.is_file():
        return encoder
    tensors = load_file(path)
    for name, part in _PARTS.items():
        own = {
            key.removeprefix(f"{name}."): value
            for key, value in tensors.items()
            if key.startswith(f"{name}.")
        }
        try:
            encoder.parts[part].load_state_dict(own)
        except RuntimeError as error:
            raise ModelError(f"{path}: does not fit its encoder ({error}).") from error
    return encoder


def _components(encoder: AgentEncoder) -> dict[str, NDArray[np.float32]]:
    return {
        f"{name}.{key}": value.detach().numpy()
        for name, part in _PARTS.items()
        for key, value in encoder.parts[part].state_dict().items()
    }


def _save_dense(encoder: AgentEncoder, directory: Path) -> None:
    directory.mkdir(exist_ok=True)
    size = encoder.dimension
    _write(
        directory / "config.json",
        {
            "in_features": size,
            "out_features": size,
            "bias": True,
            "activation_function": "torch.nn.modules.linear.Identity",
        },
    )
    projection = encoder.parts["projection"]
    tensors = {"linear.weight": projection.weight, "linear.bias": projection.bias}
    save_file(
        {name: value.detach().contiguous() for name, value in tensors.items()},
        directory / "model.safetensors",
    )


def _write_settings(encoder: AgentEncoder, directory: Path) -> None:
    modules = [
        {
            "idx": int(number),
            "name": number,
            "path": path,
            "type": f"sentence_transformers.models.{kind}",
        }
        for number, path, kind in _MODULES
    ]
    (directory / "modules.json").write_text(json.dumps(modules, indent=2) + "\n", "utf-8")
    _write(
        directory / "config_sentence_transformers.json",
        {
            "prompts": {"query": "", "document": ""},
            "default_prompt_name": None,
            "similarity_fn_name": "cosine",
        },
    )
    _write(
        directory / "sentence_bert_config.json",
        {"max_seq_length": encoder.max_tokens, "do_lower_case": False},
    )
    (directory / "1_Pooling").mkdir(exist_ok=True)
    _write(
        directory / "1_Pooling" / "config.json",
        {"word_embedding_dimension": encoder.dimension, "pooling_mode_mean_tokens": True},
    )
    (directory / "3_Normalize").mkdir(exist_ok=True)


def _write(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", "utf-8")
