import json

import numpy as np
import pytest
from tests.training.tiny_encoder import TEXTS, pooled_reference, tiny_tokenizer, write_tiny_encoder

from ekphory.errors import InvalidInput, ModelError
from ekphory.models.onnx_embedder import OnnxEmbedder
from ekphory.models.onnx_export import ModelDescription, export_embedder
from ekphory_lab.training.static_int8 import CalibrationSource, export_int8_embedder

CALIBRATION = CalibrationSource(tuple(TEXTS), {"texts.jsonl": "0" * 64})
DESCRIPTION = ModelDescription(name="tiny", licence="MIT", source="made here")


@pytest.fixture
def source(tmp_path):
    directory = tmp_path / "source"
    directory.mkdir()
    return directory


@pytest.fixture
def weights(source):
    return write_tiny_encoder(source)


@pytest.fixture
def target(tmp_path):
    return tmp_path / "target"


def reference(weights):
    rows = [pooled_reference(weights, tiny_tokenizer().encode(text).ids) for text in TEXTS]
    vectors = np.array(rows)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_the_float_export_computes_what_the_formulas_say(source, weights, target):
    export_embedder(source, target, description=DESCRIPTION)

    vectors = OnnxEmbedder(target).encode(TEXTS)

    assert np.abs(vectors - reference(weights)).max() <= 1e-5


def test_the_int8_export_stays_close_to_the_formulas(source, weights, target):
    export_int8_embedder(source, target, description=DESCRIPTION, calibration=CALIBRATION)

    cosines = (OnnxEmbedder(target).encode(TEXTS) * reference(weights)).sum(axis=1)

    assert cosines.min() >= 0.995


def test_the_same_input_gives_the_same_bytes(source, weights, target, tmp_path):
    first = export_int8_embedder(source, target, description=DESCRIPTION, calibration=CALIBRATION)
    second = export_int8_embedder(
        source, tmp_path / "again", description=DESCRIPTION, calibration=CALIBRATION
    )

    assert first == second


def test_the_record_says_what_was_made_from_what(source, weights, target):
    export_int8_embedder(source, target, description=DESCRIPTION, calibration=CALIBRATION)

    record = OnnxEmbedder(target).record

    assert (record.name, record.dimension, record.max_tokens) == ("tiny", 32, 24)
    assert (record.licence, record.source) == ("MIT", "made here")
    assert record.made_by["quantisation"] == "int8"
    assert record.made_by["calibration_files"] == {"texts.jsonl": "0" * 64}


def test_the_window_of_the_source_is_kept(source, weights, target):
    (source / "sentence_bert_config.json").write_text('{"max_seq_length": 6}')
    export_embedder(source, target, description=DESCRIPTION)

    embedder = OnnxEmbedder(target)

    assert embedder.record.max_tokens == 6
    assert embedder.windows("the cat sat on a mat") == ["the cat sat on ", "a mat"]
    whole, beginning = embedder.encode(["the cat sat on a mat", "the cat sat on"])
    assert np.array_equal(whole, beginning)


def test_int8_without_calibration_texts_is_refused(source, weights, target):
    nothing = CalibrationSource((), {})
    with pytest.raises(InvalidInput, match="calibration"):
        export_int8_embedder(source, target, description=DESCRIPTION, calibration=nothing)


def test_another_architecture_is_refused(source, weights, target):
    config = json.loads((source / "config.json").read_text())
    (source / "config.json").write_text(json.dumps(config | {"model_type": "t5"}))

    with pytest.raises(ModelError, match="model_type='t5'"):
        export_embedder(source, target, description=DESCRIPTION)


def test_another_pooling_is_refused(source, weights, target):
    (source / "1_Pooling").mkdir()
    (source / "1_Pooling/config.json").write_text('{"pooling_mode_cls_token": true}')

    with pytest.raises(ModelError, match="mean pooling"):
        export_embedder(source, target, description=DESCRIPTION)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
def test_a_missing_file_of_the_source_is_named(source, weights, target, name):
    (source / name).unlink()

    with pytest.raises(ModelError, match=name):
        export_embedder(source, target, description=DESCRIPTION)
