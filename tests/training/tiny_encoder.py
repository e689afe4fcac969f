"""A random encoder of two layers in a directory as sentence-transformers writes it."""

import json
import math
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

HIDDEN, INNER, HEADS, LAYERS, POSITIONS = 32, 128, 4, 2, 24
WORDS = "the cat sat on a mat and dog ran to its big red house by sea".split()
TOKENIZER_CONFIG = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "unk_token": "[UNK]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "model_max_length": POSITIONS,
}
"""What transformers reads beside the tokenizer itself."""
TEXTS = [" ".join(WORDS[start : start + length]) for start in range(12) for length in (2, 5, 9)]


def write_tiny_encoder(directory: Path) -> dict[str, np.ndarray]:
    """Write the directory and give the weights."""
    weights = tiny_weights()
    save_file(weights, directory / "model.safetensors")
    config = {
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS,
        "max_position_embeddings": POSITIONS,
        "type_vocab_size": 2,
        "vocab_size": len(vocabulary()),
        "layer_norm_eps": 1e-12,
    }
    (directory / "config.json").write_text(json.dumps(config))
    tiny_tokenizer().save(str(directory / "tokenizer.json"))
    return weights


def tiny_weights() -> dict[str, np.ndarray]:
    random = np.random.default_rng(7)

    def matrix(*shape: int) -> np.ndarray:
        return random.normal(0, 0.3, shape).astype(np.float32)

    weights = {
        "embeddings.word_embeddings.weight": matrix(len(vocabulary()), HIDDEN),
        "embeddings.position_embeddings.weight": matrix(POSITIONS, HIDDEN),
        "embeddings.token_type_embeddings.weight": matrix(2, HIDDEN),
    }
    norms = ["embeddings.LayerNorm"]
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}."
        for name in ("self.query", "self.key", "self.value", "output.dense"):
            weights[f"{prefix}attention.{name}.weight"] = matrix(HIDDEN, HIDDEN)
            weights[f"{prefix}attention.{name}.bias"] = matrix(HIDDEN)
        weights[f"{prefix}intermediate.dense.weight"] = matrix(INNER, HIDDEN)
        weights[f"{prefix}intermediate.dense.bias"] = matrix(INNER)
        weights[f"{prefix}output.dense.weight"] = matrix(HIDDEN, INNER)
        weights[f"{prefix}output.dense.bias"] = matrix(HIDDEN)
        norms += [f"{prefix}attention.output.LayerNorm", f"{prefix}output.LayerNorm"]
    for norm in norms:
        weights[f"{norm}.weight"] = 1 + matrix(HIDDEN)
        weights[f"{norm}.bias"] = matrix(HIDDEN)
    return weights


def vocabulary() -> dict[str, int]:
    return {
        word: number for number, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS])
    }


def tiny_tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(vocabulary(), unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [(token, vocabulary()[token]) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair=None, special_tokens=ends
    )
    return tokenizer


def pooled_reference(weights: dict[str, np.ndarray], ids: list[int]) -> np.ndarray:
    """The mean of the last layer's token vectors, by the formulas of BERT (Devlin et al. 2019)."""

    def dense(x: np.ndarray, name: str) -> np.ndarray:
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        centred = x - x.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True))
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def heads(x: np.ndarray) -> np.ndarray:
        return x.reshape(len(ids), HEADS, HIDDEN // HEADS).transpose(1, 0, 2)

    x = weights["embeddings.word_embeddings.weight"][ids]
    x = x + weights["embeddings.position_embeddings.weight"][: len(ids)]
    x = norm(x + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}"
        q, k, v = (heads(dense(x, f"{name}.attention.self.{n}")) for n in ("query", "key", "value"))
        scores = np.exp(q @ k.transpose(0, 2, 1) / math.sqrt(HIDDEN // HEADS))
        mixed = (scores / scores.sum(axis=-1, keepdims=True)) @ v
        mixed = dense(
            mixed.transpose(1, 0, 2).reshape(len(ids), HIDDEN), f"{name}.attention.output.dense"
        )
        x = norm(x + mixed, f"{name}.attention.output.LayerNorm")
        inner = dense(x, f"{name}.intermediate.dense")
        inner = inner * (1 + np.vectorize(math.erf)(inner / math.sqrt(2))) / 2
        x = norm(x + dense(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")
    return x.mean(axis=0)
