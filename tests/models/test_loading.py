import shutil
from pathlib import Path

import pytest
from tests.models.embedding_service import running_service

from recollect.errors import InvalidInput, RecollectError
from recollect.models.http_embedder import HttpEmbedder
from recollect.models.loading import load_embedder
from recollect.models.onnx_embedder import OnnxEmbedder, load_bundled

BUNDLED = Path(__file__).parents[2] / "src/recollect/models/bundled/recollect-small"


@pytest.mark.parametrize("name", [None, "bundled"])
def test_the_bundled_model_is_the_default(name):
    assert load_embedder(name) is load_bundled()


def test_a_directory_with_an_onnx_model_is_loaded(tmp_path):
    directory = shutil.copytree(BUNDLED, tmp_path / "model")

    embedder = load_embedder(directory)

    assert isinstance(embedder, OnnxEmbedder)
    assert embedder.identity == load_bundled().identity


def test_a_url_is_a_service_and_its_key_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("RECOLLECT_EMBEDDER_API_KEY", "k")
    with running_service() as service:
        embedder = load_embedder(service.url, model="large")
        embedder.close()

    assert isinstance(embedder, HttpEmbedder)
    assert embedder.identity.name == "large"
    assert service.keys == ["Bearer k"]


@pytest.mark.parametrize(
    "name", ["", "  ", "./nowhere", "/no/such/model", "~/no-such-model", "a/b/c"]
)
def test_a_path_that_does_not_exist_is_refused_with_the_remedy(name):
    with pytest.raises(InvalidInput, match="Give a directory, a hub id"):
        load_embedder(name)


def test_a_file_is_refused(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"")

    with pytest.raises(InvalidInput, match="no such model directory"):
        load_embedder(path)


def test_a_directory_without_a_model_is_an_error_of_ours(tmp_path):
    with pytest.raises(RecollectError):
        load_embedder(tmp_path)
