"""What sentence-transformers reads beside an encoder: modules, window, prompts and projection."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from recollect.models.embedder_components import Linear

PROMPTS_FILE = "config_sentence_transformers.json"
WINDOW_FILE = "sentence_bert_config.json"
_MODULES = (
    ("0", "", "Transformer"),
    ("1", "1_Pooling", "Pooling"),
    ("2", "2_Dense", "Dense"),
    ("3", "3_Normalize", "Normalize"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceLayout:
    """What is written beside an encoder with mean pooling.

    Attributes:
        projection: What follows the mean.
        max_tokens: Longest text when the model is used.
        prompts: What stands before queries and documents, by their names.
    """

    projection: Linear
    max_tokens: int
    prompts: Mapping[str, str] = field(default_factory=dict)


def write_sentence_layout(layout: SentenceLayout, directory: Path) -> None:
    """Write the files; the same layout gives the same bytes."""
    modules = [
        {
            "idx": int(number),
            "name": number,
            "path": path,
            "type": f"sentence_transformers.models.{kind}",
        }
        for number, path, kind in _MODULES
    ]
    _write(directory / "modules.json", modules)
    _write(
        directory / PROMPTS_FILE,
        {
            "prompts": {"query": "", "document": ""} | dict(layout.prompts),
            "default_prompt_name": None,
            "similarity_fn_name": "cosine",
        },
    )
    _write(directory / WINDOW_FILE, {"max_seq_length": layout.max_tokens, "do_lower_case": False})
    size = len(layout.projection.bias)
    _write(
        directory / "1_Pooling" / "config.json",
        {"word_embedding_dimension": size, "pooling_mode_mean_tokens": True},
    )
    _write_dense(layout.projection, directory / "2_Dense")
    (directory / "3_Normalize").mkdir(exist_ok=True)


def _write_dense(projection: Linear, directory: Path) -> None:
    from safetensors.numpy import save_file

    size = len(projection.bias)
    _write(
        directory / "config.json",
        {
            "in_features": size,
            "out_features": size,
            "bias": True,
            "activation_function": "torch.nn.modules.linear.Identity",
        },
    )
    tensors = {"linear.weight": projection.weight, "linear.bias": projection.bias}
    contiguous = {name: np.ascontiguousarray(value) for name, value in tensors.items()}
    save_file(contiguous, directory / "model.safetensors")


def _write(path: Path, content: Any) -> None:  # noqa: ANN401  what JSON holds
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n", "utf-8")
