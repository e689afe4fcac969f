"""Reranking, as each of its clients asks for it."""

import cohere
import httpx
import pytest
from tests.server.running import models

from ekphory.models.loading import load_reranker
from ekphory.server.options import Limits

ALSO_OVER_A_CLUSTER = True
DRINKS = ["it rained", "tea is warm", "tea or coffee"]
PATHS = ["/rerank", "/v1/rerank", "/v2/rerank", "/api/openmem/v1/rerank"]


def rerank(server, *, path="/rerank", status=200, **body):
    answered = server.client.post(path, json=body)
    assert answered.status_code == status, answered.text
    return answered.json()


@pytest.mark.parametrize("path", PATHS)
def test_documents_are_ordered_under_every_path(server, path):
    answer = rerank(server, path=path, query="tea or coffee", documents=DRINKS, model="any")
    assert [each["index"] for each in answer["results"]] == [2, 1, 0]
    assert [round(each["relevance_score"], 2) for each in answer["results"]] == [1.0, 0.33, 0.0]
    assert answer["results"][0]["document"] == {"text": "tea or coffee"}
    assert answer["model"] == "overlap-reranker"


@pytest.mark.parametrize("client", [cohere.Client, cohere.ClientV2])
def test_coheres_own_client_works_with_another_base_url(server, client):
    with httpx.Client() as connections:
        asked = client("any-key", base_url=server.url, httpx_client=connections)
        answer = asked.rerank(model="rerank-v3.5", query="tea", documents=DRINKS, top_n=2)
    assert [each.index for each in answer.results] == [1, 2]


@pytest.mark.parametrize(
    ("settings", "order"),
    [
        ({"documents": ["tea b", "tea a", "tea c"]}, [0, 1, 2]),
        ({"top_n": 1}, [1]),
        ({"top_k": 1}, [1]),
        ({"return_documents": False}, [1, 2, 0]),
    ],
)
def test_so_many_are_given_as_are_asked_for_and_equals_in_the_order_of_the_input(
    server, settings, order
):
    results = rerank(server, **{"query": "tea", "documents": DRINKS} | settings)["results"]
    assert [each["index"] for each in results] == order
    assert all(("document" in each) is settings.get("return_documents", True) for each in results)


def test_a_document_may_carry_what_is_known_of_it(server):
    document = {"text": "tea", "created_at": 1_760_000_000, "memory_type": "semantic", "x": [1]}
    asked = {"query": "tea", "context": ["hi"], "now": "2026-05-01", "foo": "bar"}
    answer = rerank(server, documents=[document], **asked)
    assert answer["results"][0]["relevance_score"] == 1.0


def test_texts_are_answered_as_tei_does(server):
    answer = rerank(server, query="tea", texts=DRINKS[:2], return_text=True)
    assert answer == [
        {"index": 1, "score": 1.0, "text": "tea is warm"},
        {"index": 0, "score": 0.0, "text": "it rained"},
    ]


def test_raw_scores_are_finite_log_odds(server):
    answer = rerank(server, query="tea or coffee", documents=DRINKS, raw_scores=True)
    scores = [each["relevance_score"] for each in answer["results"]]
    assert scores == pytest.approx([16.12, -0.69, -16.12], abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "documents", "best"),
    [
        (
            "What is the capital of China?",
            [
                "Python is a popular programming language.",
                "Beijing has been the capital of various Chinese dynasties.",
                "The capital of China is Beijing.",
            ],
            2,
        ),
        (
            "How do I undo the last commit but keep my changes?",
            [
                "`git reset --soft HEAD~1` takes the last commit back and leaves the files alone.",
                "`git commit --amend` changes the message of the last commit.",
                "Git was written by Linus Torvalds in 2005.",
            ],
            0,
        ),
    ],
)
def test_plain_documents_of_the_web_are_ranked_by_the_bundled_reranker(
    serving, query, documents, best
):
    server = serving(used=models(reranker=load_reranker("bundled")))
    results = rerank(server, query=query, documents=documents, top_n=1)["results"]
    assert [(each["index"], each["document"]["text"]) for each in results] == [
        (best, documents[best])
    ]


@pytest.mark.parametrize("body", [{"documents": []}, {}, {"documents": ["a"], "texts": ["b"]}])
def test_documents_must_be_given_once(server, body):
    answer = rerank(server, query="tea", status=422, **body)
    assert "give documents" in answer["message"]
    assert answer["error"]["type"] == "RequestValidationError"


def test_more_documents_than_allowed_are_refused(serving):
    server = serving(limits=Limits(documents=2))
    answer = rerank(server, query="tea", documents=DRINKS, status=413)
    assert answer["message"].startswith("3 documents are more than 2.")


def test_without_a_reranker_the_answer_says_what_to_do(serving):
    server = serving(used=models(reranker=None))
    answer = rerank(server, query="tea", documents=DRINKS, status=503)
    assert answer["message"].startswith("No reranker is configured. Start the server with EKPHORY_")
