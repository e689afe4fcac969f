"""Finds the embedder that a name, a path or a URL means."""

from __future__ import annotations

from pathlib import Path

from recollect.errors import InvalidInput
from recollect.models.embedder import Embedder
from recollect.models.model_record import RECORD_FILE

BUNDLED_NAMES = (None, "bundled")


def load_embedder(
    name_or_path_or_url: str | Path | None = None,
    *,
    model: str | None = None,
    api_key: str | None = None,
) -> Embedder:
    """Load an embedder.

    | given | loads |
    |---|---|
    | None, `bundled` | the model that comes with recollect, shared by the whole process |
    | `http://…`, `https://…` | an OpenAI-compatible embedding service |
    | a directory with a `model.json` | that model, with ONNX Runtime |
    | another directory, or a hub id | that model, with sentence-transformers |

    Args:
        name_or_path_or_url: See the table.
        model: Name of the model to ask a service for; None for `default`.
        api_key: The service's key.

    Raises:
        InvalidInput: The name is empty, or names a path that does not exist.
        MissingExtra: The model needs the `[torch]` extra.
        ModelError: The model cannot be loaded.
        ServiceError: The service cannot be reached or answers nonsense.
    """
    if name_or_path_or_url in BUNDLED_NAMES:
        from recollect.models.onnx_embedder import load_bundled

        return load_bundled()
    name = str(name_or_path_or_url).strip()
    if name.lower().startswith(("http://", "https://")):
        from recollect.models.http_embedder import HttpEmbedder, HttpSettings

        settings = HttpSettings(model=model or "default", api_key=api_key)
        return HttpEmbedder(name, settings=settings)
    directory = _existing_directory(name)
    if directory is not None and (directory / RECORD_FILE).is_file():
        from recollect.models.onnx_embedder import OnnxEmbedder

        return OnnxEmbedder(directory)
    from recollect.models.torch_embedder import TorchEmbedder

    return TorchEmbedder(str(directory or name))


def _existing_directory(name: str) -> Path | None:
    """Give the directory, or None where the name is a hub id."""
    directory = Path(name).expanduser()
    if name and directory.is_dir():
        return directory
    looks_like_path = name.startswith((".", "/", "~", "\\")) or directory.is_absolute()
    if not name or directory.exists() or looks_like_path or name.count("/") > 1:
        raise InvalidInput(
            "embedder",
            name,
            "no such model directory",
            "Give a directory, a hub id like 'owner/model', an http(s) URL, or 'bundled'.",
        )
    return None
