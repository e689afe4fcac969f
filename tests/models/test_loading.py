import importlib.util
import shutil
from pathlib import Path

import pytest
from tests.models.embedding_service import running_embeddings
from tests.models.tiny_rerankers import write_overlap_reranker
from tests.services.wire import running_service, says

from ekphory.config import Settings
from ekphory.errors import EkphoryError, InvalidInput, MissingExtra
from ekphory.memory import Memory
from ekphory.models.http_embedder import HttpEmbedder
from ekphory.models.loading import load_configured_reranker, load_embedder, load_reranker
from ekphory.models.onnx_embedder import OnnxEmbedder, load_bundled
from ekphory.models.reranker import RerankPassage, RerankQuery, bundled_reranker

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


INSTALLED = importlib.util.find_spec("sentence_transformers") is not None


@pytest.mark.parametrize(
    ("protocol", "path"),
    [
        (None, "/v1/rerank"),
        ("jina", "/v1/rerank"),
        ("cohere", "/v2/rerank"),
        ("tei", "/rerank"),
        ("memos", "/api/openmem/v1/rerank"),
    ],
)
def test_a_protocol_asks_its_own_path_with_the_key(protocol, path):
    answer = (
        [{"index": 0, "score": 1}]
        if protocol == "tei"
        else {"results": [{"index": 0, "relevance_score": 1}]}
    )
    with running_service(lambda _: says(answer)) as service:
        reranker = load_reranker(service.host, protocol=protocol, model="m", api_key="k")
        assert reranker.score(RerankQuery("q"), [RerankPassage("a")]).tolist() == [1.0]
        reranker.close()

    assert service.asked[0].path == path
    assert service.asked[0].headers["Authorization"].endswith(" k")


def test_an_unknown_protocol_is_refused_with_the_known_ones():
    with pytest.raises(InvalidInput, match="Choose from cohere, jina, memos, tei"):
        load_reranker("http://localhost", protocol="voyage")


@pytest.mark.parametrize("spec", ["", "models/my/reranker", "./reranker", "localhost:80"])
def test_what_is_neither_url_nor_model_is_refused(spec):
    with pytest.raises(InvalidInput, match=r"reranker='.*no such model directory"):
        load_reranker(spec)


def test_a_directory_with_an_onnx_model_is_loaded_from_there_or_from_its_onnx_folder(tmp_path):
    write_overlap_reranker(tmp_path / "onnx")
    for directory in (tmp_path / "onnx", tmp_path):
        assert load_reranker(directory).name == "overlap"


def test_an_unknown_runtime_is_refused_with_the_known_ones(tmp_path):
    with pytest.raises(InvalidInput, match=r"runtime='tensorrt'.*onnx, sentence-transformers"):
        load_reranker(tmp_path, runtime="tensorrt")


def test_a_directory_without_an_onnx_model_cannot_be_run_by_onnx(tmp_path):
    with pytest.raises(InvalidInput, match=r"runtime='onnx'.*has no such model"):
        load_reranker(tmp_path, runtime="onnx")


@pytest.mark.skipif(INSTALLED, reason="the [torch] extra is installed")
@pytest.mark.parametrize("runtime", [None, "sentence-transformers", "transformers"])
def test_a_hub_id_needs_the_extra_and_says_so(runtime):
    with pytest.raises(MissingExtra, match=r"'owner/model' needs .*ekphory\[torch\]"):
        load_reranker("owner/model", runtime=runtime)


@pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vLLM is installed")
def test_vllm_is_asked_for_where_it_is_missing():
    with pytest.raises(MissingExtra, match=r"ekphory\[vllm\]"):
        load_reranker("owner/model", runtime="vllm")


def test_the_bundled_reranker_is_loaded_when_it_is_first_needed(tmp_path):
    write_overlap_reranker(tmp_path)
    (tmp_path / "model.onnx").rename(tmp_path / "away.onnx")
    bundled = bundled_reranker(directory=tmp_path)
    (tmp_path / "away.onnx").rename(tmp_path / "model.onnx")
    assert bundled.score(RerankQuery("red"), [RerankPassage("a red dog")])[0] > 0.7
    assert bundled.name == "ekphory-rerank-small"


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("bundled", "ekphory-rerank-small"),
        ("ekphory-rerank-small", "ekphory-rerank-small"),
        ("ekphory-rerank-tiny", "ekphory-rerank-tiny"),
    ],
)
def test_the_bundled_rerankers_are_loaded_by_name(spec, name):
    reranker = load_reranker(spec)
    passages = [RerankPassage("I moved to Oslo in May"), RerankPassage("The soup was cold")]
    moved, soup = reranker.score(RerankQuery("Where do I live?"), passages)
    assert reranker.name == name
    assert moved > soup


def test_a_misspelt_bundled_reranker_is_looked_for_on_no_hub():
    with pytest.raises(InvalidInput, match=r"'ekphory-rerank-tinny'.*ekphory-rerank-tiny"):
        load_reranker("ekphory-rerank-tinny")


def test_where_no_reranker_is_bundled_there_is_none(tmp_path):
    assert bundled_reranker(directory=tmp_path) is None


def test_settings_may_name_a_directory_or_no_reranker_at_all(tmp_path):
    write_overlap_reranker(tmp_path)
    named = load_configured_reranker(Settings(store="s", reranker=str(tmp_path)))
    assert named.name == "overlap"
    assert load_configured_reranker(Settings(store="s", reranker="none")) is None
