"""An exported 8-bit embedder becomes weights again."""

import numpy as np
import pytest
from tests.models.tiny_components import DESCRIPTION, write_tiny_embedder
from tests.training.tiny_encoder import TEXTS

from ekphory.errors import ModelError
from ekphory.models.late_bound import read_components
from ekphory.models.onnx_embedder import OnnxEmbedder
from ekphory.models.onnx_export import export_embedder, unpack_embedder
from ekphory_lab.training.static_int8 import CalibrationSource, export_int8_embedder

CALIBRATION = CalibrationSource(tuple(TEXTS), {"texts.jsonl": "0" * 64})


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_tiny_embedder(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def exported(source):
    export_int8_embedder(source, source / "onnx", description=DESCRIPTION, calibration=CALIBRATION)
    return source / "onnx"


@pytest.fixture(scope="module")
def unpacked(exported, tmp_path_factory):
    target = tmp_path_factory.mktemp("unpacked")
    unpack_embedder(exported, target)
    return target


def test_what_is_exported_again_gives_nearly_the_same_vectors(exported, unpacked, tmp_path):
    export_embedder(unpacked, tmp_path / "again", description=DESCRIPTION)
    first, again = (
        OnnxEmbedder(exported).encode(TEXTS),
        OnnxEmbedder(tmp_path / "again").encode(TEXTS),
    )
    assert (first * again).sum(axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=0.01)


def test_age_type_projection_and_heads_come_back_exactly(source, unpacked):
    before, after = read_components(source), read_components(unpacked)
    assert np.abs(before.age - after.age).max() < 1e-5
    assert np.abs(before.type - after.type).max() < 1e-5
    assert np.array_equal(before.projection.weight, after.projection.weight)
    assert np.array_equal(before.importance[0].weight, after.importance[0].weight)
    assert np.array_equal(before.memory_type.weight, after.memory_type.weight)


@pytest.mark.torch
def test_plain_sentence_transformers_gives_nearly_the_same_vectors(exported, unpacked):
    from sentence_transformers import SentenceTransformer

    plain = SentenceTransformer(str(unpacked), device="cpu").encode(TEXTS)

    cosines = (OnnxEmbedder(exported).encode(TEXTS) * plain).sum(axis=1)
    assert cosines == pytest.approx(np.ones(len(TEXTS)), abs=0.01)


def test_a_model_in_float_is_refused(source, tmp_path):
    export_embedder(source, tmp_path / "float", description=DESCRIPTION)
    with pytest.raises(ModelError, match="not an 8-bit embedder with age"):
        unpack_embedder(tmp_path / "float", tmp_path / "target")
    assert not (tmp_path / "target").exists()
