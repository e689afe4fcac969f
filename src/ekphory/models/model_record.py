"""The record of an ONNX model: the `model.json` beside its weights."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from ekphory.errors import ModelError
from ekphory.models.reranker import PlattScaling

RECORD_FILE = "model.json"
MODEL_FILE = "model.onnx"
TOKENIZER_FILE = "tokenizer.json"
LATE_BOUND_FILE = "late_bound.npz"
RECORD_FORMAT = 1
_REVISION_LENGTH = 16
_SHARED_FIELDS = ("name", "revision", "licence", "source", "made_by", "files")
_Record = TypeVar("_Record")

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

    @property
    def is_unpackable(self) -> bool:
        """Whether it is an 8-bit embedder with age, type and both heads."""
        has_all = set(self.parts) == set(get_args(ModelPart))
        return has_all and self.made_by.get("quantisation") == "int8"


def read_record(directory: Path) -> ModelRecord:
    """Read the record of a model directory.

    Raises:
        ModelError: The record is missing, unreadable or incomplete.
    """
    return _read(directory, _build_embedder_record, what="an embedding model")


def write_record(record: ModelRecord, directory: Path) -> None:
    """Write `model.json`."""
    content = asdict(record)
    query, passage = content.pop("query_prompt"), content.pop("passage_prompt")
    prompts = {"query": query, "passage": passage}
    _write({"format": RECORD_FORMAT, **content, "prompts": prompts}, directory)


def hash_files(directory: Path, *names: str) -> dict[str, str]:
    """Return the SHA-256 of some files of a directory, by their names."""
    return {name: hashlib.sha256((directory / name).read_bytes()).hexdigest() for name in names}


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
        problem = f"{len(content)} bytes with SHA-256 {found[:12]}…"
        raise ModelError(f"{path}: {problem}, but its record says {sha256[:12]}…. {remedy}")
    return content


def _read(directory: Path, build: Callable[[Mapping[str, Any]], _Record], *, what: str) -> _Record:
    path = directory / RECORD_FILE
    try:
        return build(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ModelError(
            f"{path}: not the record of {what} ({type(error).__name__}: {error}). "
            "Export the model again, or reinstall the package that brought it."
        ) from error


def _write(content: Mapping[str, Any], directory: Path) -> None:
    text = json.dumps(content, indent=2, ensure_ascii=False)
    (directory / RECORD_FILE).write_text(text + "\n", encoding="utf-8")


def _read_shared_fields(content: Mapping[str, Any], *more_files: str) -> dict[str, Any]:
    """Return what every record says, if it has the hash of every file."""
    fields = {name: content[name] for name in _SHARED_FIELDS}
    missing = {MODEL_FILE, TOKENIZER_FILE, *more_files} - content["files"].keys()
    if missing:
        raise ValueError(f"no hash of {', '.join(sorted(missing))}")
    return fields


def _build_embedder_record(content: Mapping[str, Any]) -> ModelRecord:
    if content["format"] != RECORD_FORMAT:
        raise ValueError(f"format {content['format']!r} is not {RECORD_FORMAT}")
    prompts, parts = content["prompts"], tuple(content.get("parts", ()))
    unknown = set(parts) - set(get_args(ModelPart))
    if unknown:
        raise ValueError(f"unknown parts {sorted(unknown)}")
    more_files = (LATE_BOUND_FILE,) if "late_bound" in parts else ()
    return ModelRecord(
        **_read_shared_fields(content, *more_files),
        dimension=int(content["dimension"]),
        max_tokens=int(content["max_tokens"]),
        query_prompt=str(prompts["query"]),
        passage_prompt=str(prompts["passage"]),
        parts=parts,
        normalise=bool(content["normalise"]),
    )


# The record of a reranker.

LAYOUT_NAME = "ekphory-turn-3"
"""How a model that is trained now reads, as its record says. Another layout needs another name."""
LAYOUT_NAMES = ("ekphory-turn-2", LAYOUT_NAME)
"""The layouts of models that can be read; the first one has shorter neighbours."""

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
        layout: How pairs become tokens; one of `LAYOUT_NAMES`.
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
    files = hash_files(directory, MODEL_FILE, TOKENIZER_FILE)
    calibration = json.dumps(asdict(record)["calibration"], sort_keys=True)
    reading = {"layout": record.layout, "calibration": calibration}
    sealed = replace(record, files=files, revision=content_revision(files, prompts=reading))
    _write({"format": RECORD_FORMAT, "kind": RERANKER_KIND, **asdict(sealed)}, directory)
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
    return _read(directory, _build_reranker_record, what="a reranker")


def _build_reranker_record(content: Mapping[str, Any]) -> RerankerRecord:
    found = (content["format"], content["kind"], content["layout"])
    known = [(RECORD_FORMAT, RERANKER_KIND, layout) for layout in LAYOUT_NAMES]
    if found not in known:
        raise ValueError(f"format, kind and layout are {found}, this ekphory reads {known}")
    card = content["calibration"]
    if card is not None:
        if card["method"] != "platt":
            raise ValueError(f"unknown method of calibration {card['method']!r}")
        slope, intercept = float(card["slope"]), float(card["intercept"])
        card = CalibrationCard(**(card | {"slope": slope, "intercept": intercept}))
    return RerankerRecord(
        **_read_shared_fields(content), layout=content["layout"], calibration=card
    )
