"""Neutral texts for the ranges of a quantised model, read from JSON Lines files."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ekphory.errors import DatasetError
from ekphory.training.conversation_files import read_conversations
from ekphory.training.training_rows import sha256_of_texts

TEXTS_PER_FILE = 200
_TEXT_FIELDS = ("text", "query", "passage", "sentence")


@dataclass(frozen=True, slots=True)
class CalibrationSource:
    """Texts and where they come from.

    Attributes:
        texts: The sample.
        files: SHA-256 of each file that was read, by its name.
    """

    texts: tuple[str, ...]
    files: Mapping[str, str]


def read_calibration(
    paths: Sequence[Path], *, texts_per_file: int = TEXTS_PER_FILE
) -> CalibrationSource:
    """Take evenly spaced texts from `.jsonl` or `.jsonl.gz` files, or a folder of conversations.

    A row gives its turns as `speaker: text`, or its fields `text`, `query`, `passage`, `sentence`.

    Raises:
        DatasetError: A file is missing, malformed or without texts.
    """
    texts: list[str] = []
    files: dict[str, str] = {}
    for path in paths:
        files[path.name], found = _texts_of(path)
        if not found:
            raise DatasetError(f"{path}: no texts found. Rows need turns, text, query or passage.")
        step = max(1, len(found) // texts_per_file)
        texts.extend(found[::step][:texts_per_file])
    return CalibrationSource(tuple(texts), files)


def _texts_of(path: Path) -> tuple[str, list[str]]:
    if path.is_dir():
        said = [text for row in read_conversations(path) for text in _row_texts(row)]
        return sha256_of_texts(path), said
    content = _read(path)
    return hashlib.sha256(content).hexdigest(), list(_texts(path, content))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read ({error}).") from error


def _texts(path: Path, content: bytes) -> Iterator[str]:
    try:
        lines = gzip.decompress(content) if path.suffix == ".gz" else content
        for line in lines.decode("utf-8").splitlines():
            if line.strip():
                yield from _row_texts(json.loads(line))
    except (ValueError, OSError, EOFError, KeyError, TypeError, AttributeError) as error:
        raise DatasetError(f"{path}: not JSON Lines with texts ({error}).") from error


def _row_texts(row: Mapping[str, Any]) -> Iterator[str]:
    for turn in row.get("turns", ()):
        yield f"{turn['speaker']}: {turn['text']}"
    for field in _TEXT_FIELDS:
        if row.get(field):
            yield str(row[field])
