import shutil
from pathlib import Path

import pytest
from tests.models.embedding_service import running_embeddings

from ekphory.errors import EkphoryError, InvalidInput
from ekphory.memory import Memory
from ekphory.models.http_embedder import HttpEmbedder
from ekphory.models.loading import load_embedder
from ekphory.models.onnx_embedder import OnnxEmbedder, load_bundled

BUNDLED = Path(__file__).parents[2] / "src/ekphory/models/bundled/ekphory-small"


@pytest.mark.parametrize("name", [None, "bundled"])
def test_the_bundled_model_is_the_default(name):
    assert load_embedder(name) is load_bundled()


def test_a_directory_with_an_onnx_model_is_loaded(tmp_path):
    directory = shutil.copytree(BUNDLED, tmp_path / "model")

    embedder = load_embedder(directory)

    assert isinstance(embedder, OnnxEmbedder)
    assert embedder.identity == load_bundled().identity


def test_a_url_is_a_service_that_is_sent_the_model_and_the_key():
    with running_embeddings() as service:
        embedder = load_embedder(service.host, model="large", api_key="k")
        embedder.close()

    assert isinstance(embedder, HttpEmbedder)
    assert embedder.identity.name == "large"
    assert service.bodies[0]["model"] == "large"
    assert service.asked[0].headers["Authorization"] == "Bearer k"


def test_the_environment_is_not_read_here(monkeypatch):
    monkeypatch.setenv("EKPHORY_EMBEDDER_API_KEY", "k")
    with running_embeddings() as service:
        load_embedder(service.host).close()

    assert "Authorization" not in service.asked[0].headers


def test_a_memory_sends_the_model_and_the_key_of_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("EKPHORY_EMBEDDER_API_KEY", "k")
    monkeypatch.setenv("EKPHORY_EMBEDDER_MODEL", "large")
    with running_embeddings() as service, Memory(tmp_path, embedder=service.host) as memory:
        memory.add("tea")

    assert {request.headers["Authorization"] for request in service.asked} == {"Bearer k"}
    assert {body["model"] for body in service.bodies} == {"large"}


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
    with pytest.raises(EkphoryError):
        load_embedder(tmp_path)
