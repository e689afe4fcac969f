"""The tiny encoder with the files that training and sentence-transformers ask for."""

import json
from pathlib import Path

from tests.training.tiny_encoder import TOKENIZER_CONFIG, write_tiny_encoder


def write_trainable_encoder(directory: Path) -> Path:
    directory.mkdir()
    write_tiny_encoder(directory)
    (directory / "tokenizer_config.json").write_text(json.dumps(TOKENIZER_CONFIG))
    (directory / "sentence_bert_config.json").write_text('{"max_seq_length": 24}')
    return directory
