"""Exports a trained cross-encoder as an ONNX reranker, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from tokenizers import Tokenizer

from ekphory.errors import InvalidInput, MissingExtra, ModelError
from ekphory.models import model_record, onnx_graph
from ekphory.models.late_bound import Linear
from ekphory.models.onnx_export import GraphReader, ModelDescription, write_encoder
from ekphory.models.onnx_models import (
    MOST_TOKENS,
    CrossEncoderLayout,
    OnnxSession,
    PairTokens,
    pad_batch,
)
from ekphory.models.reranker import PlattScaling
from ekphory_lab.evaluation.metrics import FloatArray, expected_calibration_error
from ekphory_lab.evaluation.reranking.benchmark import precision_threshold
from ekphory_lab.training import static_int8
from ekphory_lab.training.reranker.examples import RerankExample, read_examples
from ekphory_lab.training.texts import sha256_of

if TYPE_CHECKING:
    from onnx import ModelProto


HEAD_FILE = "ekphory_reranker.safetensors"
"""What stands beside the encoder's weights in a trained cross-encoder's directory."""
LAYOUT_KEY = "layout"
"""Under which it says how its pairs became tokens."""
LOGITS = "logits"


def read_layout_name(directory: Path) -> str:
    """Return the layout that a trained cross-encoder reads; one that says none has the first.

    Raises:
        MissingExtra: safetensors is not installed.
    """
    try:
        from safetensors import safe_open
    except ImportError as error:
        raise MissingExtra("export", "Reading a trained reranker") from error
    with safe_open(directory / HEAD_FILE, framework="numpy") as file:
        said = file.metadata() or {}
    return str(said.get(LAYOUT_KEY, model_record.LAYOUT_NAMES[0]))


@dataclass(frozen=True, slots=True)
class CrossEncoderWeights:
    """A whole cross-encoder.

    Attributes:
        encoder: Its encoder.
        second_type: What token type 1 adds to a token beyond type 0, shape (hidden,).
        projection, match, dense, out: The head, as `models.py` has it.
        separator: Token id of [SEP].
        stored: How the head's two matrices are stored; they are computed in 32 bits.
    """

    encoder: onnx_graph.EncoderWeights
    second_type: onnx_graph.Array
    projection: Linear
    match: Linear
    dense: Linear
    out: Linear
    separator: int
    stored: Literal["float32", "float16"] = "float32"


def load_cross_encoder_weights(directory: Path, *, separator: int) -> CrossEncoderWeights:
    """Read a trained cross-encoder without torch; positions beyond the layout's are left out.

    Args:
        directory: Holds `config.json`, `model.safetensors` and the head.
        separator: Token id of [SEP].

    Raises:
        MissingExtra: safetensors is not installed.
        ModelError: A file is missing or holds something else.
    """
    try:
        from safetensors.numpy import load_file
    except ImportError as error:
        raise MissingExtra("export", "Exporting a reranker") from error
    path = directory / HEAD_FILE
    if not path.is_file():
        raise ModelError(f"{path}: no such file. Give the folder `model` of a reranker's run.")
    encoder = onnx_graph.load_encoder_weights(directory)
    head = load_file(path)
    words = load_file(directory / "model.safetensors")
    try:
        types = words["embeddings.token_type_embeddings.weight"].astype(np.float32)
        parts: dict[str, Any] = {
            name: Linear(head[f"{name}.weight"], head.get(f"{name}.bias", _no_bias(head, name)))
            for name in ("projection", "match", "dense", "out")
        }
    except KeyError as error:
        raise ModelError(
            f"{directory}: tensor {error} is missing. Train the model again."
        ) from error
    shortened = replace(encoder, positions=encoder.positions[:MOST_TOKENS])
    return CrossEncoderWeights(
        encoder=shortened, second_type=types[1] - types[0], separator=separator, **parts
    )


def build_cross_encoder(
    weights: CrossEncoderWeights, arithmetic: onnx_graph.Arithmetic
) -> ModelProto:
    """Build the graph: `input_ids`, `attention_mask`, `token_type_ids` to `logits` (batch,).

    The encoder's projections follow `arithmetic`, the head is computed in float.
    """
    return _CrossEncoderWriter(weights, arithmetic).write()


class _CrossEncoderWriter(onnx_graph.EncoderWriter):
    def __init__(self, weights: CrossEncoderWeights, arithmetic: onnx_graph.Arithmetic) -> None:
        super().__init__(weights.encoder, arithmetic)
        self.whole = weights

    def words(self) -> str:
        added = np.stack([np.zeros_like(self.whole.second_type), self.whole.second_type])
        types = self.graph.node("Gather", [self.graph.constant(added), "token_type_ids"])
        return self.graph.node("Add", [super().words(), types])

    def write(self) -> ModelProto:
        graph, whole = self.graph, self.whole
        hidden, present = self.last_layer(), self.present()
        part = self.part()
        question = self.vector(hidden, present, part, 0)
        target = self.vector(hidden, present, part, 1)
        axis = graph.constant(np.array([1]))
        product = graph.node("Mul", [question, target])
        cosine = graph.node("ReduceSum", [product, axis], attributes={"keepdims": 1})
        rest = graph.node("Tanh", [self.matrix(self.mean(hidden, present), whole.dense)])
        score = graph.node("Add", [self.linear(cosine, whole.match), self.linear(rest, whole.out)])
        graph.name_output(graph.node("Squeeze", [score, axis]), LOGITS)
        return graph.model(
            [onnx_graph.float_output(LOGITS, ["batch"])], inputs=onnx_graph.PAIR_INPUTS
        )

    def matrix(self, tensor: str, layer: Linear) -> str:
        if self.whole.stored == "float32":
            return self.linear(tensor, layer)
        stored = self.graph.constant(layer.weight.astype(np.float16))
        weight = self.graph.node("Cast", [stored], attributes={"to": onnx_graph.FLOAT})
        bias = self.graph.constant(layer.bias)
        return self.graph.node("Gemm", [tensor, weight, bias], attributes={"transB": 1})

    def part(self) -> str:
        """How many [SEP] stand before each token, in float."""
        graph = self.graph
        ends = graph.node("Equal", ["input_ids", graph.constant(np.array(self.whole.separator))])
        counted = graph.node("Cast", [ends], attributes={"to": onnx_graph.FLOAT})
        axis = graph.constant(np.array(1))
        return graph.node("CumSum", [counted, axis], attributes={"exclusive": 1})

    def vector(self, hidden: str, present: str, part: str, number: int) -> str:
        graph = self.graph
        inside = graph.node("Equal", [part, graph.constant(np.array(number, np.float32))])
        inside = graph.node("Cast", [inside], attributes={"to": onnx_graph.FLOAT})
        mean = self.mean(hidden, graph.node("Mul", [inside, present]))
        projected = self.matrix(mean, self.whole.projection)
        return graph.node("LpNormalization", [projected], attributes={"axis": 1, "p": 2})


def _no_bias(head: dict[str, onnx_graph.Array], name: str) -> onnx_graph.Array:
    return np.zeros(len(head[f"{name}.weight"]), np.float32)


# Platt's calibration: from a model's logit to the probability that a passage answers.
#
# Source: Platt, "Probabilistic Outputs for Support Vector Machines", 1999, with his targets, which
# keep a perfect separation finite.


PRECISIONS = (0.5, 0.7, 0.8, 0.9, 0.95)
_NEWTON_STEPS = 100
_TOLERANCE = 1e-10


@dataclass(frozen=True, slots=True)
class PlattFit:
    """A curve and how well it holds.

    Attributes:
        scaling: Fitted on all observations.
        observations: How many.
        expected_calibration_error: Of curves fitted on one half of the questions, on the other;
            ten bins of equal width.
    """

    scaling: PlattScaling
    observations: int
    expected_calibration_error: float


def fit_platt(logits: list[FloatArray], relevant: list[FloatArray]) -> PlattFit:
    """Fit on the candidates of some questions.

    Args:
        logits: For each question its candidates' logits.
        relevant: 1 for what answers, 0 else, parallel.

    Raises:
        InvalidInput: Fewer than four questions.
    """
    if len(logits) < 4:
        raise InvalidInput(
            "calibration", len(logits), "too few questions to fit a curve", "Give four or more."
        )
    halves = [slice(0, None, 2), slice(1, None, 2)]
    said, right = [], []
    for known, other in (halves, halves[::-1]):
        curve = platt_curve(np.concatenate(logits[known]), np.concatenate(relevant[known]))
        said.append(curve.probabilities(np.concatenate(logits[other])))
        right.append(np.concatenate(relevant[other]))
    error = expected_calibration_error(np.concatenate(said), np.concatenate(right))
    joined = np.concatenate(logits)
    return PlattFit(platt_curve(joined, np.concatenate(relevant)), len(joined), error)


def calibration_card(
    fit: PlattFit, said: FloatArray, relevant: FloatArray, *, data: str
) -> model_record.CalibrationCard:
    """Return what a record says of a curve, of what was said by it, and of the data."""
    return model_record.CalibrationCard(
        slope=fit.scaling.slope,
        intercept=fit.scaling.intercept,
        data=f"{fit.observations} candidates of {data}",
        measured={"ece/held back": round(fit.expected_calibration_error, 4)},
        thresholds=precision_thresholds(said, relevant),
    )


def precision_thresholds(probabilities: FloatArray, relevant: FloatArray) -> dict[str, float]:
    """Give, for each precision, the least probability from which on it is reached.

    Args:
        probabilities: What the model said, shape (observations,).
        relevant: 1 for what answers, 0 else, parallel.

    Returns:
        By precision, such as `0.9`; one that is never reached is left out.
    """
    found = (precision_threshold(probabilities, relevant, each, least=1) for each in PRECISIONS)
    return {
        str(each.precision): round(each.threshold, 4)
        for each in found
        if each.threshold is not None
    }


def platt_curve(logits: FloatArray, relevant: FloatArray) -> PlattScaling:
    """Maximum likelihood by Newton's method; shapes (observations,)."""
    answers = relevant.sum()
    others = len(relevant) - answers
    targets = np.where(relevant > 0, (answers + 1) / (answers + 2), 1 / (others + 2))
    design = np.stack([logits, np.ones_like(logits)], axis=1)
    # As if the model said nothing: Newton's method then begins where it converges.
    weights = np.array([0.0, np.log((answers + 1) / (others + 1))])
    for _ in range(_NEWTON_STEPS):
        found = 1 / (1 + np.exp(-np.clip(design @ weights, -700, 700)))
        curvature = np.maximum(found * (1 - found), 1e-12)
        gradient = design.T @ (targets - found)
        step = np.linalg.solve(design.T @ (design * curvature[:, None]), gradient)
        weights += step
        if float(np.abs(step).max()) < _TOLERANCE:
            break
    return PlattScaling(float(weights[0]), float(weights[1]))


# Exports a trained cross-encoder as an ONNX reranker that needs no torch.

_PAIRS_PER_RUN = 16
_MOST_RANGE_QUESTIONS = 120


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
    source: Path, target: Path, *, description: ModelDescription, calibration: CalibrationExamples
) -> model_record.RerankerRecord:
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
    separator = tokenizer.token_to_id("[SEP]") or 0
    weights = load_cross_encoder_weights(source, separator=separator)
    layout = CrossEncoderLayout(tokenizer, name=read_layout_name(source))
    ranged = calibration.examples[::2][:_MOST_RANGE_QUESTIONS]
    model = _quantised(weights, [pair for each in ranged for pair in _pairs(layout, each)])
    target.mkdir(parents=True, exist_ok=True)
    (target / model_record.MODEL_FILE).write_bytes(model)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    tokenizer.save(str(target / model_record.TOKENIZER_FILE), pretty=False)
    record = model_record.RerankerRecord(
        name=description.name,
        layout=layout.name,
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
    return model_record.seal_reranker(record, target)


def pair_inputs(pairs: Sequence[PairTokens]) -> static_int8.ModelInputs:
    """Return the graph's inputs, padded to the longest pair."""
    return pad_batch([pair.ids for pair in pairs], [pair.type_ids for pair in pairs])


def _quantised(weights: CrossEncoderWeights, pairs: Sequence[PairTokens]) -> bytes:
    def build(encoder: onnx_graph.EncoderWeights, arithmetic: onnx_graph.Arithmetic) -> ModelProto:
        return build_cross_encoder(replace(weights, encoder=encoder, stored="float16"), arithmetic)

    model = static_int8.quantised(build, weights.encoder, _batches(pairs))
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def _fitted(
    model: bytes, layout: CrossEncoderLayout, examples: Sequence[RerankExample]
) -> model_record.CalibrationCard:
    session = OnnxSession(model, name="the exported model")
    logits = [_logits(session, _pairs(layout, example)) for example in examples]
    relevant = [
        np.array([candidate.relevant for candidate in example.candidates], np.float64)
        for example in examples
    ]
    fit = fit_platt(logits, relevant)
    said = fit.scaling.probabilities(np.concatenate(logits).astype(np.float32))
    return calibration_card(
        fit,
        said.astype(np.float64),
        np.concatenate(relevant),
        data=f"{len(examples)} held-back training questions",
    )


def _logits(session: OnnxSession, pairs: Sequence[PairTokens]) -> FloatArray:
    ids, type_ids = [pair.ids for pair in pairs], [pair.type_ids for pair in pairs]
    (found,) = session.run([LOGITS], ids, type_ids=type_ids)
    return np.asarray(found, np.float64)


def _pairs(layout: CrossEncoderLayout, example: RerankExample) -> list[PairTokens]:
    return layout.pairs(example.query, [candidate.passage for candidate in example.candidates])


def _batches(pairs: Sequence[PairTokens]) -> Iterator[static_int8.ModelInputs]:
    ordered = sorted(pairs, key=lambda pair: len(pair.ids))
    for start in range(0, len(ordered), _PAIRS_PER_RUN):
        yield pair_inputs(ordered[start : start + _PAIRS_PER_RUN])


def _tokenizer(directory: Path) -> Tokenizer:
    path = directory / model_record.TOKENIZER_FILE
    if not path.is_file():
        raise ModelError(f"{path}: no such file. Give the folder `model` of a reranker's run.")
    return Tokenizer.from_file(str(path))


# Turns an exported 8-bit reranker back into weights that training can go on from.


def unpack_reranker(source: Path, target: Path) -> None:
    """Write an exported reranker as what a run's folder `model` holds: encoder, tokenizer, head.

    Args:
        source: Directory that `ekphory train export-reranker` wrote.
        target: Made if needed.

    Raises:
        MissingExtra: onnx or safetensors is not installed.
        ModelError: The source is not an exported reranker.
    """
    try:
        from safetensors.numpy import save_file
    except ImportError as error:
        raise MissingExtra("export", "Unpacking a reranker") from error
    record = model_record.read_reranker_record(source)
    if record.made_by.get("quantisation") != "int8":
        raise ModelError(
            f"{source}: {record.name} is not a reranker of 8-bit integers. "
            "Give one that `ekphory train export-reranker` wrote."
        )
    graph = GraphReader(
        model_record.read_checked(
            source / model_record.MODEL_FILE, record.files[model_record.MODEL_FILE]
        )
    )
    encoder, head = graph.encoder(), _head(graph.dense_layers())
    target.mkdir(parents=True, exist_ok=True)
    write_encoder(encoder, target)
    save_file(head, target / HEAD_FILE, metadata={LAYOUT_KEY: record.layout})
    (target / model_record.TOKENIZER_FILE).write_bytes(
        (source / model_record.TOKENIZER_FILE).read_bytes()
    )


def _head(layers: list[Linear]) -> dict[str, onnx_graph.Array]:
    # The projection is written twice, for the question and for the target.
    projection, _, dense, match, out = layers
    named = {"projection": projection, "dense": dense, "match": match}
    weights = {f"{name}.weight": layer.weight for name, layer in named.items()}
    shifts = {f"{name}.bias": layer.bias for name, layer in named.items()}
    whole = {**weights, **shifts, "out.weight": out.weight}
    return {name: np.ascontiguousarray(value, np.float32) for name, value in whole.items()}
