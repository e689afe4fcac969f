"""How much is taken at a time."""

import socket
import threading
import time

import httpx
import pytest
from tests.server.running import running_server

from recollect.errors import InvalidInput
from recollect.server.gate import RateLimit
from recollect.server.options import Limits


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    limits = Limits(body_bytes=1000, per_second=1000)
    with running_server(tmp_path_factory.mktemp("small") / "store", limits=limits) as running:
        yield running


def test_a_body_that_is_too_large_is_refused(small):
    status, message = small.refusal("/memories", {"messages": [{"content": "x" * 1000}]})
    assert (status, message) == (413, "The body is larger than 1,000 bytes. Send less at a time.")


def test_a_body_of_unknown_size_is_refused_when_it_gets_too_large(small):
    pieces = (b"x" * 100 for _ in range(20))
    assert small.client.post("/api/v2/memories", content=pieces).status_code == 413


def test_a_body_in_pieces_is_read(small):
    pieces = iter([b'{"messages": [{"con', b'tent": "tea"}]}'])
    headers = {"Content-Type": "application/json"}
    answered = small.client.post("/api/v2/memories", content=pieces, headers=headers)
    assert answered.status_code == 200


def request_head(length):
    return (
        "POST /api/v2/memories HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


def test_a_body_that_does_not_arrive_in_time_frees_its_place(tmp_path):
    limits = Limits(concurrency=1, body_seconds=0.2)
    with running_server(tmp_path / "store", limits=limits) as server:
        url = httpx.URL(server.url)
        with socket.create_connection((url.host, url.port), timeout=10) as slow:
            slow.sendall(request_head(1000) + b"{")
            answered = slow.recv(65_536)
        assert answered.startswith(b"HTTP/1.1 408")
        assert b"The body took longer than 0.2 s to arrive." in answered
        assert server.post("/projects/list").status_code == 200


def test_a_request_whose_sender_hangs_up_is_not_acted_on(small):
    whole = b'{"messages": [{"content": "half"}]}'
    url = httpx.URL(small.url)
    with socket.create_connection((url.host, url.port), timeout=10) as connection:
        connection.sendall(request_head(len(whole) + 10) + whole)
    deadline = time.monotonic() + 10
    while 'status="499"' not in small.client.get("/metrics").text:
        assert time.monotonic() < deadline
    assert small.answer("/memories/search", {"query": "half"})["content"]["episodic_memory"][
        "long_term_memory"
    ] == {"episodes": []}


@pytest.mark.parametrize("half", [b"\\ud800", b"\\uDFFF x", b"\xed\xa0\x80"])
def test_half_of_a_character_is_refused(small, half):
    body = b'{"messages": [{"content": "' + half + b'"}]}'
    answered = small.client.post(
        "/api/v2/memories", content=body, headers={"Content-Type": "application/json"}
    )
    assert answered.status_code == 422
    assert "half of a surrogate pair" in answered.json()["detail"]["message"]


def test_a_whole_character_in_two_escapes_is_read(small):
    body = rb'{"query": "\ud83d\ude00"}'
    headers = {"Content-Type": "application/json"}
    answered = small.client.post("/api/v2/memories/search", content=body, headers=headers)
    assert answered.status_code == 200


def test_more_requests_than_may_be_under_way_are_turned_away(tmp_path):
    limits = Limits(concurrency=2, threads=1)
    with running_server(tmp_path / "store", limits=limits) as server:
        statuses = []

        def ask():
            statuses.append(server.post("/memories", {"messages": [{"content": "x"}] * 50}))

        asking = [threading.Thread(target=ask) for _ in range(12)]
        for each in asking:
            each.start()
        for each in asking:
            each.join()
        refused = [answer for answer in statuses if answer.status_code == 503]
        assert {answer.status_code for answer in statuses} <= {200, 503}
        assert refused
        assert refused[0].headers["Retry-After"] == "1"
        assert server.client.get("/health").status_code == 200


def test_too_many_requests_of_one_caller_are_told_when_to_come_back(tmp_path):
    with running_server(tmp_path / "store", limits=Limits(per_second=0.2)) as server:
        answers = [server.post("/projects/list") for _ in range(2)]
        other = server.service.keys.create().text
        assert [answer.status_code for answer in answers] == [200, 429]
        assert answers[1].headers["Retry-After"] == "5"
        assert server.post("/projects/list", key=other).status_code == 200


def test_a_bucket_fills_steadily_up_to_its_size():
    now = [0.0]
    rates = RateLimit(2.0, clock=lambda: now[0])
    assert [rates.wait_for("a") for _ in range(10)] == [0] * 10
    assert rates.wait_for("a") == pytest.approx(0.5)
    now[0] = 0.5
    assert rates.wait_for("a") == 0
    now[0] = 1000.0
    assert [rates.wait_for("a") for _ in range(11)][-1] > 0


def test_a_limit_that_lets_nothing_through_is_refused():
    with pytest.raises(InvalidInput, match="lets nothing through"):
        Limits(threads=0)
