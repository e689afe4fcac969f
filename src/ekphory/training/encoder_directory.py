"""Writes and reads the embedder's directory, which plain sentence-transformers loads as well.

Beside the usual files stands `ekphory_components.safetensors`: age, type, projection and heads.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.torch import load_file

from ekphory.errors import ModelError
from ekphory.models.embedder_components import (
    COMPONENTS_FILE,
    components_of,
    write_components,
)
from ekphory.training.agent_encoder import AgentEncoder, load_base_encoder
from ekphory.training.sentence_layout import SentenceLayout, write_sentence_layout

# How the file calls each part.
_PARTS = {
    "age": "age",
    "type": "kind",
    "projection": "projection",
    "importance": "importance",
    "memory_type": "memory_type",
}


def save_agent_encoder(encoder: AgentEncoder, directory: Path) -> None:
    """Write everything; the same weights give the same files."""
    directory.mkdir(parents=True, exist_ok=True)
    encoder.parts["encoder"].save_pretrained(directory)
    encoder.tokenizer.save_pretrained(directory)
    components = components_of(_components(encoder), where=directory)
    layout = SentenceLayout(
        projection=components.projection,
        max_tokens=encoder.max_tokens,
        prompts=encoder.prompts,
    )
    write_sentence_layout(layout, directory)
    write_components(components, directory)


def load_agent_encoder(directory: Path) -> AgentEncoder:
    """Read a directory with components; with none, projection, age and type say nothing.

    Raises:
        ModelError: It cannot be loaded, or its components are not those of this encoder.
    """
    encoder = load_base_encoder(directory)
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
        f"{name}.{key}": value.detach().cpu().numpy()
        for name, part in _PARTS.items()
        for key, value in encoder.parts[part].state_dict().items()
    }
