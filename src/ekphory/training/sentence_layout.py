"""What sentence-transformers has beside an encoder: modules, window, prompts and projection."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ekphory.models.embedder_components import Linear
from ekphory.training.encoder_weights import read_json

DEFAULT_MAX_TOKENS = 256
_PROMPTS_FILE = "config_sentence_transformers.json"
_WINDOW_FILE = "sentence_bert_config.json"
_PASSAGE_PROMPTS = ("document", "passage")
_NO_WINDOW = 10**6
"""Tokenizers that were given no window say a larger number than this."""
_MODULES = (
    ("0", "", "Transformer"),
    ("1", "1_Pooling", "Pooling"),
    ("2", "2_Dense", "Dense"),
    ("3", "3_Normalize", "Normalize"),
)


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


def window_of(directory: Path) -> int:
    """Give the longest input in tokens; sentence-transformers writes it to one of two files."""
    given = (
        _optional_json(directory / _WINDOW_FILE).get("max_seq_length"),
        _optional_json(directory / "tokenizer_config.json").get("model_max_length"),
    )
    numbers = (window for window in given if isinstance(window, int | float))
    return next((int(each) for each in numbers if each < _NO_WINDOW), DEFAULT_MAX_TOKENS)


def prompts_of(directory: Path) -> Prompts:
    """Read the prompts that the directory names; empty ones where it names none."""
    named = _optional_json(directory / _PROMPTS_FILE).get("prompts") or {}
    return Prompts(
        query=named.get("query") or "",
        passage=next(filter(None, map(named.get, _PASSAGE_PROMPTS)), ""),
    )


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
        directory / _PROMPTS_FILE,
        {
            "prompts": {"query": layout.prompts.query, "document": layout.prompts.passage},
            "default_prompt_name": None,
            "similarity_fn_name": "cosine",
        },
    )
    _write(directory / _WINDOW_FILE, {"max_seq_length": layout.max_tokens, "do_lower_case": False})
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


def _optional_json(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}


def _write(path: Path, content: Any) -> None:  # noqa: ANN401  what JSON holds
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n", "utf-8")
