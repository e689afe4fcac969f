"""An exported 8-bit reranker becomes weights again."""

import json

import numpy as np
import onnxruntime
import pytest
from tests.training.reranker.tiny_cross_encoder import write_tiny_cross_encoder
from tests.training.reranker.tiny_reranker import word_examples
from tokenizers import Tokenizer

from ekphory.errors import ModelError
from ekphory.models.model_record import MODEL_FILE, RECORD_FILE
from ekphory.models.onnx_graph import FloatArithmetic
from ekphory.models.onnx_reranker import CrossEncoderLayout
from ekphory.models.reranker import RerankPassage, RerankQuery, bundled_directory
from ekphory_lab.training.reranker.export import (
    CalibrationExamples,
    RerankerDescription,
    export_reranker,
    pair_inputs,
    unpack_reranker,
)
from ekphory_lab.training.reranker.graph import build_cross_encoder, load_cross_encoder_weights

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


def logits(model, pairs):
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(["logits"], dict(pair_inputs(pairs)))[0]


@pytest.fixture
def source(tmp_path):
    return write_tiny_cross_encoder(tmp_path / "source")


@pytest.fixture
def exported(source, tmp_path):
    export_reranker(
        source,
        tmp_path / "exported",
        description=RerankerDescription(name="tiny"),
        calibration=CalibrationExamples(tuple(word_examples(40, 1)), {"held.gz": "0" * 64}),
    )
    return tmp_path / "exported"


def test_the_weights_say_nearly_what_they_said_before_they_were_exported(
    source, exported, tmp_path
):
    unpack_reranker(exported, tmp_path / "unpacked")

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
def test_training_loads_what_is_unpacked(exported, tmp_path):
    from ekphory_lab.training.reranker.models import load_cross_encoder
    from ekphory_lab.training.reranker.run import pair_batches, score_batches

    unpack_reranker(exported, tmp_path / "unpacked")
    model = load_cross_encoder(tmp_path / "unpacked")
    (example,) = word_examples(1, 9)

    found = score_batches(model, pair_batches(model, [example], chunk_pairs=8))
    passages = [each.passage for each in example.candidates]
    wanted = exact_logits(tmp_path / "unpacked", example.query, passages)
    assert np.asarray(found[0]) == pytest.approx(wanted, abs=0.03)  # training reads in bfloat16


def test_a_reranker_of_another_arithmetic_is_refused(exported, tmp_path):
    record = json.loads((exported / RECORD_FILE).read_text())
    record["made_by"]["quantisation"] = "float32"
    (exported / RECORD_FILE).write_text(json.dumps(record))

    with pytest.raises(ModelError, match="not a reranker of 8-bit integers"):
        unpack_reranker(exported, tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_a_directory_without_a_record_is_refused(tmp_path):
    with pytest.raises(ModelError, match="not the record of a reranker"):
        unpack_reranker(tmp_path, tmp_path / "target")
