"""The directories that torch models are read from and written to.

| layout | told by | what it gives |
|---|---|---|
| ekphory's | `ekphory_components.safetensors` beside sentence-transformers' files | all parts |
| AgentRank's | `agentrank_components.pt` beside a transformer | all but a type head |
| sentence-transformers' | neither | vectors alone |
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ekphory import legacy
from ekphory.errors import MissingExtra, ModelError
from ekphory.models.embedder_components import (
    COMPONENTS_FILE,
    EmbedderComponents,
    components_of,
    read_components,
    write_components,
)
from ekphory.models.quiet_loading import without_weight_bars

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

SavedFormat = Literal["transformers", "onnx"]

AGENTRANK_FILE = "agentrank_components.pt"
AGENTRANK_MAX_TOKENS = 512
AGENTRANK_SCALE = np.float32(0.1)
"""AgentRank multiplies its vectors of age and type by this before it adds them."""
_AGENTRANK_NAMES = {
    "temporal_embeddings": {"weight": "age.weight"},
    "memory_type_embeddings": {"weight": "type.weight"},
    "projection": {"weight": "projection.weight", "bias": "projection.bias"},
    "importance_head": {
        "0.weight": "importance.0.weight",
        "0.bias": "importance.0.bias",
        # 1 is the ReLU and 2 the dropout
        "3.weight": "importance.2.weight",
        "3.bias": "importance.2.bias",
    },
}
_LOADING_ERRORS = (OSError, ValueError, RuntimeError, KeyError, TypeError, pickle.UnpicklingError)


@dataclass(frozen=True, slots=True)
class TorchModel:
    """A model in memory.

    Attributes:
        encoder: Gives pooled vectors where there are components, else finished ones.
        components: What reads and follows the pooled vectors; None for a plain model.
    """

    encoder: SentenceTransformer
    components: EmbedderComponents | None


def load_torch_model(name_or_path: str, *, device: str | None) -> TorchModel:
    """Load a directory or a hub id in any of the three layouts.

    Raises:
        MissingExtra: sentence-transformers is not installed.
        ModelError: It cannot load the model.
    """
    try:
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.util import load_file_path
    except ImportError as error:
        raise MissingExtra("torch", f"The embedder {name_or_path!r}") from error
    try:
        if path := load_file_path(name_or_path, AGENTRANK_FILE):
            return _load_agentrank(name_or_path, Path(path), device)
        with without_weight_bars():
            model = SentenceTransformer(name_or_path, device=device)
        written = legacy.written_name(
            COMPONENTS_FILE, lambda name: load_file_path(name_or_path, name) is not None
        )
        if path := load_file_path(name_or_path, written):
            return _without_projection(model, read_components(Path(path).parent))
        return TorchModel(model, None)
    except _LOADING_ERRORS as error:
        raise ModelError(
            f"{name_or_path}: sentence-transformers cannot load this model ({error}). "
            "Give a model directory, or a hub id with the network at hand."
        ) from error


def save_torch_model(model: TorchModel, directory: Path) -> None:
    """Write ekphory's layout, or for a plain model sentence-transformers'.

    The directory loads in plain `AutoModel` and `SentenceTransformer`; the latter gives content
    vectors of length 1.
    """
    from sentence_transformers import SentenceTransformer

    encoder, components = model.encoder, model.components
    if components is not None:
        modules = [*encoder, *_projection_modules(components)]
        encoder = SentenceTransformer(
            modules=modules, prompts=dict(encoder.prompts), device=str(encoder.device)
        )
    encoder.save(str(directory), create_model_card=False)
    if components is None:
        # Those of a model that stood here before.
        (directory / COMPONENTS_FILE).unlink(missing_ok=True)
    else:
        write_components(components, directory)


def is_exportable(model: TorchModel) -> bool:
    """Whether `ekphory train export` knows the encoder: BERT with mean pooling and no more."""
    kinds = _module_kinds(model.encoder)
    if kinds[:2] != ["Transformer", "Pooling"] or set(kinds[2:]) - {"Normalize"}:
        return False
    config = model.encoder[0].auto_model.config
    pooling = model.encoder[1].get_config_dict()
    told = (config.model_type, getattr(config, "hidden_act", None), pooling.get("pooling_mode"))
    return told == ("bert", "gelu", "mean")


def _module_kinds(model: SentenceTransformer) -> list[str]:
    return [type(module).__name__ for module in model]


def _projection_modules(components: EmbedderComponents) -> list[Any]:
    import torch
    from sentence_transformers.sentence_transformer.modules import Dense, Normalize

    projection, width = components.projection, components.dimension
    dense = Dense(
        width,
        width,
        activation_function=torch.nn.Identity(),
        init_weight=torch.tensor(projection.weight),
        init_bias=torch.tensor(projection.bias),
    )
    return [dense, Normalize()]


def _without_projection(
    model: SentenceTransformer, components: EmbedderComponents | None
) -> TorchModel:
    from sentence_transformers import SentenceTransformer

    kinds = _module_kinds(model)
    if kinds != ["Transformer", "Pooling", "Dense", "Normalize"]:
        raise ModelError(
            f"{COMPONENTS_FILE}: stands beside modules {', '.join(kinds)}, not Transformer, "
            "Pooling, Dense, Normalize. Save the model again."
        )
    encoder = SentenceTransformer(
        modules=[model[0], model[1]], prompts=dict(model.prompts), device=str(model.device)
    )
    return TorchModel(encoder, components)


def _load_agentrank(name_or_path: str, path: Path, device: str | None) -> TorchModel:
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    stored: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    tensors: dict[str, NDArray[Any]] = {
        ours: stored[part][theirs].float().numpy()
        for part, names in _AGENTRANK_NAMES.items()
        for theirs, ours in names.items()
    }
    for name in ("age.weight", "type.weight"):
        tensors[name] = tensors[name] * AGENTRANK_SCALE
    components = components_of(tensors, where=path)
    transformer = Transformer(name_or_path)
    pooling = Pooling(components.dimension, str(stored["config"]["pooling"]))
    encoder = SentenceTransformer(modules=[transformer, pooling], device=device)
    longest = getattr(transformer.auto_model.config, "max_position_embeddings", None)
    encoder.max_seq_length = min(AGENTRANK_MAX_TOKENS, longest or AGENTRANK_MAX_TOKENS)
    return TorchModel(encoder, components)
