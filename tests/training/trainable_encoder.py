"""The tiny encoder with the files that training and sentence-transformers ask for."""

import json
from pathlib import Path

from tests.training.tiny_encoder import (
    HIDDEN,
    POSITIONS,
    TOKENIZER_CONFIG,
    tiny_tokenizer,
    vocabulary,
    write_tiny_encoder,
)


class Stopped(Exception):
    """A run was stopped on purpose."""


def stop_after(step):
    """Stop a training after that step."""

    def progress(activity, done, total):
        if activity.startswith(("training", "loss")) and done == step:
            raise Stopped

    return progress


def silent(*_):
    pass


def losses(model: Path) -> list[float]:
    """The losses of the run that left a model."""
    lines = (model.parent / "losses.jsonl").read_text().splitlines()
    return [json.loads(line)["loss"] for line in lines]


def write_trainable_encoder(directory: Path) -> Path:
    directory.mkdir()
    write_tiny_encoder(directory)
    (directory / "tokenizer_config.json").write_text(json.dumps(TOKENIZER_CONFIG))
    (directory / "sentence_bert_config.json").write_text('{"max_seq_length": 24}')
    return directory


def write_modern_encoder(directory: Path) -> Path:
    """Write a random ModernBERT of two layers as sentence-transformers 6 does: it names no window
    beside the tokenizer's.
    """
    from transformers import ModernBertConfig, ModernBertModel

    words = vocabulary()
    config = ModernBertConfig(
        vocab_size=len(words),
        hidden_size=HIDDEN,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=POSITIONS,
        pad_token_id=words["[PAD]"],
        bos_token_id=words["[CLS]"],
        eos_token_id=words["[SEP]"],
        cls_token_id=words["[CLS]"],
        sep_token_id=words["[SEP]"],
    )
    ModernBertModel(config).save_pretrained(directory)
    tiny_tokenizer().save(str(directory / "tokenizer.json"))
    settings = TOKENIZER_CONFIG | {"model_input_names": ["input_ids", "attention_mask"]}
    (directory / "tokenizer_config.json").write_text(json.dumps(settings))
    task = {"transformer_task": "feature-extraction"}
    (directory / "sentence_bert_config.json").write_text(json.dumps(task))
    return directory


def write_mpnet_encoder(directory: Path) -> Path:
    """Write a random MPNet of one layer, whose vocabulary has two words more, its own marks."""
    from tokenizers import Tokenizer
    from transformers import MPNetConfig, MPNetModel

    content = json.loads(tiny_tokenizer().to_str())
    words = content["model"]["vocab"]
    words |= {"<s>": len(words), "</s>": len(words) + 1}
    config = MPNetConfig(
        vocab_size=len(words),
        hidden_size=HIDDEN,
        intermediate_size=48,
        num_hidden_layers=1,
        num_attention_heads=4,
        max_position_embeddings=POSITIONS + 2,
    )
    MPNetModel(config).save_pretrained(directory)
    Tokenizer.from_str(json.dumps(content)).save(str(directory / "tokenizer.json"))
    (directory / "tokenizer_config.json").write_text(json.dumps(TOKENIZER_CONFIG))
    (directory / "sentence_bert_config.json").write_text('{"max_seq_length": 24}')
    return directory
