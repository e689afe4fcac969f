"""The record of an ONNX model: the `model.json` beside its weights."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from ekphory.errors import ModelError
from ekphory.models.reranker import PlattScaling

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
    """Return the revision that follows from the files' hashes and the prompts."""
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


# The record of an ONNX reranker: the `model.json` beside its weights.

LAYOUT_NAME = "ekphory-turn-2"
"""Stands in a model's record; another layout needs another name."""

RERANKER_KIND = "reranker"


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationCard:
    """How a reranker's logits become probabilities, and how well they do.

    Attributes:
        method: Platt's; temperature scaling is the one with intercept 0.
        slope, intercept: Of the logistic curve over the logit.
        data: What it was fitted on.
        measured: What was measured with it, by name: `ece/realtalk` and the like.
        thresholds: By the precision that is wanted, such as `0.9`, the least probability.
    """

    method: Literal["platt"] = "platt"
    slope: float
    intercept: float
    data: str = ""
    measured: Mapping[str, float] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)

    @property
    def scaling(self) -> PlattScaling:
        """What is applied to logits."""
        return PlattScaling(self.slope, self.intercept)


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankerRecord:
    """What must be known about a reranker to use it as it was meant.

    Attributes:
        name: The model's name, as the trace calls it.
        layout: How pairs become tokens; `LAYOUT_NAME`.
        calibration: None for a model whose probabilities nobody has fitted.
        licence: SPDX identifier of the weights' licence.
        source: Where the weights come from.
        made_by: How the files were made from the source.
        revision: Hash of the files, the layout and the calibration; `seal_reranker` finds it.
        files: SHA-256 of every file by its name; likewise.
    """

    name: str
    layout: str = LAYOUT_NAME
    calibration: CalibrationCard | None = None
    licence: str = ""
    source: str = ""
    made_by: Mapping[str, Any] = field(default_factory=dict)
    revision: str = ""
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def model_id(self) -> str:
        """`name@revision`: how files of fitted constants name the model."""
        return f"{self.name}@{self.revision}"


def seal_reranker(record: RerankerRecord, directory: Path) -> RerankerRecord:
    """Hash `model.onnx` and `tokenizer.json` of a directory and write its `model.json`.

    Returns:
        The record with its revision and the hashes.
    """
    files = {
        name: hashlib.sha256((directory / name).read_bytes()).hexdigest()
        for name in (MODEL_FILE, TOKENIZER_FILE)
    }
    calibration = json.dumps(_plain(record.calibration), sort_keys=True)
    told = {"layout": record.layout, "calibration": calibration}
    sealed = replace(record, files=files, revision=content_revision(files, prompts=told))
    content = {
        "format": RECORD_FORMAT,
        "kind": RERANKER_KIND,
        **asdict(sealed),
        "calibration": _plain(record.calibration),
    }
    text = json.dumps(content, indent=2, ensure_ascii=False)
    (directory / RECORD_FILE).write_text(text + "\n", encoding="utf-8")
    return sealed


def is_reranker(directory: Path) -> bool:
    """Whether a directory has the record of a reranker, readable or not in its details."""
    try:
        content = json.loads((directory / RECORD_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and content.get("kind") == RERANKER_KIND


def read_reranker_record(directory: Path) -> RerankerRecord:
    """Read the record of a reranker's directory.

    Raises:
        ModelError: The record is missing, unreadable, incomplete or that of another kind.
    """
    path = directory / RECORD_FILE
    try:
        return _reranker_from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ModelError(
            f"{path}: not the record of a reranker ({type(error).__name__}: {error}). "
            "Export the model again, or reinstall the package that brought it."
        ) from error


def _plain(card: CalibrationCard | None) -> dict[str, Any] | None:
    if card is None:
        return None
    return asdict(card) | {"measured": dict(card.measured), "thresholds": dict(card.thresholds)}


def _reranker_from_json(content: Mapping[str, Any]) -> RerankerRecord:
    told = (content["format"], content["kind"], content["layout"])
    known = (RECORD_FORMAT, RERANKER_KIND, LAYOUT_NAME)
    if told != known:
        raise ValueError(f"format, kind and layout are {told}, this ekphory reads {known}")
    files = {str(name): str(value) for name, value in content["files"].items()}
    missing = {MODEL_FILE, TOKENIZER_FILE} - files.keys()
    if missing:
        raise ValueError(f"no hash of {', '.join(sorted(missing))}")
    return RerankerRecord(
        name=str(content["name"]),
        layout=str(content["layout"]),
        calibration=_calibration(content["calibration"]),
        licence=str(content["licence"]),
        source=str(content["source"]),
        made_by=dict(content["made_by"]),
        revision=str(content["revision"]),
        files=files,
    )


def _calibration(content: Mapping[str, Any] | None) -> CalibrationCard | None:
    if content is None:
        return None
    if content["method"] != "platt":
        raise ValueError(f"unknown method of calibration {content['method']!r}")
    return CalibrationCard(
        slope=float(content["slope"]),
        intercept=float(content["intercept"]),
        data=str(content.get("data", "")),
        measured=_numbers(content.get("measured", {})),
        thresholds=_numbers(content.get("thresholds", {})),
    )


def _numbers(content: Mapping[str, Any]) -> dict[str, float]:
    return {str(name): float(value) for name, value in content.items()}
