"""Embedders exported in float and in 8-bit integers, and unpacked again."""

import numpy as np
import pytest
from safetensors.numpy import load_file, save, save_file
from tests.models.tiny_components import (
    content_reference,
    pooled,
    tiny_components,
    write_tiny_embedder,
)
from tests.training.tiny_encoder import TEXTS, write_tiny_encoder

from ekphory.errors import InvalidInput, ModelError
from ekphory.models.late_bound import normalised, read_components
from ekphory.models.onnx_export import ModelDescription, export_embedder, unpack_embedder
from ekphory.models.onnx_models import OnnxEmbedder
from ekphory_lab.training.static_int8 import (
    CalibrationSource,
    export_float_embedder,
    export_int8_embedder,
)

CALIBRATION = CalibrationSource(tuple(TEXTS), {"texts.jsonl": "0" * 64})
DESCRIPTION = ModelDescription(name="tiny", licence="MIT", source="made here")


def export_float(source, target):
    return export_embedder(source, target, description=DESCRIPTION)


def export_int8(source, target, *, calibration=CALIBRATION):
    return export_int8_embedder(source, target, description=DESCRIPTION, calibration=calibration)


@pytest.fixture
def plain(tmp_path):
    """A model that knows nothing but texts."""
    directory = tmp_path / "plain"
    directory.mkdir()
    write_tiny_encoder(directory)
    return directory


@pytest.fixture
def source(tmp_path):
    """A model that knows age, type and importance."""
    return write_tiny_embedder(tmp_path / "source")


@pytest.fixture(scope="module")
def knowing(tmp_path_factory):
    """The same, with its exports in float and in 8-bit integers, and what was unpacked of these."""
    directory = write_tiny_embedder(tmp_path_factory.mktemp("knowing"))
    export_float(directory, directory / "whole")
    export_int8(directory, directory / "rounded")
    unpack_embedder(directory / "rounded", directory / "unpacked")
    return directory


@pytest.fixture(scope="module")
def whole(knowing):
    return OnnxEmbedder(knowing / "whole")


@pytest.fixture(scope="module")
def rounded(knowing):
    return OnnxEmbedder(knowing / "rounded")


def test_the_float_export_computes_what_the_formulas_say(plain, tmp_path):
    export_float(plain, tmp_path / "target")

    vectors = OnnxEmbedder(tmp_path / "target").encode(TEXTS)

    assert np.abs(vectors - normalised(pooled(TEXTS))).max() <= 1e-5


def test_the_int8_export_stays_close_to_the_formulas(plain, tmp_path):
    first = export_int8(plain, tmp_path / "target")

    exported = OnnxEmbedder(tmp_path / "target")
    assert (exported.encode(TEXTS) * normalised(pooled(TEXTS))).sum(axis=1).min() >= 0.995
    # The record says what was made from what.
    record = exported.record
    assert (record.name, record.dimension, record.max_tokens) == ("tiny", 32, 24)
    assert (record.licence, record.source) == ("MIT", "made here")
    assert record.made_by["quantisation"] == "int8"
    assert record.made_by["calibration_files"] == {"texts.jsonl": "0" * 64}
    # The same input gives the same bytes.
    assert export_int8(plain, tmp_path / "again") == first


def test_the_window_of_the_source_is_kept(plain, tmp_path):
    (plain / "sentence_bert_config.json").write_text('{"max_seq_length": 6}')
    export_float(plain, tmp_path / "target")

    embedder = OnnxEmbedder(tmp_path / "target")

    assert embedder.record.max_tokens == 6
    assert embedder.windows("the cat sat on a mat") == ["the cat sat on ", "a mat"]
    longer, beginning = embedder.encode(["the cat sat on a mat", "the cat sat on"])
    assert np.array_equal(longer, beginning)


def test_int8_without_calibration_texts_is_refused(plain, tmp_path):
    with pytest.raises(InvalidInput, match="calibration"):
        export_int8(plain, tmp_path / "target", calibration=CalibrationSource((), {}))


OTHER_DENSE = {
    "linear.weight": np.eye(32, dtype=np.float32),
    "linear.bias": np.zeros(32, np.float32),
}


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("model.safetensors", None, r"model\.safetensors"),
        ("config.json", None, r"config\.json"),
        ("tokenizer.json", None, r"tokenizer\.json"),
        ("config.json", b'{"model_type": "t5"}', "model_type='t5'"),
        ("1_Pooling/config.json", b'{"pooling_mode_cls_token": true}', "mean pooling"),
        ("2_Dense/model.safetensors", save(OTHER_DENSE), "not the projection of the components"),
        ("ekphory_components.safetensors", None, "Dense module without components"),
        ("agentrank_components.pt", b"", "save_pretrained"),
    ],
)
def test_a_source_that_cannot_be_exported_is_refused(source, tmp_path, file, content, said):
    if content is None:
        (source / file).unlink()
    else:
        (source / file).write_bytes(content)

    with pytest.raises(ModelError, match=said):
        export_float(source, tmp_path / "out")


def test_the_content_is_the_projection_of_the_pooled_output_unnormalised(whole):
    reading = whole.read(TEXTS)

    assert np.abs(reading.content - content_reference(TEXTS)).max() <= 1e-4
    assert np.linalg.norm(reading.content, axis=1).std() > 0.1
    # The heads read the pooled output.
    parts, vectors = tiny_components(), pooled(TEXTS)
    assert np.abs(reading.importance - parts.importance_of(vectors)).max() <= 1e-5
    assert np.abs(reading.type_logits - parts.type_logits_of(vectors)).max() <= 1e-4
    # The vectors of age and type are exported projected.
    assert np.array_equal(whole.late_bound.age, parts.late_bound().age)
    assert np.array_equal(whole.late_bound.type, parts.late_bound().type)
    # No texts give empty readings.
    nothing = whole.read([])
    assert (nothing.content.shape, nothing.importance.shape) == ((0, 32), (0,))
    assert nothing.type_logits.shape == (0, 4)


def test_nothing_that_the_int8_export_gives_depends_on_the_batch(rounded):
    together = rounded.read(TEXTS)
    alone = [rounded.read([text]) for text in TEXTS]

    for name in ("content", "importance", "type_logits"):
        parts = np.concatenate([getattr(reading, name) for reading in alone])
        assert np.abs(getattr(together, name) - parts).max() <= 1e-5
    # It stays close to the formulas.
    cosines = normalised(together.content) * normalised(content_reference(TEXTS))
    assert cosines.sum(axis=1).min() >= 0.99
    # The record names the parts and the prompts of the source.
    assert rounded.record.parts == ("late_bound", "importance", "memory_type")
    assert rounded.record.query_prompt == "the "
    assert sorted(rounded.record.files) == ["late_bound.npz", "model.onnx", "tokenizer.json"]


def test_other_vectors_of_age_are_another_revision(source, whole, tmp_path):
    tensors = source / "ekphory_components.safetensors"
    save_file(load_file(tensors) | {"age.weight": np.ones((10, 32), np.float32)}, tensors)

    assert export_float(source, tmp_path / "other").revision != whole.identity.revision
    # Vectors of age and type that were changed later are refused.
    path = tmp_path / "other" / "late_bound.npz"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ModelError, match=r"late_bound\.npz"):
        OnnxEmbedder(tmp_path / "other")


def test_what_is_unpacked_and_exported_again_gives_nearly_the_same_vectors(knowing, tmp_path):
    export_float(knowing / "unpacked", tmp_path / "again")

    first, again = (
        OnnxEmbedder(each).encode(TEXTS) for each in (knowing / "rounded", tmp_path / "again")
    )
    assert (first * again).sum(axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=0.01)
    # Age, type, projection and heads come back exactly.
    before, after = read_components(knowing), read_components(knowing / "unpacked")
    assert np.abs(before.age - after.age).max() < 1e-5
    assert np.abs(before.type - after.type).max() < 1e-5
    assert np.array_equal(before.projection.weight, after.projection.weight)
    assert np.array_equal(before.importance[0].weight, after.importance[0].weight)
    assert np.array_equal(before.memory_type.weight, after.memory_type.weight)


@pytest.mark.torch
def test_plain_sentence_transformers_gives_nearly_the_same_vectors(knowing, rounded):
    from sentence_transformers import SentenceTransformer

    unpacked = SentenceTransformer(str(knowing / "unpacked"), device="cpu").encode(TEXTS)

    cosines = (rounded.encode(TEXTS) * unpacked).sum(axis=1)
    assert cosines == pytest.approx(np.ones(len(TEXTS)), abs=0.01)


def test_a_model_in_float_is_not_unpacked(knowing, tmp_path):
    with pytest.raises(ModelError, match="not an 8-bit embedder with age"):
        unpack_embedder(knowing / "whole", tmp_path / "target")
    assert not (tmp_path / "target").exists()


@pytest.mark.torch
def test_modernbert_is_exported_with_its_heads_and_gives_what_torch_gives(tmp_path):
    from tests.training.trainable_encoder import write_modern_encoder

    from ekphory.models.torch_embedder import TorchEmbedder
    from ekphory_lab.training.encoder import load_agent_encoder, save_agent_encoder

    encoder = load_agent_encoder(write_modern_encoder(tmp_path / "base"))
    save_agent_encoder(encoder, tmp_path / "modern")

    export_float_embedder(tmp_path / "modern", tmp_path / "onnx", description=DESCRIPTION)

    exported = OnnxEmbedder(tmp_path / "onnx")
    wanted = TorchEmbedder(str(tmp_path / "modern")).read(TEXTS)
    found = exported.read(TEXTS)
    assert np.abs(found.content - wanted.content).max() <= 1e-4
    assert np.abs(found.importance - wanted.importance).max() <= 1e-5
    assert np.abs(found.type_logits - wanted.type_logits).max() <= 1e-4
    assert exported.late_bound is not None


@pytest.mark.torch
def test_mpnet_is_exported_and_gives_what_torch_gives(tmp_path):
    from tests.training.trainable_encoder import write_mpnet_encoder

    from ekphory.models.torch_embedder import TorchEmbedder

    base = write_mpnet_encoder(tmp_path / "base")
    export_float_embedder(base, tmp_path / "onnx", description=DESCRIPTION)

    wanted = TorchEmbedder(str(base)).encode(TEXTS)
    assert np.abs(OnnxEmbedder(tmp_path / "onnx").encode(TEXTS) - wanted).max() <= 1e-4


@pytest.mark.torch
def test_a_graph_that_gives_other_vectors_than_its_model_is_refused(tmp_path):
    import torch
    from tests.training.trainable_encoder import write_modern_encoder

    from ekphory_lab.training import encoder as exporting
    from ekphory_lab.training.encoder import load_agent_encoder

    encoder = load_agent_encoder(write_modern_encoder(tmp_path / "base"))
    model = exporting._Traced(encoder, None).eval()
    content = exporting._trace(model)
    with torch.no_grad():
        encoder.parts["projection"].weight.mul_(-1)

    with pytest.raises(ModelError, match="other vectors than torch for this modernbert"):
        exporting._check(model, content, tmp_path, most_tokens=24)
