"""Exports a trained cross-encoder as an ONNX reranker that needs no torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from ekphory.errors import ModelError
from ekphory.models.cross_encoder_layout import CrossEncoderLayout, PairTokens
from ekphory.models.model_record import MODEL_FILE, TOKENIZER_FILE
from ekphory.models.onnx_session import OnnxSession
from ekphory.models.reranker_record import CalibrationCard, RerankerRecord, seal_reranker
from ekphory.training.activation_ranges import ModelInputs, ranges_over
from ekphory.training.encoder_graph import FloatArithmetic
from ekphory.training.reranker.cross_encoder_graph import (
    LOGITS,
    CrossEncoderWeights,
    build_cross_encoder,
    load_cross_encoder_weights,
)
from ekphory.training.reranker.example_files import read_examples
from ekphory.training.reranker.examples import RerankExample
from ekphory.training.reranker.platt import fit_platt, precision_thresholds
from ekphory.training.static_int8 import StaticInt8Arithmetic, fold_value_balance
from ekphory.training.training_rows import sha256_of

_PAIRS_PER_RUN = 16
_MOST_RANGE_QUESTIONS = 120

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankerDescription:
    """What the exported model's record says and the weights do not.

    Attributes:
        name: The model's name.
        licence: SPDX identifier of the weights' licence.
        source: Where the weights come from.
    """

    name: str
    licence: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class CalibrationExamples:
    """Held-back examples and the files that they were read from.

    Attributes:
        examples: Every second one fixes the ranges of activations, the others the calibration.
        files: SHA-256 of each file, by its name.
    """

    examples: tuple[RerankExample, ...]
    files: Mapping[str, str]


def read_calibration_examples(paths: Sequence[Path]) -> CalibrationExamples:
    """Read `held_back.jsonl.gz` of one or more runs; never evaluation data.

    Raises:
        DatasetError: A file is missing or holds something else.
    """
    examples = tuple(example for path in paths for example in read_examples(path))
    return CalibrationExamples(examples, {path.name: sha256_of(path) for path in paths})


def export_reranker(
    source: Path,
    target: Path,
    *,
    description: RerankerDescription,
    calibration: CalibrationExamples,
) -> RerankerRecord:
    """Write `model.onnx`, `tokenizer.json` and `model.json`; the same input gives the same bytes.

    The encoder's weights are 8-bit integers, those of the head 16-bit floats. The scales of
    activations are fixed: a score does not depend on what stands beside it in a batch.

    Args:
        source: The folder `model` of a run.
        target: Made if needed; the files in it are replaced.
        description: What the record says about the model.
        calibration: Held-back examples, eight or more.

    Raises:
        InvalidInput: There are too few examples.
        MissingExtra: onnx or safetensors is not installed.
        ModelError: The source cannot be exported.
    """
    tokenizer = _tokenizer(source)
    layout = CrossEncoderLayout(tokenizer)
    separator = tokenizer.token_to_id("[SEP]") or 0
    weights = load_cross_encoder_weights(source, separator=separator)
    ranged = calibration.examples[::2][:_MOST_RANGE_QUESTIONS]
    model = _quantised(weights, [pair for each in ranged for pair in _pairs(layout, each)])
    target.mkdir(parents=True, exist_ok=True)
    (target / MODEL_FILE).write_bytes(model)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    tokenizer.save(str(target / TOKENIZER_FILE), pretty=False)
    record = RerankerRecord(
        name=description.name,
        calibration=_fitted(model, layout, calibration.examples[1::2]),
        licence=description.licence,
        source=description.source,
        made_by={
            "command": "ekphory train export-reranker",
            "quantisation": "int8",
            "calibration_questions": len(calibration.examples),
            "calibration_files": dict(calibration.files),
        },
    )
    return seal_reranker(record, target)


def pair_inputs(pairs: Sequence[PairTokens]) -> ModelInputs:
    """Give the graph's inputs, padded to the longest pair."""
    shape = (len(pairs), max(len(pair.ids) for pair in pairs))
    ids, mask, types = (np.zeros(shape, np.int64) for _ in range(3))
    for row, pair in enumerate(pairs):
        ids[row, : len(pair.ids)] = pair.ids
        mask[row, : len(pair.ids)] = 1
        types[row, : len(pair.ids)] = pair.type_ids
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}


def _quantised(weights: CrossEncoderWeights, pairs: Sequence[PairTokens]) -> bytes:
    arithmetic = FloatArithmetic()
    model = build_cross_encoder(weights, arithmetic)
    ranges = ranges_over(model, arithmetic, _batches(pairs))
    encoder, ranges = fold_value_balance(weights.encoder, ranges)
    folded = replace(weights, encoder=encoder, stored="float16")
    quantised = build_cross_encoder(folded, StaticInt8Arithmetic(encoder, ranges))
    content: bytes = quantised.SerializeToString(deterministic=True)
    return content


def _fitted(
    model: bytes, layout: CrossEncoderLayout, examples: Sequence[RerankExample]
) -> CalibrationCard:
    session = OnnxSession(model, name="the exported model")
    logits = [_logits(session, _pairs(layout, example)) for example in examples]
    relevant = [
        np.array([candidate.relevant for candidate in example.candidates], np.float64)
        for example in examples
    ]
    fit = fit_platt(logits, relevant)
    said = fit.scaling.probabilities(np.concatenate(logits).astype(np.float32))
    return CalibrationCard(
        slope=fit.scaling.slope,
        intercept=fit.scaling.intercept,
        data=f"{fit.observations} candidates of {len(examples)} held-back training questions",
        measured={"ece/held back": round(fit.expected_calibration_error, 4)},
        thresholds=precision_thresholds(said.astype(np.float64), np.concatenate(relevant)),
    )


def _logits(session: OnnxSession, pairs: Sequence[PairTokens]) -> FloatArray:
    inputs = pair_inputs(pairs)
    (found,) = session.run(
        [LOGITS],
        input_ids=inputs["input_ids"],
        mask=inputs["attention_mask"],
        type_ids=inputs["token_type_ids"],
    )
    return np.asarray(found, np.float64)


def _pairs(layout: CrossEncoderLayout, example: RerankExample) -> list[PairTokens]:
    return layout.pairs(example.query, [candidate.passage for candidate in example.candidates])


def _batches(pairs: Sequence[PairTokens]) -> Iterator[ModelInputs]:
    ordered = sorted(pairs, key=lambda pair: len(pair.ids))
    for start in range(0, len(ordered), _PAIRS_PER_RUN):
        yield pair_inputs(ordered[start : start + _PAIRS_PER_RUN])


def _tokenizer(directory: Path) -> Tokenizer:
    path = directory / TOKENIZER_FILE
    if not path.is_file():
        raise ModelError(f"{path}: no such file. Give the folder `model` of a reranker's run.")
    return Tokenizer.from_file(str(path))
