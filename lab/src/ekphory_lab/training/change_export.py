"""Exports a trained change reader as ONNX in 8-bit integers, and fits its probabilities."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ekphory.models.changes import CHANGE_KINDS, ChangeThresholds
from ekphory.models.model_record import MODEL_FILE, RECORD_FILE
from ekphory.models.onnx_change_reader import (
    LAYOUT_NAME,
    RECORD_KIND,
    StatementLayout,
    softmax,
)
from ekphory.models.onnx_session import OnnxSession
from ekphory.models.shared_layers import LOGITS, SharedLayers
from ekphory.types import SUPERSEDING
from ekphory_lab.evaluation.metrics import FloatArray
from ekphory_lab.training.change_topics import Topic, topic_pairs
from ekphory_lab.training.changes import PLAIN, LabelledPair, Part, Scenario, pairs_for
from ekphory_lab.training.upper_export import quantised_upper_layers, shared_record

THRESHOLDS = ChangeThresholds(acts=0.5, shows=0.25)
"""A decision acts where it is likelier than not, and is shown where it is half as likely."""
TALK_PAIRS = 2_000
"""Pairs of neighbouring talk beside which probabilities are fitted and measured."""
MOST_UNRELATED = 20
"""Unrelated pairs of a scenario; in stores in which a little changes there are hundreds."""
NEAR_MEMORIES = 2
"""How often each memory of a written store is paired for the same."""
_BATCH = 16
_STEPS, _RATE = 500, 0.03
_RANGED = 2_000
_OF_A_TOPIC = 40
_SUPERSEDING = [CHANGE_KINDS.index(kind) for kind in SUPERSEDING]


@dataclass(frozen=True, slots=True)
class WrittenPairs:
    """What a reader's probabilities are fitted and measured on.

    Attributes:
        scenarios, topics: All of them.
        talk: Pairs of turns that no model was trained on and that change nothing.
        memories: The same of memories of written stores, by what they are for.
    """

    scenarios: Sequence[Scenario]
    topics: Sequence[Topic]
    talk: Sequence[LabelledPair]
    memories: Mapping[Part, Sequence[LabelledPair]]

    def ranged(self) -> list[LabelledPair]:
        """Return pairs for training over which activations are ranged."""
        told = pairs_for("training", self.scenarios)[: _RANGED // 2]
        return told + topic_pairs("training", self.topics, each=_OF_A_TOPIC)[: _RANGED // 2]

    def fitting(self) -> list[LabelledPair]:
        """Return pairs for fitting probabilities: those that people write most like."""
        plain, _ = self._by_telling()
        told = pairs_for("fitting", plain, most_unrelated=MOST_UNRELATED)
        return [*told, *self.talk[::2], *self.memories["fitting"]]

    def held_back(self) -> dict[str, list[LabelledPair]]:
        """Return pairs for measuring, by where they come from."""
        plain, oblique = (
            pairs_for("held back", each, most_unrelated=MOST_UNRELATED)
            for each in self._by_telling()
        )
        topics = topic_pairs("held back", self.topics, each=_OF_A_TOPIC)
        unchanged = [*self.talk[1::2], *self.memories["held back"]]
        every = [*plain, *oblique, *topics, *unchanged]
        return {"plain": plain, "oblique": oblique, "topics": topics, "all": every}

    def _by_telling(self) -> tuple[list[Scenario], list[Scenario]]:
        plain = [each for each in self.scenarios if each.name.startswith(PLAIN)]
        return plain, [each for each in self.scenarios if not each.name.startswith(PLAIN)]


@dataclass(frozen=True, slots=True)
class ChangeOutcome:
    """How well held-back pairs were read.

    Attributes:
        macro_f1: Mean of the F1 of all kinds.
        accuracy: Share of the pairs that were given their kind.
        precision, recall: Of "the older one holds no more", from the threshold on.
        f1: By kind.
    """

    macro_f1: float
    accuracy: float
    precision: float
    recall: float
    f1: Mapping[str, float]


def export_change_reader(
    source: Path,
    target: Path,
    *,
    texts: WrittenPairs,
    data: Mapping[str, str],
) -> dict[str, ChangeOutcome]:
    """Write `model.onnx` and `model.json`; the same input gives the same bytes.

    Probabilities are fitted with the 8-bit model on the plain scenarios for fitting and every other
    pair of talk, and measured on what is held back.

    Args:
        source: Folder `model` of a run.
        target: Made if needed.
        texts: What it is fitted and measured on.
        data: SHA-256 of what the model was trained on, by name.

    Returns:
        How well held-back pairs were read: `plain` and `oblique` scenarios, `topics`, and `all`
        with talk.
    """
    shared = SharedLayers()
    layout = StatementLayout(shared.tokenizer)
    ranged = layout.pairs([pair for pair, _ in texts.ranged()])
    model = quantised_upper_layers(source, shared, ranged)
    session = OnnxSession(model, name=str(target))
    fitting = _read_part(session, shared, layout, texts.fitting())
    scaling = fit_scaling(*fitting)
    outcomes = {}
    for name, pairs in texts.held_back().items():
        logits, labels = _read_part(session, shared, layout, pairs)
        outcomes[name] = measure(scaling.probabilities(logits), labels, THRESHOLDS)
    target.mkdir(parents=True, exist_ok=True)
    (target / MODEL_FILE).write_bytes(model)
    files = {MODEL_FILE: hashlib.sha256(model).hexdigest()}
    record: dict[str, Any] = {
        "format": 1,
        "kind": RECORD_KIND,
        "name": "ekphory-change-reader",
        "revision": _revision(files, scaling),
        "layout": LAYOUT_NAME,
        "kinds": list(CHANGE_KINDS),
        "shared": shared_record(shared),
        "temperature": scaling.temperature,
        "bias": list(scaling.bias),
        "thresholds": asdict(THRESHOLDS),
        "licence": "Apache-2.0",
        "made_by": {"command": "ekphory train export-change-reader", "quantisation": "int8"},
        "data": dict(data),
        "measured": {name: asdict(each) for name, each in outcomes.items()},
        "files": files,
    }
    text = json.dumps(record, indent=2, ensure_ascii=False)
    (target / RECORD_FILE).write_text(text + "\n", encoding="utf-8")
    return outcomes


@dataclass(frozen=True, slots=True)
class Scaling:
    """How logits become probabilities: divided by a temperature, and a bias for each kind added.

    Source: Guo et al., "On Calibration of Modern Neural Networks", ICML 2017 (vector scaling, here
    with one temperature). The bias undoes that rare kinds weigh more in training.
    """

    temperature: float
    bias: tuple[float, ...]

    def probabilities(self, logits: FloatArray) -> FloatArray:
        """Return the probability of each kind, shape (pairs, kinds)."""
        return softmax(logits / self.temperature + np.array(self.bias))


def fit_scaling(logits: FloatArray, labels: FloatArray) -> Scaling:
    """Return the scaling of the least cross entropy, found by Adam over all pairs."""
    wanted = np.eye(logits.shape[1])[labels.astype(int)]
    values = np.zeros(1 + logits.shape[1])  # the logarithm of the temperature, then the bias
    mean, square = np.zeros_like(values), np.zeros_like(values)
    for step in range(1, _STEPS + 1):
        scaled = logits * np.exp(-values[0])
        wrong = (softmax(scaled + values[1:]) - wanted) / len(labels)
        gradient = np.concatenate([[-(wrong * scaled).sum()], wrong.sum(axis=0)])
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        rate = _RATE / (1 - 0.9**step)
        values -= rate * mean / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    bias = values[1:] - values[1:].mean()
    return Scaling(round(float(np.exp(values[0])), 4), tuple(round(float(b), 4) for b in bias))


def measure(
    probabilities: FloatArray, labels: FloatArray, thresholds: ChangeThresholds
) -> ChangeOutcome:
    """Return how well pairs are read from their probabilities, shape (pairs, kinds)."""
    said = probabilities.argmax(axis=1)
    f1: dict[str, float] = {}
    for number, kind in enumerate(CHANGE_KINDS):
        right = float(((said == number) & (labels == number)).sum())
        wrong = float(((said == number) ^ (labels == number)).sum())
        f1[str(kind)] = round(2 * right / max(1.0, 2 * right + wrong), 4)
    acts = probabilities[:, _SUPERSEDING].sum(axis=1) >= thresholds.acts
    true = np.isin(labels, _SUPERSEDING)
    found = float((acts & true).sum())
    return ChangeOutcome(
        macro_f1=round(float(np.mean(list(f1.values()))), 4),
        accuracy=round(float((said == labels).mean()), 4),
        precision=round(found / max(1.0, float(acts.sum())), 4),
        recall=round(found / max(1.0, float(true.sum())), 4),
        f1=f1,
    )


def _revision(files: Mapping[str, str], scaling: Scaling) -> str:
    content = json.dumps([dict(files), asdict(scaling), asdict(THRESHOLDS)])
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def _read_part(
    session: OnnxSession,
    shared: SharedLayers,
    layout: StatementLayout,
    pairs: Sequence[Any],
) -> tuple[FloatArray, FloatArray]:
    tokens = layout.pairs([pair for pair, _ in pairs])
    order = np.argsort([len(each) for each in tokens], kind="stable")
    logits = np.empty((len(tokens), len(CHANGE_KINDS)))
    for start in range(0, len(order), _BATCH):
        places = order[start : start + _BATCH]
        batch = shared.run([tokens[place] for place in places])
        logits[places] = session.compute([LOGITS], batch)[0]
    return logits, np.array([CHANGE_KINDS.index(kind) for _, kind in pairs])
