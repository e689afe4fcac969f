"""The record of an ONNX reranker: the `model.json` beside its weights."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from ekphory.errors import ModelError
from ekphory.models.cross_encoder_layout import LAYOUT_NAME
from ekphory.models.model_record import (
    MODEL_FILE,
    RECORD_FILE,
    RECORD_FORMAT,
    TOKENIZER_FILE,
    content_revision,
)
from ekphory.models.platt_scaling import PlattScaling

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
        layout: How pairs become tokens; a name of `cross_encoder_layout`.
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
        return _from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ModelError(
            f"{path}: not the record of a reranker ({type(error).__name__}: {error}). "
            "Export the model again, or reinstall the package that brought it."
        ) from error


def _plain(card: CalibrationCard | None) -> dict[str, Any] | None:
    if card is None:
        return None
    return asdict(card) | {"measured": dict(card.measured), "thresholds": dict(card.thresholds)}


def _from_json(content: Mapping[str, Any]) -> RerankerRecord:
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
