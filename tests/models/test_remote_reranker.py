"""The rerankers behind a URL, each in its own protocol."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from tests.cases import read_cases
from tests.services.wire import Reply, running_service, says

from ekphory.errors import InvalidInput, ServiceError
from ekphory.http_service import ServiceSettings
from ekphory.models.reranker import RerankPassage, RerankQuery
from ekphory.models.services import DIALECTS, RemoteReranker, RerankSettings

CASES = read_cases(__file__)
COHERE, JINA, MEMOS, TEI = (DIALECTS[name] for name in ("cohere", "jina", "memos", "tei"))
SERVICE = ServiceSettings(timeout=5.0, retries=1, backoff=0.01)
SETTINGS = RerankSettings(model="m", api_key="geheim-123", service=SERVICE)


def ask(reranker, texts):
    return reranker.score(RerankQuery("q"), [RerankPassage(text) for text in texts])


def results(request, passages_field="documents", score_field="relevance_score"):
    """Score each passage by its share of the letter a, best first."""
    shares = [text.count("a") / len(text) for text in request.body[passages_field]]
    rows = [{"index": index, score_field: share} for index, share in enumerate(shares)]
    return sorted(rows, key=lambda row: -row[score_field])


def documented(request):
    return says({"id": "1", "results": results(request), "usage": {"total_tokens": 9}})


def bare_list(request):
    return says(results(request, "texts", "score"))


def wrapped(request):
    return says({"code": 0, "message": "ok", "data": {"results": results(request)}})


@pytest.fixture
def wire():
    with running_service(documented) as service:
        yield service


@pytest.fixture
def connect(wire, close_at_end):
    def connect(dialect=JINA, settings=SETTINGS):
        return close_at_end(RemoteReranker(wire.host, dialect=dialect, settings=settings))

    return connect


@pytest.mark.parametrize(
    ("dialect", "answer"),
    [(COHERE, documented), (JINA, documented), (TEI, bare_list), (MEMOS, documented),
     (MEMOS, wrapped)],
)  # fmt: skip
def test_scores_come_in_the_order_of_the_passages(connect, wire, dialect, answer):
    wire.answer = answer

    scores = ask(connect(dialect), ["ab", "aa", "bb", "aaab"])

    assert scores.dtype == np.float32
    assert scores.tolist() == [0.5, 1.0, 0.0, 0.75]


def test_what_is_known_is_told_in_words_and_neighbours_are_not(connect, wire):
    day = datetime(2023, 5, 8, tzinfo=UTC)
    query = RerankQuery("when was that?", context=("Ann: I ran",), now=day)
    passage = RerankPassage("Bob: a", before="Ann: b", after="Ann: c", at=day, type="episodic")
    connect(JINA).score(query, [passage])

    (body,) = wire.bodies
    told = "The dialogue so far:\nAnn: I ran\nAsked on 8 May 2023: when was that?"
    assert body["query"] == told
    assert body["documents"] == ["[8 May 2023, episodic memory] Bob: a"]


DOCUMENTS = {"query": "q", "documents": ["a", "b"], "top_n": 2, "model": "m"}
TEI_FLAGS = {"raw_scores": False, "return_text": False, "truncate": True}


@pytest.mark.parametrize(
    ("dialect", "path", "scheme", "body"),
    [
        (COHERE, "/v2/rerank", "Bearer", DOCUMENTS),
        (JINA, "/v1/rerank", "Bearer", DOCUMENTS | {"return_documents": False}),
        (MEMOS, "/api/openmem/v1/rerank", "Token", DOCUMENTS),
        (TEI, "/rerank", "Bearer", {"query": "q", "texts": ["a", "b"], **TEI_FLAGS}),
    ],
)
def test_each_protocol_is_asked_as_it_wants_it(connect, wire, dialect, path, scheme, body):
    wire.answer = bare_list if dialect is TEI else documented
    ask(connect(dialect), ["a", "b"])

    (request,) = wire.asked
    assert (request.path, request.headers["Authorization"]) == (path, f"{scheme} geheim-123")
    assert request.body == body


@pytest.mark.parametrize("dialect", [COHERE, MEMOS])
def test_a_protocol_that_needs_a_model_says_so(connect, dialect):
    with pytest.raises(InvalidInput, match=f"model.*'{dialect.name}' needs one"):
        connect(dialect, RerankSettings())


def test_many_passages_are_sent_in_batches_and_none_ask_nothing(connect, wire):
    # No passages ask nothing.
    scores = ask(connect(), [])

    assert (scores.shape, scores.dtype) == ((0,), np.float32)
    assert wire.asked == []
    # Many passages are sent in batches.
    reranker = connect(replace(JINA, batch_size=2))

    assert ask(reranker, ["a", "b", "ab", "b", "a"]).tolist() == [1, 0, 0.5, 0, 1]
    assert [body["top_n"] for body in wire.bodies] == [2, 2, 1]


def test_memos_is_never_sent_more_tokens_than_it_takes(connect, wire):
    long, longer = "aaa " * 3_999 + "aaa", "bbb " * 9_000 + "bbb"

    ask(connect(MEMOS), [long, long, "c", longer, "d"])

    assert [body["top_n"] for body in wire.bodies] == [2, 1, 1, 1]


def rows(*pairs):
    return says({"results": [{"index": index, "relevance_score": score} for index, score in pairs]})


BEYOND = rows((0, 10**400), (1, 0.5)).body.decode()


@pytest.mark.parametrize(
    ("body", "problem"),
    [*CASES["wrong answers"], pytest.param(BEYOND, "not finite", id="beyond a float")],
)
def test_a_wrong_answer_is_an_error_and_never_a_zero(connect, wire, body, problem):
    wire.replies = [Reply(body=body.encode())]

    with pytest.raises(ServiceError, match=problem):
        ask(connect(), ["a", "b"])


def test_logits_become_probabilities_by_a_sigmoid(connect, wire):
    wire.replies = [rows((1, -2.0), (0, 2.0), (2, 900.0), (3, -900.0))]

    scores = ask(connect(settings=replace(SETTINGS, scores="logit")), ["a", "b", "c", "d"])

    assert scores == pytest.approx([0.880797, 0.119203, 1.0, 0.0], abs=1e-6)


def test_a_second_batch_that_fails_fails_the_whole(connect, wire):
    wire.replies = [rows((0, 0.5)), Reply(400)]

    with pytest.raises(ServiceError, match=r"reranking service at .* \(model 'm'\).*status 400"):
        ask(connect(replace(JINA, batch_size=1)), ["a", "b"])


def test_the_key_is_never_shown(connect, wire):
    wire.replies = [says({"error": "geheim-123"})]
    reranker = connect()

    with pytest.raises(ServiceError) as caught:
        ask(reranker, ["a"])

    assert "geheim" not in f"{caught.value} {reranker!r} {SETTINGS!r}"


def test_its_name_is_the_protocol_and_the_model(connect, wire):
    # Its name is the protocol and the model which the service may choose.
    reranker = connect(JINA, RerankSettings())
    ask(reranker, ["a"])

    assert "model" not in wire.bodies[0]
    assert (connect(COHERE).name, reranker.name) == ("cohere:m", "jina")
    # An unknown scale of scores is refused.
    with pytest.raises(InvalidInput, match="scores='logits': must be a scale"):
        RerankSettings(scores="logits")
