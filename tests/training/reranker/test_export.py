"""Rerankers exported, and unpacked again."""

import json
import math
import shutil

import numpy as np
import onnxruntime
import pytest
from safetensors.numpy import save_file
from tests.training.reranker.tiny_reranker import word_examples
from tests.training.tiny_encoder import HIDDEN, write_tiny_encoder
from tokenizers import Tokenizer

from ekphory.errors import InvalidInput, ModelError
from ekphory.models.model_record import MODEL_FILE, RECORD_FILE
from ekphory.models.onnx_graph import FloatArithmetic
from ekphory.models.onnx_models import CrossEncoderLayout, OnnxSession
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
    # A perfect separation stays finite.
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
    # A handful of questions is too few.
    with pytest.raises(InvalidInput, match="too few questions"):
        fit_platt([numbers(1, 2)] * 3, [numbers(0, 1)] * 3)


def write_tiny_cross_encoder(directory):
    """Write it and give its directory."""
    directory.mkdir()
    write_tiny_encoder(directory)
    random = np.random.default_rng(5)

    def matrix(*shape):
        return random.normal(0, 0.3, shape).astype(np.float32)

    head = {
        "projection.weight": matrix(HIDDEN, HIDDEN),
        "projection.bias": matrix(HIDDEN),
        "match.weight": np.full((1, 1), 10, np.float32),
        "match.bias": np.full(1, -5, np.float32),
        "dense.weight": matrix(HIDDEN, HIDDEN),
        "dense.bias": matrix(HIDDEN),
        "out.weight": matrix(1, HIDDEN),
    }
    save_file(head, directory / HEAD_FILE)
    return directory


def export(source, target):
    return export_reranker(
        source,
        target,
        description=ModelDescription(name="tiny", licence="Apache-2.0"),
        calibration=CalibrationExamples(tuple(word_examples(40, 1)), {"held.gz": "0" * 64}),
    )


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_tiny_cross_encoder(tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture(scope="module")
def exported(source):
    """The folder of the model in 8-bit integers."""
    export(source, source.parent / "exported")
    return source.parent / "exported"


@pytest.fixture(scope="module")
def unpacked(exported):
    """The folder of the weights that the export has."""
    unpack_reranker(exported, exported.parent / "unpacked")
    return exported.parent / "unpacked"


def pairs_of(directory, query, passages):
    layout = CrossEncoderLayout(Tokenizer.from_file(str(directory / "tokenizer.json")))
    return layout.pairs(query, passages)


@pytest.fixture(scope="module")
def some_pairs(source):
    return [
        pair
        for example in word_examples(12, 9)
        for pair in pairs_of(source, example.query, passages_of(example))
    ]


def passages_of(example):
    return [each.passage for each in example.candidates]


def exact_model(directory):
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    weights = load_cross_encoder_weights(directory, separator=tokenizer.token_to_id("[SEP]"))
    return build_cross_encoder(weights, FloatArithmetic()).SerializeToString()


def logits(model, pairs):
    ids, type_ids = [pair.ids for pair in pairs], [pair.type_ids for pair in pairs]
    return OnnxSession(model, "tiny").run(["logits"], ids, type_ids=type_ids)[0]


def exact_logits(directory, query, passages):
    return logits(exact_model(directory), pairs_of(directory, query, passages))


def test_eight_bits_say_nearly_what_floats_say(source, exported, some_pairs):
    exact = logits(exact_model(source), some_pairs)
    rounded = logits((exported / MODEL_FILE).read_bytes(), some_pairs)

    assert exact.shape == (36,)
    assert np.corrcoef(exact, rounded)[0, 1] > 0.98


@pytest.mark.slow
def test_a_score_does_not_depend_on_its_batch(exported, some_pairs):
    model = (exported / MODEL_FILE).read_bytes()

    together = logits(model, some_pairs)
    alone = np.concatenate([logits(model, [pair]) for pair in some_pairs])

    assert np.abs(together - alone).max() <= 1e-4


def test_the_second_token_type_counts(source, some_pairs):
    session = onnxruntime.InferenceSession(exact_model(source), providers=["CPUExecutionProvider"])
    inputs = dict(pair_inputs(some_pairs))
    untyped = inputs | {"token_type_ids": np.zeros_like(inputs["input_ids"])}

    with_types, without = (session.run(["logits"], each)[0] for each in (inputs, untyped))

    assert np.abs(with_types - without).max() > 1e-3


def test_the_record_says_calibration_licence_and_where_it_was_fitted(source, exported, tmp_path):
    again = export(source, tmp_path / "again")

    content = json.loads((exported / RECORD_FILE).read_text())
    assert content["kind"] == "reranker"
    assert content["licence"] == "Apache-2.0"
    assert content["calibration"]["slope"] == again.calibration.slope
    assert content["calibration"]["data"] == "60 candidates of 20 held-back training questions"
    assert content["made_by"]["calibration_files"] == {"held.gz": "0" * 64}
    # The same input gives the same bytes.
    assert content["files"] == again.files


@pytest.mark.torch
def test_the_graph_says_what_torch_says(source, some_pairs):
    torch = pytest.importorskip("torch")
    from ekphory_lab.training.reranker.models import load_cross_encoder

    model = load_cross_encoder(source)
    with torch.no_grad():
        expected = model.logits(model.batch(some_pairs)).numpy()

    assert np.abs(logits(exact_model(source), some_pairs) - expected).max() <= 1e-4


QUERY = RerankQuery("How does Mara get to work?")


PASSAGES = [
    RerankPassage("Mara: For the commute I bought a blue bicycle.", before="Tom: And the car?"),
    RerankPassage("Tom: I sold the old car."),
    RerankPassage("Mara: The soup was cold again."),
]


def test_the_weights_say_nearly_what_they_said_before_they_were_exported(source, unpacked):
    for example in word_examples(8, 9):
        before, after = (
            exact_logits(directory, example.query, passages_of(example))
            for directory in (source, unpacked)
        )
        assert after == pytest.approx(before, abs=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ekphory-rerank-small", "ekphory-rerank-tiny"])
def test_a_bundled_reranker_unpacks_to_weights_that_say_the_same(name, tmp_path):
    unpack_reranker(bundled_directory(name), tmp_path)

    pairs = pairs_of(tmp_path, QUERY, PASSAGES)
    bundled = logits((bundled_directory(name) / MODEL_FILE).read_bytes(), pairs)
    assert exact_logits(tmp_path, QUERY, PASSAGES) == pytest.approx(bundled, abs=0.5)


@pytest.mark.torch
def test_training_loads_what_is_unpacked(unpacked):
    from ekphory_lab.training.reranker.models import load_cross_encoder
    from ekphory_lab.training.reranker.run import pair_batches, score_batches

    model = load_cross_encoder(unpacked)
    (example,) = word_examples(1, 9)

    found = score_batches(model, pair_batches(model, [example], chunk_pairs=8))
    wanted = exact_logits(unpacked, example.query, passages_of(example))
    assert np.asarray(found[0]) == pytest.approx(wanted, abs=0.03)  # training reads in bfloat16


def test_what_is_no_reranker_of_8_bit_integers_is_refused(exported, tmp_path):
    headless = write_tiny_cross_encoder(tmp_path / "headless")
    (headless / HEAD_FILE).unlink()
    with pytest.raises(ModelError, match="no such file"):
        load_cross_encoder_weights(headless, separator=3)
    # A directory without a record is not unpacked.
    with pytest.raises(ModelError, match="not the record of a reranker"):
        unpack_reranker(headless, tmp_path / "target")
    # Nor is a reranker of another arithmetic.
    other = shutil.copytree(exported, tmp_path / "other")
    record = json.loads((other / RECORD_FILE).read_text())
    record["made_by"]["quantisation"] = "float32"
    (other / RECORD_FILE).write_text(json.dumps(record))
    with pytest.raises(ModelError, match="not a reranker of 8-bit integers"):
        unpack_reranker(other, tmp_path / "target")
    assert not (tmp_path / "target").exists()
