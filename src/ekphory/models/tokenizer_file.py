"""The `tokenizer.json` of a model directory."""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer

from ekphory.errors import ModelError
from ekphory.models.model_record import read_checked


def load_tokenizer(path: Path, sha256: str) -> Tokenizer:
    """Read a tokenizer that neither pads nor cuts, and compare its hash with the recorded one.

    Raises:
        ModelError: The file is missing or changed, or holds no tokenizer.
    """
    content = read_checked(path, sha256)
    try:
        tokenizer = Tokenizer.from_str(content.decode("utf-8"))
    except Exception as error:  # tokenizers raises no narrower class
        raise ModelError(
            f"{path}: not a tokenizer that tokenizers can read ({error}). Export the model again."
        ) from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer
