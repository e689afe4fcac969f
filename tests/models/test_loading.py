import importlib.util

import pytest
from tests.models.embedding_service import running_embeddings
from tests.models.tiny_rerankers import write_overlap_reranker
from tests.services.wire import running_service, says

from ekphory.config import Settings, read_settings
from ekphory.errors import EkphoryError, InvalidInput, MissingExtra
from ekphory.memory import Memory
from ekphory.models.loading import (
    load_configured_embedder,
    load_configured_reranker,
    load_embedder,
    load_reranker,
)
from ekphory.models.onnx_models import load_bundled
from ekphory.models.reranker import BundledReranker, RerankPassage, RerankQuery
from ekphory.service.handles import load_models


def test_a_url_is_a_service_that_is_sent_the_model_and_the_key(monkeypatch):
    # The environment is not read here.
    monkeypatch.setenv("EKPHORY_EMBEDDER_API_KEY", "k")
    with running_embeddings() as service:
        load_embedder(service.host).close()

    assert "Authorization" not in service.asked[0].headers
    # A url is a service that is sent the model and the key.
    with running_embeddings() as service:
        embedder = load_embedder(service.host, model="large", api_key="k")
        embedder.close()

    assert embedder.identity.name == service.bodies[0]["model"] == "large"
    assert service.asked[0].headers["Authorization"] == "Bearer k"


def test_a_memory_sends_the_model_and_the_key_of_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("EKPHORY_EMBEDDER_API_KEY", "k")
    monkeypatch.setenv("EKPHORY_EMBEDDER_MODEL", "large")
    with running_embeddings() as service, Memory(tmp_path, embedder=service.host) as memory:
        memory.add("tea")

    assert {request.headers["Authorization"] for request in service.asked} == {"Bearer k"}
    assert {body["model"] for body in service.bodies} == {"large"}


@pytest.mark.parametrize(
    "name", ["", "  ", "./nowhere", "/no/such/model", "~/no-such-model", "a/b/c", __file__]
)
def test_what_is_no_directory_is_refused_with_the_remedy(name):
    with pytest.raises(InvalidInput, match=r"no such model directory.*Give a directory, a hub id"):
        load_embedder(name)


def test_a_directory_without_a_model_is_an_error_of_ours(tmp_path):
    with pytest.raises(EkphoryError):
        load_embedder(tmp_path)


INSTALLED = importlib.util.find_spec("sentence_transformers") is not None


@pytest.mark.parametrize("protocol", [None, "jina", "cohere", "memos"])
def test_a_protocol_is_known_by_its_name_and_sent_the_key(protocol):
    with running_service(lambda _: says({"results": [{"index": 0, "relevance_score": 1}]})) as wire:
        reranker = load_reranker(wire.host, protocol=protocol, model="m", api_key="k")
        assert reranker.score(RerankQuery("q"), [RerankPassage("a")]).tolist() == [1.0]
        reranker.close()

    assert reranker.name == f"{protocol or 'jina'}:m"
    assert wire.asked[0].headers["Authorization"].endswith(" k")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"spec": "http://a", "protocol": "voyage"}, "Choose from cohere, jina, memos, tei"),
        ({"runtime": "tensorrt"}, r"runtime='tensorrt'.*onnx, sentence-transformers"),
        ({"runtime": "onnx"}, r"runtime='onnx'.*has no such model"),
        ({"spec": "ekphory-rerank-tinny"}, r"'ekphory-rerank-tinny'.*ekphory-rerank-tiny"),
    ],
)
def test_what_cannot_be_loaded_is_refused_with_what_can(tmp_path, given, problem):
    with pytest.raises(InvalidInput, match=problem):
        load_reranker(**{"spec": tmp_path, **given})


@pytest.mark.parametrize("spec", ["", "models/my/reranker", "./reranker", "localhost:80"])
def test_what_is_neither_url_nor_model_is_refused(spec):
    with pytest.raises(InvalidInput, match=r"reranker='.*no such model directory"):
        load_reranker(spec)


def test_a_directory_with_an_onnx_model_is_loaded_from_there_or_from_its_onnx_folder(tmp_path):
    write_overlap_reranker(tmp_path / "onnx")
    for directory in (tmp_path / "onnx", tmp_path):
        assert load_reranker(directory).name == "overlap"


@pytest.mark.skipif(INSTALLED, reason="the [torch] extra is installed")
@pytest.mark.parametrize("runtime", [None, "sentence-transformers", "transformers"])
def test_a_hub_id_needs_the_extra_and_says_so(runtime):
    needed = r"'owner/model' needs .*ekphory\[torch\]"
    with pytest.raises(MissingExtra, match=needed):
        load_reranker("owner/model", runtime=runtime)
    with pytest.raises(MissingExtra, match=needed):
        load_embedder("owner/model")


@pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vLLM is installed")
def test_vllm_is_asked_for_where_it_is_missing():
    with pytest.raises(MissingExtra, match=r"ekphory\[vllm\]"):
        load_reranker("owner/model", runtime="vllm")


def test_the_bundled_reranker_is_loaded_when_it_is_first_needed(tmp_path):
    write_overlap_reranker(tmp_path)
    (tmp_path / "model.onnx").rename(tmp_path / "away.onnx")
    bundled = BundledReranker(tmp_path)
    (tmp_path / "away.onnx").rename(tmp_path / "model.onnx")
    assert bundled.score(RerankQuery("red"), [RerankPassage("a red dog")])[0] > 0.7
    assert bundled.name == "ekphory-rerank-small"


@pytest.mark.parametrize("spec", ["bundled", "ekphory-rerank-small", "ekphory-rerank-tiny"])
def test_the_bundled_models_are_loaded_by_name_or_by_default(spec):
    reranker = load_reranker(spec)
    passages = [RerankPassage("I moved to Oslo in May"), RerankPassage("The soup was cold")]
    moved, soup = reranker.score(RerankQuery("Where do I live?"), passages)
    assert reranker.name == spec.replace("bundled", "ekphory-rerank-small")
    assert moved > soup
    assert load_embedder(None) is load_embedder("bundled") is load_bundled()


def test_settings_may_name_a_directory_or_no_reranker_at_all(tmp_path):
    write_overlap_reranker(tmp_path)
    named = load_configured_reranker(Settings(store="s", reranker=str(tmp_path)))
    assert named.name == "overlap"
    assert load_configured_reranker(Settings(store="s", reranker="none")) is None


@pytest.mark.parametrize(
    "name",
    ["embedder_options", "embedder_query_prefix", "embedder_passage_prefix", "reranker_options"],
)
def test_what_says_how_a_model_is_loaded_is_refused_where_none_is_named(name):
    load = load_configured_embedder if "embedder" in name else load_configured_reranker
    with pytest.raises(InvalidInput, match=f"EKPHORY_{name.upper()}='x': is for a model that is"):
        load(Settings(store="s", **{name: "x"}))


@pytest.mark.parametrize("name", ["EMBEDDER_OPTIONS", "RERANKER_OPTIONS"])
def test_options_of_a_model_that_nobody_names_are_refused_wherever_models_are_loaded(
    name, tmp_path, monkeypatch
):
    monkeypatch.setenv(f"EKPHORY_{name}", "nojson")
    with pytest.raises(InvalidInput, match=f"EKPHORY_{name}='nojson': is for a model that is"):
        Memory(tmp_path)
    with pytest.raises(InvalidInput, match=f"EKPHORY_{name}='nojson': is for a model that is"):
        load_models(read_settings())
