"""The record of an ONNX embedding model: the `model.json` beside its weights."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from ekphory.errors import ModelError

RECORD_FILE = "model.json"
MODEL_FILE = "model.onnx"
TOKENIZER_FILE = "tokenizer.json"
LATE_BOUND_FILE = "late_bound.npz"
RECORD_FORMAT = 1
_REVISION_LENGTH = 16

ModelPart = Literal["late_bound", "importance", "memory_type"]
"""What a model has beyond vectors: those of age and type in a file of their own, and two heads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRecord:
    """What must be known about a model to use it as it was meant.

    Attributes:
        name: The model's name.
        revision: Hash of its files and of what is asked of them; part of the embedder's identity.
        dimension: Length of a vector.
        max_tokens: Longest input, special tokens included.
        query_prompt: What stands before every query.
        passage_prompt: What stands before every passage.
        parts: What it has beyond vectors; with `late_bound`, the graph gives c as `content`.
        normalise: True gives vectors of length 1, False the plain mean of the token vectors.
        licence: SPDX identifier of the weights' licence.
        source: Where the weights come from.
        made_by: How the files were made from the source.
        files: SHA-256 of every file by its name.
    """

    name: str
    revision: str
    dimension: int
    max_tokens: int
    query_prompt: str = ""
    passage_prompt: str = ""
    parts: tuple[ModelPart, ...] = ()
    normalise: bool = True
    licence: str = ""
    source: str = ""
    made_by: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


def read_record(directory: Path) -> ModelRecord:
    """Read the record of a model directory.

    Raises:
        ModelError: The record is missing, unreadable or incomplete.
    """
    path = directory / RECORD_FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return _from_json(content)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ModelError(
            f"{path}: not the record of an embedding model ({type(error).__name__}: {error}). "
            "Export the model again, or reinstall the package that brought it."
        ) from error


def write_record(record: ModelRecord, directory: Path) -> None:
    """Write `model.json`."""
    content = asdict(record)
    content["prompts"] = {
        "query": content.pop("query_prompt"),
        "passage": content.pop("passage_prompt"),
    }
    text = json.dumps({"format": RECORD_FORMAT, **content}, indent=2, ensure_ascii=False)
    (directory / RECORD_FILE).write_text(text + "\n", encoding="utf-8")


def content_revision(hashes: Mapping[str, str], *, prompts: Mapping[str, str]) -> str:
    """Give the revision that follows from the files' hashes and the prompts."""
    content = json.dumps([dict(hashes), dict(prompts)], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:_REVISION_LENGTH]


def read_checked(path: Path, sha256: str) -> bytes:
    """Read a file and compare its hash with the recorded one.

    Raises:
        ModelError: The file is missing, cut short or changed.
    """
    remedy = "Reinstall the package that brought it, or export the model again."
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error}). {remedy}") from error
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise ModelError(
            f"{path}: {len(content)} bytes with SHA-256 {found[:12]}…, "
            f"but its record says {sha256[:12]}…. {remedy}"
        )
    return content


def _from_json(content: Mapping[str, Any]) -> ModelRecord:
    if content["format"] != RECORD_FORMAT:
        raise ValueError(f"format {content['format']!r} is not {RECORD_FORMAT}")
    prompts, files = content["prompts"], content["files"]
    parts = tuple(content.get("parts", ()))
    unknown = set(parts) - set(get_args(ModelPart))
    if unknown:
        raise ValueError(f"unknown parts {sorted(unknown)}")
    needed = {MODEL_FILE, TOKENIZER_FILE} | ({LATE_BOUND_FILE} if "late_bound" in parts else set())
    missing = needed - set(files)
    if missing:
        raise ValueError(f"no hash of {', '.join(sorted(missing))}")
    return ModelRecord(
        name=str(content["name"]),
        revision=str(content["revision"]),
        dimension=int(content["dimension"]),
        max_tokens=int(content["max_tokens"]),
        query_prompt=str(prompts["query"]),
        passage_prompt=str(prompts["passage"]),
        parts=parts,
        normalise=bool(content["normalise"]),
        licence=str(content["licence"]),
        source=str(content["source"]),
        made_by=dict(content["made_by"]),
        files={str(name): str(value) for name, value in files.items()},
    )
