import shutil
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from tests.models.tiny_components import (
    TEXTS,
    bound_reference,
    content_reference,
    write_tiny_embedder,
    write_tiny_onnx_embedder,
)
from tests.training.tiny_encoder import write_tiny_encoder

from ekphory.errors import InvalidInput, ModelError
from ekphory.models.agent_embedder import Embedder
from ekphory.models.late_bound import normalised
from ekphory.models.loading import load_embedder
from ekphory.models.onnx_export import ModelDescription, export_embedder
from ekphory.models.onnx_models import load_bundled
from ekphory.types import MEMORY_TYPES


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """A directory with float weights, and the ONNX model in its folder `onnx`."""
    return write_tiny_onnx_embedder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def embedder(directory):
    return Embedder.from_pretrained(directory)


def same_bytes(first, second, name):
    return (first / name).read_bytes() == (second / name).read_bytes()


@pytest.fixture
def bundled():
    return Embedder.from_pretrained("bundled")


def test_ages_and_types_are_those_of_the_formula(embedder):
    # Ages and types are those of the formula.
    types = ["semantic", "unknown", "episodic"]
    vectors = embedder.encode(TEXTS, days_ago=[0, 20, 400], memory_type=types)
    assert np.abs(vectors - bound_reference(TEXTS, [0, 4, 9], [1, 3, 0])).max() <= 1e-5
    # One value counts for all.
    one = embedder.encode(TEXTS, days_ago=3, memory_type="semantic")
    each = embedder.encode(TEXTS, days_ago=[3] * 3, memory_type=["semantic"] * 3)

    assert np.array_equal(one, each)
    alone = embedder.encode(TEXTS[0], days_ago=3, memory_type="semantic")
    assert np.abs(alone - one[:1]).max() <= 1e-5
    # A query has the models prompt and no age.
    assert np.abs(embedder.encode_query("cat") - embedder.encode(["the cat"])).max() <= 1e-6


def test_what_is_left_out_of_age_and_type(embedder):
    # A memory with an age and no type has the predicted one.
    predicted = embedder.memory_type(TEXTS)

    vectors = embedder.encode(TEXTS, days_ago=3)

    assert set(predicted) <= set(MEMORY_TYPES)
    assert np.array_equal(vectors, embedder.encode(TEXTS, days_ago=3, memory_type=predicted))
    assert embedder.encode([], days_ago=3).shape == (0, 32)
    # A memory without age and type is its content.
    plain = embedder.encode(TEXTS)
    among_others = embedder.encode(TEXTS, days_ago=[None, 3, None])

    assert np.abs(plain - normalised(content_reference(TEXTS))).max() <= 1e-5
    assert np.abs(among_others - plain).max(axis=1)[[0, 2]] == pytest.approx(0, abs=1e-6)
    assert np.abs(among_others - plain).max(axis=1)[1] > 0.01


NO_AGES = ([1, 2], float("nan"), "yesterday", True, timedelta(days=1), [timedelta(days=1)] * 3)
NO_TYPES = ("seasonal", ["semantic"], 1)


@pytest.mark.parametrize(
    ("field", "value"),
    [*(("days_ago", age) for age in NO_AGES), *(("memory_type", kind) for kind in NO_TYPES)],
)
def test_an_age_or_type_that_is_none_is_refused(embedder, field, value):
    with pytest.raises(InvalidInput, match=field):
        embedder.encode(TEXTS, **{field: value})


def test_a_model_without_the_parts_says_so(tmp_path):
    write_tiny_encoder(tmp_path)
    export_embedder(tmp_path, tmp_path / "onnx", description=ModelDescription(name="plain"))
    model = Embedder.from_pretrained(tmp_path / "onnx")

    with pytest.raises(InvalidInput, match="knows neither age nor type"):
        model.encode(["dog"], days_ago=3)
    with pytest.raises(ModelError, match="no importance head"):
        model.importance(["dog"])
    with pytest.raises(ModelError, match="no type head"):
        model.memory_type(["dog"])


def test_the_bundled_model_is_that_of_memories_and_saved_in_both_formats(bundled, tmp_path):
    # The bundled model is the one that memories use.
    assert bundled.identity == load_bundled().identity
    assert np.array_equal(bundled.encode("tea"), load_bundled().encode(["tea"]))
    # The bundled model is saved in both formats and not as onnx beside float weights.
    bundled.save_pretrained(tmp_path)

    assert (tmp_path / "model.safetensors").is_file()
    assert (tmp_path / "modules.json").is_file()
    with pytest.raises(InvalidInput, match="that saving ONNX alone would leave beside it"):
        bundled.save_pretrained(tmp_path, formats=["onnx"])
    assert Embedder.from_pretrained(tmp_path).identity == bundled.identity


@pytest.mark.parametrize("name", ["own", "copy"])
def test_a_model_from_onnx_is_saved_with_its_float_weights(directory, tmp_path, name):
    own = Embedder.from_pretrained(shutil.copytree(directory, tmp_path / "own"))

    own.save_pretrained(tmp_path / name)

    saved = Embedder.from_pretrained(tmp_path / name, runtime="onnx")
    assert saved.identity == own.identity
    assert np.array_equal(saved.encode(TEXTS, days_ago=3), own.encode(TEXTS, days_ago=3))
    assert same_bytes(tmp_path / name, directory, "model.safetensors")
    assert (tmp_path / name / "modules.json").is_file()


@pytest.mark.parametrize(
    "formats", [["transformers"], ["onnx"], ["onnx", "transformers"]], ids=" and ".join
)
def test_of_a_model_from_onnx_the_wanted_formats_are_copied(embedder, tmp_path, formats):
    embedder.save_pretrained(tmp_path, formats=formats)

    assert (tmp_path / "model.safetensors").is_file() is ("transformers" in formats)
    assert (tmp_path / "onnx" / "model.onnx").is_file() is ("onnx" in formats)


def test_float_weights_saved_in_place_leave_the_onnx_model(directory, bundled, tmp_path):
    shutil.copytree(directory, tmp_path / "beside")
    bundled.save_pretrained(tmp_path / "unpacked", formats=["onnx"])
    for place in (tmp_path / "beside", tmp_path / "unpacked"):
        own = Embedder.from_pretrained(place)

        own.save_pretrained(place, formats=["transformers"])

        assert (place / "model.safetensors").is_file()
        assert Embedder.from_pretrained(place, runtime="onnx").identity == own.identity


@pytest.mark.parametrize("formats", [None, ["onnx"], ["transformers"]])
@pytest.mark.parametrize("name", ["model.json", "model.onnx", "tokenizer.json", "late_bound.npz"])
def test_a_model_without_its_files_is_not_saved(directory, tmp_path, name, formats):
    model = Embedder.from_pretrained(shutil.copytree(directory, tmp_path / "own"))
    before = shutil.copytree(directory, tmp_path / "target")
    (tmp_path / "own" / "onnx" / name).unlink()

    with pytest.raises(ModelError, match=rf"{name}.*[Ee]xport the model again"):
        model.save_pretrained(tmp_path / "target", formats=formats)

    assert Embedder.from_pretrained(before).identity == model.identity
    assert same_bytes(before, directory, "model.safetensors")


def test_a_model_in_whose_place_another_stands_is_not_saved(directory, bundled, tmp_path):
    model = Embedder.from_pretrained(shutil.copytree(directory, tmp_path / "own"))
    bundled.save_pretrained(tmp_path / "own")

    with pytest.raises(ModelError, match="Load the model anew"):
        model.save_pretrained(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_an_exported_model_without_float_weights_is_saved_as_onnx_alone(directory, tmp_path):
    exported = Embedder.from_pretrained(shutil.copytree(directory / "onnx", tmp_path / "exported"))

    exported.save_pretrained(tmp_path / "copy")

    assert Embedder.from_pretrained(tmp_path / "copy").identity == exported.identity
    with pytest.raises(InvalidInput, match="save the model that it was exported from"):
        exported.save_pretrained(tmp_path / "other", formats=["transformers"])
    write_tiny_embedder(tmp_path / "other")
    with pytest.raises(InvalidInput, match="holds float weights"):
        exported.save_pretrained(tmp_path / "other")
    # Nor is it saved where another model would be loaded instead.
    with pytest.raises(InvalidInput, match="Give another directory"):
        exported.save_pretrained(tmp_path / "exported")


@pytest.mark.long
@pytest.mark.torch
def test_the_saved_bundled_model_loads_in_plain_libraries(bundled, tmp_path):
    from sentence_transformers import SentenceTransformer
    from transformers import AutoModel

    bundled.save_pretrained(tmp_path, formats=["transformers"])

    expected = bundled.encode(TEXTS)
    plain = SentenceTransformer(str(tmp_path), device="cpu").encode(TEXTS)
    ours = Embedder.from_pretrained(tmp_path).encode(TEXTS)
    assert (plain * expected).sum(axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=0.03)
    assert np.abs(plain - ours).max() <= 1e-5
    assert AutoModel.from_pretrained(tmp_path).config.hidden_size == 384


def test_formats_that_are_none_are_refused(embedder, tmp_path):
    for formats in (["gguf"], "onnx", [], 3):
        with pytest.raises(InvalidInput, match="Give a list of 'transformers' and 'onnx'"):
            embedder.save_pretrained(tmp_path / "copy", formats=formats)
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("texts", [None, 1, [1], ["tea", None], b"tea"])
def test_what_is_no_text_is_refused(embedder, texts):
    for encode in (embedder.encode, embedder.encode_query, embedder.importance):
        with pytest.raises(InvalidInput, match=r"texts=.*Give a text, or a list of texts"):
            encode(texts)


def test_the_folder_onnx_is_found_by_every_way_of_loading(directory, embedder):
    assert load_embedder(directory).identity == embedder.identity
    assert load_embedder(directory / "onnx").identity == embedder.identity


@pytest.mark.parametrize(
    ("name", "runtime", "problem"),
    [
        ("./nowhere", None, "no such model directory"),
        (Path(__file__).parent, "onnx", "runtime='onnx'"),
        ("bundled", "tensorrt", "Choose from onnx, torch"),
        ("bundled", "torch", "save_pretrained"),
        ("https://example.org/v1", None, r"is a service.*Memory\(path, embedder=URL\)"),
    ],
)
def test_what_cannot_be_loaded_is_refused_with_the_remedy(name, runtime, problem):
    with pytest.raises(InvalidInput, match=problem):
        Embedder.from_pretrained(name, runtime=runtime)
