import importlib.util

import pytest
from tests.models.tiny_rerankers import write_overlap_reranker
from tests.services.wire import running_service, says

from ekphory.config import Settings
from ekphory.errors import InvalidInput, MissingExtra
from ekphory.models.loading import load_configured_reranker, load_reranker
from ekphory.models.reranker import RerankPassage, RerankQuery, bundled_reranker

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
