"""A tiny cross-encoder of random weights, exported and run with ONNX Runtime."""

import json

import numpy as np
import onnxruntime
import pytest
from tests.training.reranker.tiny_cross_encoder import write_tiny_cross_encoder
from tests.training.reranker.tiny_reranker import word_examples

from ekphory.errors import InvalidInput, ModelError
from ekphory.models.onnx_graph import FloatArithmetic
from ekphory.models.onnx_reranker import CrossEncoderLayout
from ekphory.models.onnx_session import OnnxSession
from ekphory_lab.training.reranker.export import (
    CalibrationExamples,
    RerankerDescription,
    export_reranker,
    pair_inputs,
)
from ekphory_lab.training.reranker.graph import (
    HEAD_FILE,
    build_cross_encoder,
    load_cross_encoder_weights,
)

SEPARATOR = 3


@pytest.fixture
def source(tmp_path):
    return write_tiny_cross_encoder(tmp_path / "model")


def exported(source, target, count=40):
    return export_reranker(
        source,
        target,
        description=RerankerDescription(name="tiny", licence="Apache-2.0"),
        calibration=CalibrationExamples(tuple(word_examples(count, 1)), {"held.gz": "0" * 64}),
    )


def some_pairs(source):
    from tokenizers import Tokenizer

    layout = CrossEncoderLayout(Tokenizer.from_file(str(source / "tokenizer.json")))
    return [
        pair
        for example in word_examples(12, 9)
        for pair in layout.pairs(example.query, [each.passage for each in example.candidates])
    ]


def logits(model, pairs):
    inputs = dict(pair_inputs(pairs))
    return OnnxSession(model, "tiny").run(
        ["logits"],
        input_ids=inputs["input_ids"],
        mask=inputs["attention_mask"],
        type_ids=inputs["token_type_ids"],
    )[0]


def test_eight_bits_say_nearly_what_floats_say(source, tmp_path):
    exported(source, tmp_path / "out")
    weights = load_cross_encoder_weights(source, separator=SEPARATOR)
    pairs = some_pairs(source)

    exact = logits(build_cross_encoder(weights, FloatArithmetic()).SerializeToString(), pairs)
    rounded = logits((tmp_path / "out" / "model.onnx").read_bytes(), pairs)

    assert exact.shape == (36,)
    assert np.corrcoef(exact, rounded)[0, 1] > 0.98


@pytest.mark.slow
def test_a_score_does_not_depend_on_its_batch(source, tmp_path):
    exported(source, tmp_path / "out")
    model = (tmp_path / "out" / "model.onnx").read_bytes()
    pairs = some_pairs(source)

    together = logits(model, pairs)
    alone = np.concatenate([logits(model, [pair]) for pair in pairs])

    assert np.abs(together - alone).max() <= 1e-4


def test_the_second_token_type_counts(source):
    weights = load_cross_encoder_weights(source, separator=SEPARATOR)
    model = build_cross_encoder(weights, FloatArithmetic()).SerializeToString()
    inputs = dict(pair_inputs(some_pairs(source)))
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])

    with_types = session.run(["logits"], inputs)[0]
    without = session.run(
        ["logits"], inputs | {"token_type_ids": np.zeros_like(inputs["input_ids"])}
    )[0]

    assert np.abs(with_types - without).max() > 1e-3


def test_the_record_says_calibration_licence_and_where_it_was_fitted(source, tmp_path):
    record = exported(source, tmp_path / "out")

    content = json.loads((tmp_path / "out" / "model.json").read_text())
    assert content["kind"] == "reranker"
    assert content["licence"] == "Apache-2.0"
    assert content["calibration"]["slope"] == record.calibration.slope
    assert content["calibration"]["data"] == "60 candidates of 20 held-back training questions"
    assert content["made_by"]["calibration_files"] == {"held.gz": "0" * 64}


def test_the_same_input_gives_the_same_bytes(source, tmp_path):
    first, second = (exported(source, tmp_path / name) for name in ("a", "b"))

    assert first.files == second.files


def test_too_few_examples_are_refused(source, tmp_path):
    with pytest.raises(InvalidInput, match="too few questions"):
        exported(source, tmp_path / "out", count=6)


def test_a_directory_without_a_head_is_refused(source):
    (source / HEAD_FILE).unlink()

    with pytest.raises(ModelError, match="no such file"):
        load_cross_encoder_weights(source, separator=SEPARATOR)


@pytest.mark.torch
def test_the_graph_says_what_torch_says(source):
    torch = pytest.importorskip("torch")
    from ekphory_lab.training.reranker.models import load_cross_encoder

    model = load_cross_encoder(source)
    pairs = some_pairs(source)
    with torch.no_grad():
        expected = model.logits(model.batch(pairs)).numpy()
    weights = load_cross_encoder_weights(source, separator=SEPARATOR)
    found = logits(build_cross_encoder(weights, FloatArithmetic()).SerializeToString(), pairs)

    assert np.abs(found - expected).max() <= 1e-4
