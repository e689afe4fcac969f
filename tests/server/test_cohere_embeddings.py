"""Embeddings, as Cohere's client asks for them."""

import base64

import cohere
import httpx
import numpy as np
import pytest

ALSO_OVER_A_CLUSTER = True
ASKED = {"model": "any", "texts": ["tea", "coffee"], "input_type": "search_document"}


@pytest.fixture
def client(server):
    with httpx.Client() as connections:
        yield cohere.ClientV2("any", base_url=server.url, httpx_client=connections)


@pytest.mark.one_store
def test_coheres_client_gets_every_type_it_asks_for(server, client):
    types = ["float", "int8", "uint8", "binary", "ubinary", "base64"]
    given = client.embed(**ASKED, embedding_types=types).embeddings
    expected = server.service.models.embed(["tea", "coffee"], "passage")
    np.testing.assert_allclose(given.float_, expected, atol=1e-6)
    np.testing.assert_allclose(np.array(given.int8) / 127, expected, atol=0.5 / 127 + 1e-6)
    assert (np.array(given.uint8) - 128 == given.int8).all()
    assert (np.array(given.binary) + 128 == given.ubinary).all()
    assert (np.unpackbits(np.array(given.ubinary, np.uint8), axis=1) == (expected > 0)).all()
    assert np.frombuffer(base64.b64decode(given.base64[1]), "<f4").tolist() == given.float_[1]


def test_floats_are_given_where_no_type_is_named(client):
    given = client.embed(**ASKED, output_dimension=8).embeddings
    assert (given.int8, len(given.float_), len(given.float_[0])) == (None, 2, 8)
    assert np.linalg.norm(given.float_[0]) == pytest.approx(1)


REFUSED = [
    ({"input_type": "clustering"}, "should be 'search_document' or 'search_query'"),
    ({"embedding_types": ["int4"]}, "should be 'float', 'int8', 'uint8', 'binary'"),
    ({"images": ["data:image/png;base64,AA=="]}, "images: leave it out"),
    ({"output_dimension": 100_000}, "Give as many at most"),
]


@pytest.mark.parametrize(("changed", "told"), REFUSED)
def test_what_the_model_cannot_do_is_refused_with_the_remedy(client, changed, told):
    with pytest.raises(cohere.UnprocessableEntityError, match=told):
        client.embed(**ASKED | changed)


def test_a_reranking_of_nothing_is_refused(client):
    with pytest.raises(cohere.UnprocessableEntityError, match="greater than or equal to 1"):
        client.rerank(model="any", query="tea", documents=["tea"], top_n=0)
