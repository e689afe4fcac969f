"""Exports the layers that readers share, and the readers trained above them, in 8-bit integers."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tokenizers import Tokenizer

from ekphory.errors import ModelError
from ekphory.models import model_record, onnx_capture_reader, onnx_change_reader, onnx_graph
from ekphory.models import shared_layers as layers
from ekphory.models.captures import MESSAGE_CLASSES, CaptureReader, MessageReading
from ekphory.models.changes import CHANGE_KINDS, ChangeThresholds
from ekphory.models.embedder import EmbeddingModel
from ekphory.models.late_bound import Linear
from ekphory.models.onnx_models import OnnxSession, PairTokens, pad_batch
from ekphory.models.reranker import SMALL_RERANKER, bundled_directory
from ekphory.types import SUPERSEDING
from ekphory_lab.evaluation.metrics import FloatArray, precision_and_recall
from ekphory_lab.training import changes, near_turns, static_int8
from ekphory_lab.training.capture_texts import (
    CAPTURES,
    LabelledMessage,
    Transcript,
    labelled_windows,
    outcome_of,
)
from ekphory_lab.training.change_topics import TOPICS, Topic, read_topics, topic_pairs
from ekphory_lab.training.changes import LabelledPair, Scenario, of_part, pairs_for
from ekphory_lab.training.probability_scopes import DEVELOPMENT_CONVERSATIONS
from ekphory_lab.training.texts import read_conversations, sha256_of_texts

if TYPE_CHECKING:
    from onnx import ModelProto

HEAD_FILE = "ekphory_heads.safetensors"
_BATCH = 16
_RANGED = 2_000
"""Over so many pairs or windows activations are ranged."""
_WIDTH = 384
_SECOND_LAYER = "LayerNormalization_54_0"
"""What the second layer of an exported reranker gives."""


class _UpperWriter(onnx_graph.EncoderWriter):
    """Writes the trained layers, from hidden states to logits of pairs and of tokens."""

    def __init__(
        self,
        weights: onnx_graph.EncoderWeights,
        heads: Mapping[str, Linear],
        arithmetic: onnx_graph.Arithmetic,
    ) -> None:
        super().__init__(weights, arithmetic)
        self.heads = heads

    def _embed(self) -> str:
        return layers.HIDDEN

    def write(self) -> ModelProto:
        """Return the graph: hidden states and mask to `logits`, and to `tags` where there are any.

        Their shapes are (batch, kinds) and (batch, tokens, tags).
        """
        graph = self.graph
        hidden = self.last_layer()
        start, end = (graph.constant(np.array([place])) for place in (0, 1))
        tokens = graph.node("Slice", [hidden, start, end, end])
        first = graph.node("Squeeze", [tokens, end])
        joined = graph.node(
            "Concat", [first, self.mean(hidden, self.present())], attributes={"axis": 1}
        )
        graph.name_output(self.linear(joined, self.heads[layers.LOGITS]), layers.LOGITS)
        outputs = [
            onnx_graph.float_output(layers.LOGITS, ["batch", len(self.heads[layers.LOGITS].bias)])
        ]
        if layers.TAGS in self.heads:
            head = self.heads[layers.TAGS]
            product = graph.node("MatMul", [hidden, graph.constant(head.weight.T.copy())])
            tagged = graph.node("Add", [product, graph.constant(head.bias)])
            graph.name_output(tagged, layers.TAGS)
            outputs.append(
                onnx_graph.float_output(layers.TAGS, ["batch", "tokens", len(head.bias)])
            )
        width = int(self.weights.words.shape[1])
        states = onnx_graph.float_output(layers.HIDDEN, ["batch", "tokens", width])
        return graph.model(outputs, inputs=(layers.MASK,), given=(states,))


def _quantised(source: Path, shared: layers.SharedLayers, ranged: Sequence[PairTokens]) -> bytes:
    """Return the model of a run, its folder `model`, in 8 bits."""
    weights, heads = _read(source)

    def build(encoder: onnx_graph.EncoderWeights, arithmetic: onnx_graph.Arithmetic) -> ModelProto:
        return _UpperWriter(encoder, heads, arithmetic).write()

    ordered = sorted(ranged, key=len)
    model = static_int8.quantised(build, weights, map(shared.run, _batches(ordered)))
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def export_shared_layers(source: Path, target: Path) -> str:
    """Write the first two layers of an exported reranker; readers are trained above them.

    Args:
        source: Directory of the reranker; its vectors of words must be those of the bundled one.
        target: Made if needed.

    Returns:
        The revision of what was written.

    Raises:
        ModelError: It is no such reranker, its file is damaged, or its words are others.
    """
    from onnx import TensorProto, helper, load_from_string, shape_inference
    from onnx.utils import Extractor

    record = model_record.read_reranker_record(source)
    content = model_record.read_checked(
        source / model_record.MODEL_FILE, record.files[model_record.MODEL_FILE]
    )
    _check_words(content, source)
    model = shape_inference.infer_shapes(load_from_string(content))
    shape: list[str | int | None] = ["batch", "tokens", _WIDTH]
    for name in (layers.WORDS, _SECOND_LAYER):
        info = helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        model.graph.value_info.append(info)
    given = [each.name for each in model.graph.input]
    part = Extractor(model).extract_model([*given, layers.WORDS], [_SECOND_LAYER])
    part.graph.node.append(helper.make_node("Identity", [_SECOND_LAYER], [layers.HIDDEN]))
    part.graph.output[0].name = layers.HIDDEN
    del part.graph.value_info[:]
    content = part.SerializeToString(deterministic=True)
    files = {model_record.MODEL_FILE: hashlib.sha256(content).hexdigest()}
    revision = model_record.content_revision(files, prompts={})
    written = {
        "format": model_record.RECORD_FORMAT,
        "kind": layers.SHARED_KIND,
        "name": "ekphory-shared-layers",
        "revision": revision,
        "layout": layers.SHARED_LAYOUT,
        "kinds": [],
        "words": SMALL_RERANKER,
        "licence": record.licence,
        "source": f"the first two layers of {record.name}@{record.revision}",
        "files": files,
    }
    _write_reader(target, content, written)
    return revision


def _check_words(reranker: bytes, source: Path) -> None:
    directory = bundled_directory(SMALL_RERANKER)
    tokenizer = Tokenizer.from_file(str(directory / model_record.TOKENIZER_FILE))
    tokens = range(tokenizer.get_vocab_size())
    every_token = pad_batch([tokens], [[0] * len(tokens)])
    own, bundled = (
        OnnxSession(layers.cut_graph(each, layers.WORDS), name=str(source)).compute(
            [layers.WORDS], every_token
        )[0]
        for each in (reranker, (directory / model_record.MODEL_FILE).read_bytes())
    )
    if not np.array_equal(own, bundled):
        raise ModelError(
            f"{source}: has other vectors of words than the bundled {SMALL_RERANKER}. "
            "Name a reranker that was trained from the same base."
        )


def _read(source: Path) -> tuple[onnx_graph.EncoderWeights, dict[str, Linear]]:
    from safetensors.numpy import load_file

    weights = onnx_graph.load_encoder_weights(source)
    path = source / HEAD_FILE
    if not path.is_file():
        raise ModelError(f"{path}: no such file. Name the folder `model` of a reader's run.")
    kept = load_file(path)
    heads = {layers.LOGITS: Linear(kept["weight"], kept["bias"])}
    if "tag_weight" in kept:
        heads[layers.TAGS] = Linear(kept["tag_weight"], kept["tag_bias"])
    return weights, heads


def _batches(tokens: Sequence[PairTokens]) -> Iterator[Sequence[PairTokens]]:
    return (tokens[start : start + _BATCH] for start in range(0, len(tokens), _BATCH))


# From logits to probabilities, and a reader's record.

_STEPS, _RATE = 500, 0.03


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
        return onnx_change_reader.softmax(logits / self.temperature + np.array(self.bias))


def fit_scaling(logits: FloatArray, labels: FloatArray) -> Scaling:
    """Return the scaling of the least cross entropy, found by Adam over all pairs."""
    wanted = np.eye(logits.shape[1])[labels.astype(int)]
    values = np.zeros(1 + logits.shape[1])  # the logarithm of the temperature, then the bias
    mean, square = np.zeros_like(values), np.zeros_like(values)
    for step in range(1, _STEPS + 1):
        scaled = logits * np.exp(-values[0])
        wrong = (onnx_change_reader.softmax(scaled + values[1:]) - wanted) / len(labels)
        gradient = np.concatenate([[-(wrong * scaled).sum()], wrong.sum(axis=0)])
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        rate = _RATE / (1 - 0.9**step)
        values -= rate * mean / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    bias = values[1:] - values[1:].mean()
    return Scaling(round(float(np.exp(values[0])), 4), tuple(round(float(b), 4) for b in bias))


def _logits(
    model: bytes, shared: layers.SharedLayers, tokens: Sequence[PairTokens], *, name: str
) -> FloatArray:
    """Return the logits of pairs or windows, in their order."""
    session = OnnxSession(model, name=name)
    found: list[Any] = []
    order = np.argsort([len(each) for each in tokens], kind="stable")
    for batch in _batches([tokens[place] for place in order]):
        found.extend(session.compute([layers.LOGITS], shared.run(batch))[0])
    return np.array(found, np.float64)[np.argsort(order)]


def _write_reader(target: Path, model: bytes, record: Mapping[str, Any]) -> None:
    target.mkdir(parents=True, exist_ok=True)
    (target / model_record.MODEL_FILE).write_bytes(model)
    text = json.dumps(record, indent=2, ensure_ascii=False)
    (target / model_record.RECORD_FILE).write_text(text + "\n", encoding="utf-8")


def _revision(*content: Any) -> str:  # noqa: ANN401  whatever JSON can hold
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


# The change reader.

THRESHOLDS = ChangeThresholds(acts=0.5, shows=0.25)
"""A decision acts where it is likelier than not, and is shown where it is half as likely."""
TALK_PAIRS = 2_000
"""Pairs of neighbouring talk beside which probabilities are fitted and measured."""
MOST_UNRELATED = 20
"""Unrelated pairs of a scenario; in stores in which a little changes there are hundreds."""
NEAR_MEMORIES = 2
"""How often each memory of a written store is paired for the same."""
_OF_A_TOPIC = 40
_READ_FOR_CHANGES = (changes.CHANGES, TOPICS, DEVELOPMENT_CONVERSATIONS, near_turns.STORES)
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
    memories: Mapping[changes.Part, Sequence[LabelledPair]]

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
        plain = [each for each in self.scenarios if each.name.startswith(changes.PLAIN)]
        return plain, [each for each in self.scenarios if not each.name.startswith(changes.PLAIN)]


def read_pairs(embedder: EmbeddingModel) -> WrittenPairs:
    """Return all that is written, with talk and memories that lie near each other."""
    conversations = read_conversations(DEVELOPMENT_CONVERSATIONS)
    talk = near_turns.near_turns(conversations, embedder, most=TALK_PAIRS)
    stores = {
        part: near_turns.as_conversations(near_turns.read_stores(part))
        for part in changes.OTHER_PARTS.values()
    }
    memories = {
        part: near_turns.near_each(rows, embedder, each=NEAR_MEMORIES)
        for part, rows in stores.items()
    }
    return WrittenPairs(changes.read_scenarios(), read_topics(), talk, memories)


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
) -> dict[str, ChangeOutcome]:
    """Write `model.onnx` and `model.json`; the same input gives the same bytes.

    Probabilities are fitted with the 8-bit model on the plain scenarios for fitting and every other
    pair of talk, and measured on what is held back.

    Args:
        source: Folder `model` of a run.
        target: Made if needed.
        texts: What it is fitted and measured on.

    Returns:
        How well held-back pairs were read: `plain` and `oblique` scenarios, `topics`, and `all`
        with talk.
    """
    shared = layers.SharedLayers()
    layout = onnx_change_reader.StatementLayout(shared.tokenizer)
    ranged = layout.pairs([pair for pair, _ in texts.ranged()])
    model = _quantised(source, shared, ranged)

    def read(pairs: Sequence[LabelledPair]) -> tuple[FloatArray, FloatArray]:
        tokens = layout.pairs([pair for pair, _ in pairs])
        labels = np.array([CHANGE_KINDS.index(kind) for _, kind in pairs])
        return _logits(model, shared, tokens, name=str(target)), labels

    scaling = fit_scaling(*read(texts.fitting()))
    outcomes = {}
    for name, pairs in texts.held_back().items():
        logits, labels = read(pairs)
        outcomes[name] = measure(scaling.probabilities(logits), labels, THRESHOLDS)
    files = {model_record.MODEL_FILE: hashlib.sha256(model).hexdigest()}
    record: dict[str, Any] = {
        "format": 1,
        "kind": onnx_change_reader.RECORD_KIND,
        "name": "ekphory-change-reader",
        "revision": _revision(files, asdict(scaling), asdict(THRESHOLDS)),
        "layout": onnx_change_reader.LAYOUT_NAME,
        "kinds": list(CHANGE_KINDS),
        "shared": {"name": shared.name, "revision": shared.revision},
        **asdict(scaling),
        "thresholds": asdict(THRESHOLDS),
        "licence": "Apache-2.0",
        "made_by": {"command": "ekphory train export-change-reader", "quantisation": "int8"},
        "data": {path.name: sha256_of_texts(path) for path in _READ_FOR_CHANGES},
        "measured": {name: asdict(each) for name, each in outcomes.items()},
        "files": files,
    }
    _write_reader(target, model, record)
    return outcomes


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
    return ChangeOutcome(
        round(float(np.mean(list(f1.values()))), 4),
        round(float((said == labels).mean()), 4),
        *precision_and_recall(acts, true),
        f1,
    )


# The capture reader.

_SURE = 0.5
MISSED_COSTS = 19
"""What is missed is lost, and what is kept too much only stands below what answers: one miss counts
as so many of the others."""
LEAST = round(1 / (1 + MISSED_COSTS), 4)
"""The threshold at which both cost the same, where probabilities are right."""

_Counted = defaultdict[str, list[tuple[bool, bool]]]
"""By name, whether something was found and whether it is there, case by case."""


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
    source: Path, target: Path, *, transcripts: Sequence[Transcript]
) -> CaptureOutcome:
    """Write `model.onnx` and `model.json`; the same input gives the same bytes.

    Probabilities are fitted with the 8-bit model on the transcripts for fitting; it is measured on
    those that are held back.

    Args:
        source: Folder `model` of a run.
        target: Made if needed.
        transcripts: All of them.
    """
    shared = layers.SharedLayers()
    layout = onnx_capture_reader.CaptureLayout(shared.tokenizer)
    ranged, fitting = (
        labelled_windows(of_part(part, transcripts), layout) for part in ("training", "fitting")
    )
    model = _quantised(source, shared, [each.window.tokens for each in ranged[:_RANGED]])
    tokens = [each.window.tokens for each in fitting]
    logits = _logits(model, shared, tokens, name=str(target))[:, : onnx_capture_reader.OUTCOMES]
    scaling = fit_scaling(logits, np.array([each.outcome for each in fitting]))
    files = {model_record.MODEL_FILE: hashlib.sha256(model).hexdigest()}
    record: dict[str, Any] = {
        "format": 1,
        "kind": onnx_capture_reader.RECORD_KIND,
        "name": "ekphory-capture-reader",
        "revision": _revision(files, asdict(scaling), LEAST),
        "layout": onnx_capture_reader.LAYOUT_NAME,
        "classes": list(MESSAGE_CLASSES),
        "shared": {"name": shared.name, "revision": shared.revision},
        **asdict(scaling),
        "least": LEAST,
        "licence": "Apache-2.0",
        "made_by": {"command": "ekphory train export-capture-reader", "quantisation": "int8"},
        "data": {CAPTURES.name: sha256_of_texts(CAPTURES)},
        "files": files,
    }
    _write_reader(target, model, record)
    reader = onnx_capture_reader.OnnxCaptureReader(target)
    outcome = _measure_captures(reader, of_part("held back", transcripts))
    _write_reader(target, model, record | {"measured": asdict(outcome)})
    return outcome


def _measure_captures(reader: CaptureReader, transcripts: Sequence[Transcript]) -> CaptureOutcome:
    """Return how well transcripts are read that no model was trained or fitted on."""
    counted = _Counted(list)
    for transcript in transcripts:
        readings = reader.read([each.message for each in transcript.messages])
        for labelled, reading in zip(transcript.messages, readings, strict=True):
            _count_worth(counted, labelled, reading, reader.least)
            _count_spans(counted, labelled, reading)
    rates = {name: precision_and_recall(*zip(*each, strict=True)) for name, each in counted.items()}
    rates = defaultdict(lambda: (0.0, 0.0), rates)
    right, complete = rates["entity"]
    return CaptureOutcome(
        *rates["keep"],
        rates["class"][1],
        rates["reach"][1],
        round(2 * right * complete / max(1e-9, right + complete), 4),
        *rates["secret"],
        *rates["steer"],
    )


def _count_worth(
    counted: _Counted, labelled: LabelledMessage, reading: MessageReading, least: float
) -> None:
    found, true = sum(reading.classes) >= least, labelled.worth == "keep"
    counted["keep"].append((found, true))
    counted["steer"].append((reading.steers >= _SURE, labelled.worth == "steer"))
    if true and found:
        best = 2 + int(np.argmax(reading.classes))
        counted["class"].append((best == outcome_of(labelled), True))
        counted["reach"].append((reading.reaches == labelled.reaches, True))


def _count_spans(counted: _Counted, labelled: LabelledMessage, reading: MessageReading) -> None:
    """Count named things by their exact span and kind, and secrets by any shared character."""
    named, given = (
        {(span.start, span.end, span.kind) for span in spans if span.kind != "secret"}
        for spans in (labelled.spans, reading.spans)
    )
    counted["entity"] += [(each in given, each in named) for each in named | given]
    hidden, cut = (
        [range(span.start, span.end) for span in spans if span.kind == "secret"]
        for spans in (labelled.spans, reading.spans)
    )
    counted["secret"] += [(_overlaps(one, cut), True) for one in hidden]
    counted["secret"] += [(True, False) for one in cut if not _overlaps(one, hidden)]


def _overlaps(one: range, others: Sequence[range]) -> bool:
    return any(one.start < other.stop and other.start < one.stop for other in others)
