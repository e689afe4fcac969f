"""The tiny encoder with the files that training and sentence-transformers ask for."""

import json
from pathlib import Path

from tests.training.tiny_encoder import write_tiny_encoder

TOKENIZER = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "unk_token": "[UNK]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "model_max_length": 24,
}


def write_trainable_encoder(directory: Path) -> Path:
    directory.mkdir()
    write_tiny_encoder(directory)
    (directory / "tokenizer_config.json").write_text(json.dumps(TOKENIZER))
    (directory / "sentence_bert_config.json").write_text('{"max_seq_length": 24}')
    return directory
