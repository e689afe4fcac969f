"""Reads the training files: JSON Lines, compressed."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any

from ekphory.errors import DatasetError

Row = dict[str, Any]

_NOISE = re.compile(r"\{\w+\}|\[\w*\]|-lrb-|-rrb-|``|''")
_SPACE_BEFORE = re.compile(r"\s+([.,!?;:'%])")


def read_rows(path: Path) -> list[Row]:
    """Read every row.

    Raises:
        DatasetError: The file is missing or holds something else.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines if line.strip()]
    except FileNotFoundError as error:
        raise DatasetError(
            f"{path}: no such file. Give the folder with the training data."
        ) from error
    except (ValueError, OSError, EOFError) as error:
        raise DatasetError(f"{path}: not compressed JSON Lines ({error}).") from error
    if not all(isinstance(row, dict) for row in rows):
        raise DatasetError(f"{path}: a row is no JSON object.")
    return rows


def sha256_of(path: Path) -> str:
    """Give the hash of a file's bytes, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_texts(folder: Path) -> str:
    """Give one hash of all text files of a folder, in the order of their names; hexadecimal."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.txt")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def clean_text(text: str) -> str:
    """Remove a transcript's marks and the spaces that tokenising left before punctuation."""
    spaced = " ".join(_NOISE.sub(" ", text).split())
    return _SPACE_BEFORE.sub(r"\1", spaced).replace(" n't", "n't")


def shortened(text: str, words: int) -> str:
    """Keep the first words."""
    return " ".join(text.split()[:words])
