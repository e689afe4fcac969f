import pytest
from tests.services.wire import running_service, says

from recollect.errors import InvalidInput
from recollect.models.reranker_loading import load_reranker


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
        assert reranker.score("q", ["a"]).tolist() == [1.0]
        reranker.close()

    assert service.asked[0].path == path
    assert service.asked[0].headers["Authorization"].endswith(" k")


def test_an_unknown_protocol_is_refused_with_the_known_ones():
    with pytest.raises(InvalidInput, match="Choose from cohere, jina, memos, tei"):
        load_reranker("http://localhost", protocol="voyage")


@pytest.mark.parametrize("spec", ["", "models/reranker", "localhost:80"])
def test_what_is_no_url_is_refused(spec):
    with pytest.raises(InvalidInput, match="url"):
        load_reranker(spec)
