"""Exports a trained capture reader as ONNX in 8-bit integers, and fits its probabilities."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ekphory.models.captures import MESSAGE_CLASSES, CaptureReader, MessageReading, TextSpan
from ekphory.models.model_record import MODEL_FILE, RECORD_FILE
from ekphory.models.onnx_capture_reader import (
    LAYOUT_NAME,
    OUTCOMES,
    RECORD_KIND,
    CaptureLayout,
    OnnxCaptureReader,
)
from ekphory.models.onnx_session import OnnxSession
from ekphory.models.shared_layers import LOGITS, SharedLayers
from ekphory_lab.training.capture_reader import labelled_windows, outcome_of
from ekphory_lab.training.capture_texts import LabelledMessage, Transcript, transcripts_for
from ekphory_lab.training.change_export import fit_scaling
from ekphory_lab.training.upper_export import quantised_upper_layers, shared_record

_RANGED = 2_000
_BATCH = 16
_SURE = 0.5


@dataclass(frozen=True, slots=True)
class CaptureOutcome:
    """How well held-back transcripts were read.

    Attributes:
        precision, recall: Of what is worth remembering, from the threshold on.
        class_accuracy: Of those found, share with the right class.
        reach_accuracy: Of those found, share with the right number of messages before.
        entity_f1: By exact span and kind.
        secret_precision, secret_recall: Of secrets, by any shared character.
        steer_precision, steer_recall: Of messages that steer.
    """

    precision: float
    recall: float
    class_accuracy: float
    reach_accuracy: float
    entity_f1: float
    secret_precision: float
    secret_recall: float
    steer_precision: float
    steer_recall: float


def export_capture_reader(
    source: Path, target: Path, *, transcripts: Sequence[Transcript], data: Mapping[str, str]
) -> CaptureOutcome:
    """Write `model.onnx` and `model.json`; the same input gives the same bytes.

    Probabilities are fitted with the 8-bit model on the transcripts for fitting; it is measured on
    those that are held back.

    Args:
        source: Folder `model` of a run.
        target: Made if needed.
        transcripts: All of them.
        data: SHA-256 of what the model was trained on, by name.
    """
    shared = SharedLayers()
    layout = CaptureLayout(shared.tokenizer)
    trained = labelled_windows(transcripts_for("training", transcripts), layout)
    model = quantised_upper_layers(
        source, shared, [each.window.tokens for each in trained[:_RANGED]]
    )
    fitting = labelled_windows(transcripts_for("fitting", transcripts), layout)
    session = OnnxSession(model, name=str(target))
    tokens = [each.window.tokens for each in fitting]
    batches = (tokens[start : start + _BATCH] for start in range(0, len(tokens), _BATCH))
    found: list[Any] = [session.compute([LOGITS], shared.run(batch))[0] for batch in batches]
    logits = np.concatenate(found)[:, :OUTCOMES]
    outcomes = np.array([each.outcome for each in fitting])
    scaling = fit_scaling(logits, outcomes)
    target.mkdir(parents=True, exist_ok=True)
    (target / MODEL_FILE).write_bytes(model)
    files = {MODEL_FILE: hashlib.sha256(model).hexdigest()}
    revised = json.dumps([files, asdict(scaling), LEAST])
    record: dict[str, Any] = {
        "format": 1,
        "kind": RECORD_KIND,
        "name": "ekphory-capture-reader",
        "revision": hashlib.sha256(revised.encode()).hexdigest()[:16],
        "layout": LAYOUT_NAME,
        "classes": list(MESSAGE_CLASSES),
        "shared": shared_record(shared),
        "temperature": scaling.temperature,
        "bias": list(scaling.bias),
        "least": LEAST,
        "licence": "Apache-2.0",
        "made_by": {"command": "ekphory train export-capture-reader", "quantisation": "int8"},
        "data": dict(data),
        "files": files,
    }
    _write_record(target, record)
    outcome = measure(OnnxCaptureReader(target), transcripts_for("held back", transcripts))
    _write_record(target, record | {"measured": asdict(outcome)})
    return outcome


def _write_record(target: Path, record: Mapping[str, Any]) -> None:
    text = json.dumps(record, indent=2, ensure_ascii=False)
    (target / RECORD_FILE).write_text(text + "\n", encoding="utf-8")


MISSED_COSTS = 24
"""What is missed is lost, and what is kept too much only stands below what answers: one miss counts
as so many of the others."""
LEAST = round(1 / (1 + MISSED_COSTS), 4)
"""The threshold at which both cost the same, where probabilities are right."""


def measure(reader: CaptureReader, transcripts: Sequence[Transcript]) -> CaptureOutcome:
    """Return how well transcripts are read that no model was trained or fitted on."""
    said = _Counts()
    for transcript in transcripts:
        readings = reader.read([each.message for each in transcript.messages])
        for labelled, reading in zip(transcript.messages, readings, strict=True):
            _count_worth(said, labelled, reading, reader.least)
            _count_names(said, labelled, reading)
            _count_secrets(said, labelled, reading)
    right, complete = said.rates("entity")
    return CaptureOutcome(
        *said.rates("keep"),
        said.rates("class")[1],
        said.rates("reach")[1],
        round(2 * right * complete / max(1e-9, right + complete), 4),
        *said.rates("secret"),
        *said.rates("steer"),
    )


def _count_worth(
    said: _Counts, labelled: LabelledMessage, reading: MessageReading, least: float
) -> None:
    true, found = labelled.worth == "keep", sum(reading.classes) >= least
    said.count("keep", true=true, found=found)
    said.count("steer", true=labelled.worth == "steer", found=reading.steers >= _SURE)
    if true and found:
        best = 2 + int(np.argmax(reading.classes))
        said.count("class", true=True, found=best == outcome_of(labelled))
        said.count("reach", true=True, found=reading.reaches == labelled.reaches)


def _count_names(said: _Counts, labelled: LabelledMessage, reading: MessageReading) -> None:
    named, given = (
        {(span.start, span.end, span.kind) for span in spans if span.kind != "secret"}
        for spans in (labelled.spans, reading.spans)
    )
    for each in named | given:
        said.count("entity", true=each in named, found=each in given)


def _count_secrets(said: _Counts, labelled: LabelledMessage, reading: MessageReading) -> None:
    hidden, cut = (
        [span for span in spans if span.kind == "secret"]
        for spans in (labelled.spans, reading.spans)
    )
    for one in hidden:
        said.count("secret", true=True, found=any(_overlap(one, other) for other in cut))
    for one in cut:
        if not any(_overlap(one, other) for other in hidden):
            said.count("secret", true=False, found=True)


def _overlap(one: TextSpan, other: TextSpan) -> bool:
    return one.start < other.end and other.start < one.end


class _Counts:
    """How often something was there, was found, and both."""

    def __init__(self) -> None:
        self._counts: dict[str, list[int]] = {}

    def count(self, name: str, *, true: bool, found: bool) -> None:
        """Count one case."""
        counts = self._counts.setdefault(name, [0, 0, 0])
        for place, each in enumerate((true, found, true and found)):
            counts[place] += each

    def rates(self, name: str) -> tuple[float, float]:
        """Return precision and recall."""
        true, found, both = self._counts.get(name, [0, 0, 0])
        return round(both / max(1, found), 4), round(both / max(1, true), 4)
