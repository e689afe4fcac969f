from dataclasses import replace

import numpy as np
import pytest
from tests.cases import read_cases
from tests.models.embedding_service import running_embeddings
from tests.services.wire import Reply

from ekphory.errors import ServiceError
from ekphory.http_service import ServiceSettings
from ekphory.models.services import HttpEmbedder, HttpSettings

CASES = read_cases(__file__)
SERVICE = ServiceSettings(timeout=5.0, retries=2, backoff=0.01)
SETTINGS = HttpSettings(model="m", service=SERVICE)


@pytest.fixture
def service():
    with running_embeddings() as running:
        yield running


@pytest.fixture
def connect(service, close_at_end):
    def connect(settings=SETTINGS):
        embedder = close_at_end(HttpEmbedder(f"{service.host}/v1", settings=settings))
        service.asked.clear()
        return embedder

    return connect


def test_vectors_come_in_the_order_of_the_texts(connect, service):
    # Vectors come in the order of the texts with length one.
    embedder = connect()
    vectors = embedder.encode(["a", "four"])

    assert vectors.dtype == np.float32
    assert vectors == pytest.approx(np.array([[1, 1, 0], [4, 1, 0]]) / [[2**0.5], [17**0.5]])
    assert str(embedder.identity) == "m@http-6e340b9cffb37a98 (3-d)"
    # Many texts are sent in batches.
    assert connect().encode(["x"] * 130).shape == (130, 3)
    assert [len(request["input"]) for request in service.bodies] == [64, 64, 2]
    # Neither no texts nor a repeated query ask anything.
    embedder.encode_query(["tea"])
    service.asked.clear()
    embedder.encode_query(["tea"])

    assert embedder.encode([]).shape == (0, 3)
    assert embedder.encode_query([]).shape == (0, 3)
    assert service.bodies == []


def test_the_key_is_sent_and_never_shown(connect, service):
    embedder = connect(replace(SETTINGS, api_key="geheim-123"))
    service.replies = [Reply(401, b"bad key geheim-123")]

    with pytest.raises(ServiceError) as caught:
        embedder.encode(["tea"])

    assert service.asked[-1].headers["Authorization"] == "Bearer geheim-123"
    shown = f"{caught.value} {caught.value!r} {embedder!r} {SETTINGS!r} {embedder._settings}"
    assert "geheim" not in shown


@pytest.mark.parametrize(("body", "problem"), CASES["wrong answers"])
def test_a_wrong_answer_is_an_error_that_says_what_is_wrong(connect, service, body, problem):
    embedder = connect()
    service.replies = [Reply(body=body.encode("latin-1"))]

    with pytest.raises(ServiceError, match=problem):
        embedder.encode(["tea"])


def test_a_service_that_is_not_there_is_an_error_when_connecting():
    with running_embeddings() as stopped:
        pass

    with pytest.raises(ServiceError, match="could not be asked"):
        HttpEmbedder(stopped.host, settings=replace(SETTINGS, service=replace(SERVICE, retries=0)))


def test_long_text_is_split_by_a_careful_count(connect):
    pieces = connect().windows("word " * 600, prefix="Ann: ")

    # Four letters count as two tokens, of 512 for all.
    assert len(pieces[0].split()) == 254 + 1
    assert all(piece.startswith("Ann: word") for piece in pieces)
    assert "".join(piece.removeprefix("Ann: ") for piece in pieces).count("word") >= 600
