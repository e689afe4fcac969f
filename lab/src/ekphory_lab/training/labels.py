"""Fits when a label fits a text: a curve over the cosine of both by the bundled embedder.

The written scenarios have a topic each. It is a label that fits the statements about the fact that
changes, and those of others do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from ekphory.capture.services import LABELS_KIND, LEAST_LABEL, label_cosines
from ekphory.models.embedder import EmbeddingModel
from ekphory.retrieval.calibration import FittedFile
from ekphory_lab.evaluation.metrics import FloatArray, precision_and_recall
from ekphory_lab.training.changes import CHANGES, PLAIN, Part, Scenario, of_part
from ekphory_lab.training.reranker.export import platt_curve
from ekphory_lab.training.texts import sha256_of_texts

LONGEST_LABEL = 3
"""Words: a longer topic is a sentence, and no label."""
OTHER_LABELS = 5
"""So many labels of other scenarios are asked of each text."""
_UNTOLD = ("other subject", "plans", "unrelated")


@dataclass(frozen=True, slots=True)
class LabelledText:
    """A text, a label that fits it, and labels that do not."""

    text: str
    label: str
    others: tuple[str, ...]


def read_labelled(
    part: Part, scenarios: Sequence[Scenario], *, seed: int = 26
) -> list[LabelledText]:
    """Return the first statement of the fact that changes of each plain scenario, with its topic.

    Args:
        part: Which scenarios.
        scenarios: All of them.
        seed: Decides which other labels are asked of each.
    """
    chance = Random(seed)  # noqa: S311  no secret
    plain = [
        each
        for each in of_part(part, scenarios)
        if each.name.startswith(PLAIN) and len(each.topic.split()) <= LONGEST_LABEL
    ]
    labels = sorted({each.topic for each in plain})
    found = []
    for each in plain:
        told = [pair for pair, kind in each.relations.items() if kind not in _UNTOLD]
        if told:
            others = [label for label in labels if label != each.topic]
            chosen = tuple(chance.sample(others, min(OTHER_LABELS, len(others))))
            found.append(LabelledText(each.statements[min(told)[0]].text, each.topic, chosen))
    return found


def learn_labels(scenarios: Sequence[Scenario], embedder: EmbeddingModel) -> FittedFile:
    """Fit on the scenarios for training and fitting; measured on those that are held back."""
    fitting = [each for part in ("training", "fitting") for each in read_labelled(part, scenarios)]
    curve = platt_curve(*_measure(fitting, embedder))
    cosines, fits = _measure(read_labelled("held back", scenarios), embedder)
    said = curve.probabilities(cosines)
    precision, recall = precision_and_recall(said >= LEAST_LABEL, fits == 1)
    measured = {
        "precision": precision,
        "recall": recall,
        "says": round(float(said.mean()), 4),
        "fits": round(float(fits.mean()), 4),
    }
    return FittedFile(
        kind=LABELS_KIND,
        command="ekphory train labels",
        models={"embedder": embedder.identity.model_id},
        data={CHANGES.name: sha256_of_texts(CHANGES)},
        seed=0,
        measured=measured,
        values={"slope": round(curve.slope, 4), "intercept": round(curve.intercept, 4)},
    )


def _measure(
    texts: Sequence[LabelledText], embedder: EmbeddingModel
) -> tuple[FloatArray, FloatArray]:
    """Return the cosine of each text and label, and whether the label fits."""
    cosines, fits = [], []
    for each in texts:
        labels = (each.label, *each.others)
        cosines += label_cosines([each.text], labels, embedder)[0].tolist()
        fits += [label == each.label for label in labels]
    return np.array(cosines), np.array(fits, np.float64)
