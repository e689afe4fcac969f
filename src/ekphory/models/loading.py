"""Finds the embedder that a name, a path or a URL means."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from ekphory.errors import InvalidInput
from ekphory.models.embedder import EmbeddingModel
from ekphory.models.model_directory import ONNX_FOLDER, existing_directory
from ekphory.models.model_record import RECORD_FILE

if TYPE_CHECKING:
    from ekphory.models.onnx_embedder import OnnxEmbedder
    from ekphory.models.torch_embedder import TorchEmbedder

BUNDLED_NAMES = (None, "bundled")
_SCHEMES = ("http://", "https://")

Runtime = Literal["onnx", "torch"]
"""What runs a local model."""


def load_embedder(
    name_or_path_or_url: str | Path | None = None,
    *,
    model: str | None = None,
    api_key: str | None = None,
) -> EmbeddingModel:
    """Load an embedder.

    | given | loads |
    |---|---|
    | None, `bundled` | the model that comes with ekphory, shared by the whole process |
    | `http://…`, `https://…` | an OpenAI-compatible embedding service |
    | a directory with a `model.json`, or `onnx/model.json` | that model, with ONNX Runtime |
    | another directory, or a hub id | that model, with torch: ekphory's own, AgentRank's \
      or any of sentence-transformers |

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
    name = str(name_or_path_or_url or "").strip()
    if name.lower().startswith(_SCHEMES):
        from ekphory.models.http_embedder import HttpEmbedder, HttpSettings

        settings = HttpSettings(model=model or "default", api_key=api_key)
        return HttpEmbedder(name, settings=settings)
    return load_local_embedder(name_or_path_or_url)


def load_local_embedder(
    name_or_path: str | Path | None = None, *, runtime: Runtime | None = None
) -> OnnxEmbedder | TorchEmbedder:
    """Load a model that runs in this process.

    Args:
        name_or_path: As in `load_embedder`, without URLs.
        runtime: What runs it; None takes ONNX Runtime where there is an ONNX model, else torch.

    Raises:
        InvalidInput: The name is empty, a URL, or names a path that does not exist; or there is no
            such runtime, or no model for it.
        MissingExtra: The model needs the `[torch]` extra.
        ModelError: The model cannot be loaded.
    """
    bundled = name_or_path in BUNDLED_NAMES
    name = str(name_or_path).strip()
    _check_local(name, runtime, bundled=bundled)
    directory = None if bundled else existing_directory(name, field="embedder")
    onnx = None if directory is None else _onnx_directory(directory)
    if runtime == "onnx" and not (bundled or onnx):
        raise InvalidInput("runtime", runtime, f"{name} has no such model", "Leave it out")
    if bundled:
        from ekphory.models.onnx_embedder import load_bundled

        return load_bundled()
    if onnx is not None and runtime != "torch":
        from ekphory.models.onnx_embedder import OnnxEmbedder

        return OnnxEmbedder(onnx)
    from ekphory.models.torch_embedder import TorchEmbedder

    return TorchEmbedder(str(directory or name))


def _check_local(name: str, runtime: Runtime | None, *, bundled: bool) -> None:
    if name.lower().startswith(_SCHEMES):
        raise InvalidInput(
            "embedder",
            name,
            "is a service, not a model that runs in this process",
            "Give the URL to Memory(path, embedder=URL), or a directory or a hub id here",
        )
    if runtime is not None and runtime not in get_args(Runtime):
        known = ", ".join(get_args(Runtime))
        raise InvalidInput("runtime", runtime, "unknown", f"Choose from {known}, or leave it out")
    if runtime == "torch" and bundled:
        raise InvalidInput(
            "runtime",
            runtime,
            "the bundled model comes as ONNX only",
            "Leave it out, or save the model with save_pretrained(path) and load that path so",
        )


def _onnx_directory(directory: Path) -> Path | None:
    places = (directory, directory / ONNX_FOLDER)
    return next((place for place in places if (place / RECORD_FILE).is_file()), None)
