"""A random model of two layers that knows age, type and importance, in recollect's layout."""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tests.training.tiny_encoder import HIDDEN, pooled_reference, tiny_tokenizer, write_tiny_encoder

from recollect.models.embedder_components import EmbedderComponents, Linear, write_components

QUERY_PROMPT = "the "


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


def write_tiny_embedder(directory: Path) -> dict[str, np.ndarray]:
    """Write the directory as the trainer does, and give the encoder's weights."""
    directory.mkdir(parents=True, exist_ok=True)
    weights = write_tiny_encoder(directory)
    components = tiny_components()
    write_components(components, directory)
    for folder in ("1_Pooling", "2_Dense", "3_Normalize"):
        (directory / folder).mkdir()
    projection = components.projection
    save_file(
        {"linear.weight": projection.weight, "linear.bias": projection.bias},
        directory / "2_Dense" / "model.safetensors",
    )
    for name, content in _settings().items():
        (directory / name).write_text(json.dumps(content))
    return weights


def content_reference(weights: dict[str, np.ndarray], texts: list[str]) -> np.ndarray:
    """W·pooled + b, by the formulas."""
    return tiny_components().content(pooled(weights, texts))


def pooled(weights: dict[str, np.ndarray], texts: list[str]) -> np.ndarray:
    rows = [pooled_reference(weights, tiny_tokenizer().encode(text).ids) for text in texts]
    return np.array(rows, np.float32)


def _settings() -> dict[str, object]:
    base = "sentence_transformers.base.modules"
    modules = [
        ("", f"{base}.transformer.Transformer"),
        ("1_Pooling", "sentence_transformers.sentence_transformer.modules.pooling.Pooling"),
        ("2_Dense", f"{base}.dense.Dense"),
        ("3_Normalize", f"{base}.normalize.Normalize"),
    ]
    return {
        "modules.json": [
            {"idx": number, "name": str(number), "path": path, "type": kind}
            for number, (path, kind) in enumerate(modules)
        ],
        "1_Pooling/config.json": {"embedding_dimension": HIDDEN, "pooling_mode": "mean"},
        "2_Dense/config.json": {
            "in_features": HIDDEN,
            "out_features": HIDDEN,
            "bias": True,
            "activation_function": "torch.nn.modules.linear.Identity",
        },
        "3_Normalize/config.json": {},
        "config_sentence_transformers.json": {"prompts": {"query": QUERY_PROMPT, "document": ""}},
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "unk_token": "[UNK]",
            "pad_token": "[PAD]",
            "cls_token": "[CLS]",
            "sep_token": "[SEP]",
            "model_max_length": 24,
        },
    }
