"""Embeddings, as the clients of OpenAI and of LangChain ask for them."""

import base64

import numpy as np
import openai
import pytest
from langchain_openai import OpenAIEmbeddings
from tests.server.running import models

from ekphory.server.options import Limits
from ekphory.testing import HashEmbedder

ALSO_OVER_A_CLUSTER = True
TEXTS = ["I prefer tea", "it rained"]


def ask(server, *, status=200, **body):
    answered = server.client.post("/v1/embeddings", json=body)
    assert answered.status_code == status, answered.text
    return answered.json()


@pytest.fixture(scope="module")
def client(server):
    with openai.OpenAI(api_key="any", base_url=f"{server.url}/v1", max_retries=0) as one:
        yield one


@pytest.mark.parametrize("encoding", [openai.omit, "float", "base64"])
def test_openais_own_client_gets_the_embedders_vectors(client, encoding):
    answer = client.embeddings.create(model="any", input=TEXTS, encoding_format=encoding)
    vectors = [each.embedding for each in answer.data]
    if encoding == "base64":
        vectors = [np.frombuffer(base64.b64decode(each), "<f4") for each in vectors]
    np.testing.assert_allclose(vectors, HashEmbedder().encode(TEXTS), atol=1e-7)
    assert answer.usage.total_tokens > 0


def test_langchains_client_gets_them_too(server):
    address = {"base_url": f"{server.url}/v1", "api_key": "any"}
    client = OpenAIEmbeddings(**address, check_embedding_ctx_length=False)
    expected = HashEmbedder().encode(TEXTS)
    np.testing.assert_allclose(client.embed_documents(TEXTS), expected, atol=1e-7)
    np.testing.assert_allclose(client.embed_query(TEXTS[0]), expected[0], atol=1e-7)


def test_openais_own_client_lists_the_models(client):
    assert [each.id for each in client.models.list()] == ["hash-embedder", "overlap-reranker"]


def test_an_error_is_one_that_openais_client_understands(client):
    with pytest.raises(openai.UnprocessableEntityError, match="the model has 32"):
        client.embeddings.create(model="any", input="tea", dimensions=33)


def test_fewer_dimensions_keep_the_first_and_the_length_1(server):
    answer = ask(server, input="tea", dimensions=8)
    (found,) = answer["data"]
    whole = HashEmbedder().encode(["tea"])[0, :8]
    np.testing.assert_allclose(found["embedding"], whole / np.linalg.norm(whole), atol=1e-6)
    assert (found["index"], answer["model"]) == (0, "hash-embedder")


@pytest.mark.parametrize(
    ("given", "applied"),
    [
        ({}, "passage"),
        ({"input_type": "search_document"}, "passage"),
        ({"input_type": "search_query"}, "query"),
        ({"prompt_name": "query"}, "query"),
    ],
)
def test_the_answer_says_what_the_texts_were_embedded_as(server, given, applied):
    assert ask(server, input="tea", **given)["input_type"] == applied


def test_a_long_passage_is_embedded_whole(serving):
    embedder = HashEmbedder(window_words=2)
    server = serving(used=models(embedder=embedder))
    (answer,) = ask(server, input="tea coffee milk")["data"]
    parts = embedder.encode(["tea coffee", "milk"]).mean(axis=0)
    np.testing.assert_allclose(answer["embedding"], parts / np.linalg.norm(parts), atol=1e-6)


def test_tokens_in_place_of_texts_and_more_texts_than_allowed_are_refused(serving):
    server = serving(limits=Limits(batch=2))
    for tokens in ([1, 2, 3], [[1, 2], [3]]):
        answer = ask(server, input=tokens, status=422)
        assert "check_embedding_ctx_length=False" in answer["error"]["message"]
    answer = ask(server, input=["a", "b", "c"], status=413)
    assert answer["error"]["message"] == "3 texts are more than 2. Send less at a time."
