"""Exporting a model that knows age, type and importance."""

import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tests.models.tiny_components import (
    DESCRIPTION,
    content_reference,
    pooled,
    tiny_components,
    write_tiny_embedder,
    write_tiny_onnx_embedder,
)
from tests.training.tiny_encoder import TEXTS

from ekphory.errors import ModelError
from ekphory.models.late_bound import normalised
from ekphory.models.onnx_embedder import OnnxEmbedder
from ekphory.models.onnx_export import export_embedder
from ekphory_lab.training.static_int8 import CalibrationSource, export_int8_embedder

CALIBRATION = CalibrationSource(tuple(TEXTS), {"texts.jsonl": "0" * 64})


@pytest.fixture
def source(tmp_path):
    return write_tiny_embedder(tmp_path / "source")


@pytest.fixture(scope="module")
def whole_directory(tmp_path_factory):
    return write_tiny_onnx_embedder(tmp_path_factory.mktemp("whole")) / "onnx"


@pytest.fixture(scope="module")
def whole(whole_directory):
    """The model in 32-bit float."""
    return OnnxEmbedder(whole_directory)


@pytest.fixture(scope="module")
def rounded(tmp_path_factory):
    """The model in 8-bit integers."""
    source = write_tiny_embedder(tmp_path_factory.mktemp("rounded"))
    export_int8_embedder(source, source / "onnx", description=DESCRIPTION, calibration=CALIBRATION)
    return OnnxEmbedder(source / "onnx")


def test_the_content_is_the_projection_of_the_pooled_output_unnormalised(whole):
    content = whole.read(TEXTS).content

    assert np.abs(content - content_reference(TEXTS)).max() <= 1e-4
    assert np.linalg.norm(content, axis=1).std() > 0.1


def test_the_heads_read_the_pooled_output(whole):
    reading = whole.read(TEXTS)

    vectors = pooled(TEXTS)
    assert np.abs(reading.importance - tiny_components().importance_of(vectors)).max() <= 1e-5
    assert np.abs(reading.type_logits - tiny_components().type_logits_of(vectors)).max() <= 1e-4


def test_the_vectors_of_age_and_type_are_exported_projected(whole):
    expected = tiny_components().late_bound()

    assert np.array_equal(whole.late_bound.age, expected.age)
    assert np.array_equal(whole.late_bound.type, expected.type)


def test_the_int8_export_stays_close_to_the_formulas(rounded):
    expected = content_reference(TEXTS)

    content = rounded.read(TEXTS).content

    assert (normalised(content) * normalised(expected)).sum(axis=1).min() >= 0.99


def test_nothing_that_the_int8_export_gives_depends_on_the_batch(rounded):
    together = rounded.read(TEXTS)
    alone = [rounded.read([text]) for text in TEXTS]

    for name in ("content", "importance", "type_logits"):
        parts = np.concatenate([getattr(reading, name) for reading in alone])
        assert np.abs(getattr(together, name) - parts).max() <= 1e-5


def test_no_texts_give_empty_readings(whole):
    reading = whole.read([])

    assert (reading.content.shape, reading.importance.shape) == ((0, 32), (0,))
    assert reading.type_logits.shape == (0, 4)


def test_the_record_names_the_parts_and_the_prompts_of_the_source(rounded):
    assert rounded.record.parts == ("late_bound", "importance", "memory_type")
    assert rounded.record.query_prompt == "the "
    assert sorted(rounded.record.files) == ["late_bound.npz", "model.onnx", "tokenizer.json"]


def test_other_vectors_of_age_are_another_revision(source, whole, tmp_path):
    tensors = source / "ekphory_components.safetensors"
    save_file(load_file(tensors) | {"age.weight": np.ones((10, 32), np.float32)}, tensors)

    other = export_embedder(source, tmp_path / "other", description=DESCRIPTION)

    assert other.revision != whole.identity.revision


def test_changed_vectors_of_age_and_type_are_refused(whole_directory, tmp_path):
    shutil.copytree(whole_directory, tmp_path / "whole")
    path = tmp_path / "whole" / "late_bound.npz"
    path.write_bytes(path.read_bytes()[:-1])

    with pytest.raises(ModelError, match=r"late_bound\.npz"):
        OnnxEmbedder(tmp_path / "whole")


def test_a_dense_module_that_differs_from_the_components_is_refused(source, tmp_path):
    save_file(
        {"linear.weight": np.eye(32, dtype=np.float32), "linear.bias": np.zeros(32, np.float32)},
        source / "2_Dense" / "model.safetensors",
    )

    with pytest.raises(ModelError, match="not the projection of the components"):
        export_embedder(source, tmp_path / "out", description=DESCRIPTION)


def test_a_dense_module_without_components_is_refused(source, tmp_path):
    (source / "ekphory_components.safetensors").unlink()

    with pytest.raises(ModelError, match="Dense module without components"):
        export_embedder(source, tmp_path / "out", description=DESCRIPTION)


def test_agentranks_layout_is_refused_with_the_remedy(source, tmp_path):
    (source / "agentrank_components.pt").write_bytes(b"")

    with pytest.raises(ModelError, match="save_pretrained"):
        export_embedder(source, tmp_path / "out", description=DESCRIPTION)
