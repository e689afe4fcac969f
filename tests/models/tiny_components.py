"""A random model of two layers that knows age, type and importance, in ekphory's layout."""

import json
from pathlib import Path

import numpy as np
from tests.training.tiny_encoder import (
    HIDDEN,
    POSITIONS,
    TOKENIZER_CONFIG,
    pooled_reference,
    tiny_tokenizer,
    tiny_weights,
    write_tiny_encoder,
)

from ekphory.models.late_bound import EmbedderComponents, Linear, normalised, write_components
from ekphory.models.onnx_export import (
    ModelDescription,
    Prompts,
    SentenceLayout,
    export_embedder,
    write_sentence_layout,
)

QUERY_PROMPT = "the "
TEXTS = ["the cat sat", "a big red house by the sea", "dog"]
DESCRIPTION = ModelDescription(name="tiny")


def tiny_components(*, width: int = HIDDEN) -> EmbedderComponents:
    """Random parts; the vectors of age and type are about as long as the pooled ones."""
    random = np.random.default_rng(11)

    def matrix(*shape: int) -> np.ndarray:
        return random.normal(0, 1 / np.sqrt(shape[-1]), shape).astype(np.float32)

    return EmbedderComponents(
        age=matrix(10, width) * 3,
        type=matrix(4, width) * 3,
        projection=Linear(matrix(width, width), matrix(width)),
        importance=(Linear(matrix(8, width), matrix(8)), Linear(matrix(1, 8), matrix(1))),
        memory_type=Linear(matrix(4, width), matrix(4)),
    )


def write_tiny_embedder(directory: Path) -> Path:
    """Write the directory as the trainer does; the encoder has the `tiny_weights`."""
    directory.mkdir(parents=True, exist_ok=True)
    write_tiny_encoder(directory)
    components = tiny_components()
    write_components(components, directory)
    layout = SentenceLayout(
        projection=components.projection, max_tokens=POSITIONS, prompts=Prompts(query=QUERY_PROMPT)
    )
    write_sentence_layout(layout, directory)
    (directory / "tokenizer_config.json").write_text(json.dumps(TOKENIZER_CONFIG))
    return directory


def write_tiny_onnx_embedder(directory: Path) -> Path:
    """Write the directory, and its ONNX model in 32-bit float in the folder `onnx`."""
    write_tiny_embedder(directory)
    export_embedder(directory, directory / "onnx", description=DESCRIPTION)
    return directory


def pooled(texts: list[str]) -> np.ndarray:
    """What the encoder gives, by the formulas."""
    weights = tiny_weights()
    rows = [pooled_reference(weights, tiny_tokenizer().encode(text).ids) for text in texts]
    return np.array(rows, np.float32)


def content_reference(texts: list[str]) -> np.ndarray:
    """W·pooled + b."""
    return tiny_components().content(pooled(texts))


def bound_reference(
    texts: list[str], buckets: list[int], types: list[int], *, scale: float = 1.0
) -> np.ndarray:
    """z with length 1: what is added before the projection goes through it."""
    components = tiny_components()
    added = scale * (components.age[buckets] + components.type[types])
    return normalised(content_reference(texts) + added @ components.projection.weight.T)
