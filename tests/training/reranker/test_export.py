"""Rerankers exported, and unpacked again."""

import json
import math

import numpy as np
import onnxruntime
import pytest
from tests.training.reranker.tiny_cross_encoder import write_tiny_cross_encoder
from tests.training.reranker.tiny_reranker import word_examples
from tokenizers import Tokenizer

from ekphory.errors import InvalidInput, ModelError
from ekphory.models.model_record import MODEL_FILE, RECORD_FILE
from ekphory.models.onnx_graph import FloatArithmetic
from ekphory.models.onnx_reranker import CrossEncoderLayout
from ekphory.models.onnx_session import OnnxSession
from ekphory.models.reranker import RerankPassage, RerankQuery, bundled_directory
from ekphory_lab.training.reranker.export import (
    HEAD_FILE,
    CalibrationExamples,
    ModelDescription,
    build_cross_encoder,
    export_reranker,
    fit_platt,
    load_cross_encoder_weights,
    pair_inputs,
    platt_curve,
    unpack_reranker,
)


def numbers(*values):
    return np.array(values, np.float64)


def test_the_curve_gives_each_logit_its_share_of_answers():
    # Platt's targets are .8 and .2, so that 1 has (.8 + .8 + .2) / 3 = .6 and -1 has .4.
    curve = platt_curve(numbers(-1, -1, -1, 1, 1, 1), numbers(0, 0, 1, 0, 1, 1))

    assert curve.slope == pytest.approx(math.log(1.5))
    assert curve.intercept == pytest.approx(0, abs=1e-9)


def test_a_perfect_separation_stays_finite():
    curve = platt_curve(numbers(-2, -1, 1, 2), numbers(0, 0, 1, 1))

    assert math.isfinite(curve.slope)
    assert curve.slope > 0


def test_a_curve_fitted_on_honest_probabilities_is_the_identity():
    random = np.random.default_rng(3)
    logits = [random.normal(-2, 2, 20) for _ in range(2000)]
    relevant = [(random.random(20) < 1 / (1 + np.exp(-each))).astype(np.float64) for each in logits]

    fit = fit_platt(logits, relevant)

    assert fit.scaling.slope == pytest.approx(1, abs=0.03)
    assert fit.scaling.intercept == pytest.approx(0, abs=0.05)
    assert fit.expected_calibration_error < 0.01
    assert fit.observations == 40_000


def test_a_handful_of_questions_is_too_few():
    with pytest.raises(InvalidInput, match="too few questions"):
        fit_platt([numbers(1, 2)] * 3, [numbers(0, 1)] * 3)


SEPARATOR = 3


@pytest.fixture
def source(tmp_path):
    return write_tiny_cross_encoder(tmp_path / "model")


def exported(source, target, count=40):
    return export_reranker(
        source,
        target,
        description=ModelDescription(name="tiny", licence="Apache-2.0"),
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
    ids, type_ids = [pair.ids for pair in pairs], [pair.type_ids for pair in pairs]
    return OnnxSession(model, "tiny").run(["logits"], ids, type_ids=type_ids)[0]


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


QUERY = RerankQuery("How does Mara get to work?")


PASSAGES = [
    RerankPassage("Mara: For the commute I bought a blue bicycle.", before="Tom: And the car?"),
    RerankPassage("Tom: I sold the old car."),
    RerankPassage("Mara: The soup was cold again."),
]


def exact_logits(directory, query, passages):
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    weights = load_cross_encoder_weights(directory, separator=tokenizer.token_to_id("[SEP]"))
    model = build_cross_encoder(weights, FloatArithmetic()).SerializeToString()
    return logits(model, CrossEncoderLayout(tokenizer).pairs(query, passages))


@pytest.fixture
def exported_folder(source, tmp_path):
    exported(source, tmp_path / "exported")
    return tmp_path / "exported"


def test_the_weights_say_nearly_what_they_said_before_they_were_exported(
    source, exported_folder, tmp_path
):
    unpack_reranker(exported_folder, tmp_path / "unpacked")

    for example in word_examples(8, 9):
        passages = [each.passage for each in example.candidates]
        before, after = (
            exact_logits(directory, example.query, passages)
            for directory in (source, tmp_path / "unpacked")
        )
        assert after == pytest.approx(before, abs=0.2)


@pytest.mark.parametrize("name", ["ekphory-rerank-small", "ekphory-rerank-tiny"])
def test_a_bundled_reranker_unpacks_to_weights_that_say_the_same(name, tmp_path):
    unpack_reranker(bundled_directory(name), tmp_path)

    tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    pairs = CrossEncoderLayout(tokenizer).pairs(QUERY, PASSAGES)
    bundled = logits((bundled_directory(name) / MODEL_FILE).read_bytes(), pairs)
    assert exact_logits(tmp_path, QUERY, PASSAGES) == pytest.approx(bundled, abs=0.5)


@pytest.mark.torch
def test_training_loads_what_is_unpacked(exported_folder, tmp_path):
    from ekphory_lab.training.reranker.models import load_cross_encoder
    from ekphory_lab.training.reranker.run import pair_batches, score_batches

    unpack_reranker(exported_folder, tmp_path / "unpacked")
    model = load_cross_encoder(tmp_path / "unpacked")
    (example,) = word_examples(1, 9)

    found = score_batches(model, pair_batches(model, [example], chunk_pairs=8))
    passages = [each.passage for each in example.candidates]
    wanted = exact_logits(tmp_path / "unpacked", example.query, passages)
    assert np.asarray(found[0]) == pytest.approx(wanted, abs=0.03)  # training reads in bfloat16


def test_a_reranker_of_another_arithmetic_is_refused(exported_folder, tmp_path):
    record = json.loads((exported_folder / RECORD_FILE).read_text())
    record["made_by"]["quantisation"] = "float32"
    (exported_folder / RECORD_FILE).write_text(json.dumps(record))

    with pytest.raises(ModelError, match="not a reranker of 8-bit integers"):
        unpack_reranker(exported_folder, tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_a_directory_without_a_record_is_refused(tmp_path):
    with pytest.raises(ModelError, match="not the record of a reranker"):
        unpack_reranker(tmp_path, tmp_path / "target")
