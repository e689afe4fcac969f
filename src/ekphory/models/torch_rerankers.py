"""Which torch reranker a directory or a hub id is."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from ekphory.errors import MissingExtra, ModelError
from ekphory.models.reranker import LocalReranker

_LOADING_ERRORS = (OSError, ValueError, RuntimeError, KeyError, TypeError)


def load_torch_reranker(
    name_or_path: str, *, runtime: Literal["sentence-transformers", "transformers"] | None = None
) -> LocalReranker:
    """Load a cross-encoder, or a causal language model that answers yes or no.

    Args:
        name_or_path: A model directory, or a hub id, which may be downloaded.
        runtime: What runs it; None takes transformers for causal language models in a directory
            that sentence-transformers did not write, else sentence-transformers.

    Raises:
        MissingExtra: The `[torch]` extra is not installed.
        ModelError: It cannot be loaded, or ranks known pairs wrongly.
    """
    if runtime is None:
        is_plain = not _has_modules(name_or_path) and _is_causal(name_or_path)
        runtime = "transformers" if is_plain else "sentence-transformers"
    if runtime == "transformers":
        from ekphory.models.yes_no_reranker import YesNoReranker

        return YesNoReranker(name_or_path)
    from ekphory.models.torch_cross_encoder import TorchCrossEncoder

    return TorchCrossEncoder(name_or_path)


def _has_modules(name_or_path: str) -> bool:
    # A language model may be part of a CrossEncoder, with a prompt and tokens of its own.
    return (Path(name_or_path) / "modules.json").is_file()


def _is_causal(name_or_path: str) -> bool:
    try:
        from transformers import AutoConfig
    except ImportError as error:
        raise MissingExtra("torch", f"The reranker {name_or_path!r}") from error
    try:
        config = AutoConfig.from_pretrained(name_or_path)
    except _LOADING_ERRORS as error:
        raise ModelError(
            f"{name_or_path}: transformers cannot read the model's configuration ({error}). "
            "Give a model directory, or a hub id with the network at hand."
        ) from error
    return any(name.endswith("ForCausalLM") for name in config.architectures or ())
