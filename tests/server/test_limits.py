"""How much is taken at a time."""

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.server.running import running_server

from ekphory.errors import InvalidInput
from ekphory.server.auth import RateLimit
from ekphory.server.limits import BodyScan, Refusal
from ekphory.server.options import Limits, ServerOptions

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def told(*pieces, most_values=10, most_depth=3):
    scan = BodyScan(most_values=most_values, most_depth=most_depth)
    for piece in pieces:
        trouble = scan.feed(piece)
        if trouble is not None:
            return trouble
    return scan.end()


@pytest.mark.parametrize(
    ("pieces", "trouble"),
    [
        ([b"[1,2,3,4,5,6,7,8,9,10]"], None),
        ([b"[1,2,3,4,5,6,7,8,9,10,11]"], Refusal.MANY_VALUES),
        ([b"]" * 21], Refusal.MANY_VALUES),
        # Commas and brackets within texts do not count.
        ([b'["[[[[[{{{{,,,,,,,,,,,,,, \\" ,,,,,,,,,,,, \\\\", 1]'], None),
        ([b"[[[]]]"], None),
        ([b"[[[[]]]]"], Refusal.DEEP),
        # A text may go on in the next piece, and an escape be cut in two.
        ([b'["a', b",,,,,,,,,,,,,,,,,,", b'"]'], None),
        ([b'["a\\', b'",,,,,,,,,,,,,,,,"]'], None),
    ],
)
def test_values_and_nesting_are_counted(pieces, trouble):
    assert told(*pieces) is trouble


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        *((half, Refusal.HALF_CHARACTER) for half in (b"\\ud800", b"\\uDFFF x", b"\xed\xa0\x80")),
        (b"\\ud83d\\ud83d\\ude00", Refusal.HALF_CHARACTER),
        *((whole, None) for whole in (b"\\ud83d\\ude00", b"\\\\ud800", b"ud800", b"\\u00e9")),
    ],
)
def test_half_of_a_character_is_found_wherever_the_body_is_cut(text, trouble):
    body = b'["' + b"x" * 20 + text + b"y" * 20 + b'"]'
    for place in range(len(body)):
        assert told(body[:place], body[place:]) is trouble, place


@settings(max_examples=40)
@given(JSON, st.integers(1, 7))
def test_every_json_of_few_values_is_taken_in_pieces_of_any_length(value, length):
    body = json.dumps(value).encode()
    pieces = [body[start : start + length] for start in range(0, len(body), length)]
    assert told(*pieces, most_values=200, most_depth=50) is None


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    limits = Limits(body_bytes=1000, per_second=1000)
    with running_server(tmp_path_factory.mktemp("small") / "store", limits=limits) as running:
        yield running


def test_a_body_that_is_too_large_is_refused_and_one_in_pieces_is_read(small):
    status, message = small.refusal("/memories", {"messages": [{"content": "x" * 1000}]})
    assert (status, message) == (413, "The body is larger than 1,000 bytes. Send less at a time.")
    pieces = (b"x" * 100 for _ in range(20))
    assert small.client.post("/api/v2/memories", content=pieces).status_code == 413
    pieces = iter([b'{"messages": [{"con', b'tent": "tea"}]}'])
    assert json_post(small, "/api/v2/memories", pieces).status_code == 200


def connect(server):
    url = httpx.URL(server.url)
    return socket.create_connection((url.host, url.port), timeout=10)


def request_head(length, key=None):
    authorized = "" if key is None else f"Authorization: Bearer {key}\r\n"
    return (
        f"POST /api/v2/memories HTTP/1.1\r\nHost: localhost\r\n{authorized}"
        f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


def test_a_body_that_does_not_arrive_in_time_frees_its_place(serving):
    server = serving(limits=Limits(concurrency=1, body_seconds=0.2))
    with connect(server) as slow:
        slow.sendall(request_head(1000) + b"{")
        answered = slow.recv(65_536)
    assert answered.startswith(b"HTTP/1.1 408")
    assert b"The body took longer than 0.2 s to arrive." in answered
    assert server.post("/projects/list").status_code == 200


def test_a_request_whose_sender_hangs_up_is_not_acted_on(small):
    whole = b'{"messages": [{"content": "half"}]}'
    with connect(small) as connection:
        connection.sendall(request_head(len(whole) + 10) + whole)
    deadline = time.monotonic() + 10
    while 'status="499"' not in small.client.get("/metrics").text:
        assert time.monotonic() < deadline
    assert "half" not in json.dumps(small.answer("/memories/list"))


def test_half_of_a_character_is_refused(small):
    answered = json_post(small, "/api/v2/memories", rb'{"messages": [{"content": "\ud800"}]}')
    assert answered.status_code == 422
    assert "half of a surrogate pair" in answered.json()["detail"]["message"]


@pytest.mark.parametrize("text", ['"\\ud800"', '"\ud800"'])
def test_half_of_a_character_in_utf_16_is_refused(small, text):
    body = f'{{"project_id": "p", "org_id": "o", "description": {text}}}'
    encoded = body.encode("utf-16", "surrogatepass")
    assert json_post(small, "/api/v2/projects", encoded).status_code == 422


def test_more_requests_than_may_be_under_way_are_turned_away(serving):
    server = serving(limits=Limits(concurrency=2, threads=1))
    body = {"messages": [{"content": "x"}] * 50}
    with ThreadPoolExecutor(12) as threads:
        answers = list(threads.map(lambda _: server.post("/memories", body), range(12)))
    assert {answer.status_code for answer in answers} == {200, 503}
    refused = [answer.headers for answer in answers if answer.status_code == 503]
    assert refused[0]["Retry-After"] == "1"
    assert server.client.get("/health").status_code == 200


def test_too_many_requests_of_one_caller_are_told_when_to_come_back(serving):
    server = serving(limits=Limits(per_second=0.2))
    answers = [server.post("/projects/list") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 429]
    assert answers[1].headers["Retry-After"] == "5"
    other = server.service.keys.create().text
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


def test_options_that_no_server_can_be_run_with_are_refused():
    with pytest.raises(InvalidInput, match="lets nothing through"):
        Limits(threads=0)
    with pytest.raises(InvalidInput, match="must be an address or a network"):
        ServerOptions(store="x", trusted_proxies=("*",))


def json_post(server, path, body):
    headers = {"Content-Type": "application/json"}
    return server.client.post(path, content=body, headers=headers)


FIELDS = [
    ("/rerank", b'{"query": "x", "documents": '),
    ("/v1/embeddings", b'{"input": '),
    ("/api/v2/memories/search", b'{"query": "x", "types": '),
    ("/api/v2/memories/episodic/delete", b'{"episodic_ids": '),
    ("/api/v2/memories", b'{"messages": '),
]
MANY = (1_000_000, 413, 1_000, "The body holds more than 50,000 values.")


@pytest.mark.parametrize(("path", "field"), FIELDS)
@pytest.mark.parametrize(("count", "status", "most", "told"), [MANY, (40_001, 422, 3_000, "")])
def test_very_many_numbers_are_told_in_few_words(server, path, field, count, status, most, told):
    answered = json_post(server, path, field + b"[" + b"1," * (count - 1) + b"1]}")
    assert answered.status_code == status
    assert told in answered.text
    assert len(answered.content) < most


@pytest.mark.parametrize(
    ("trusted", "statuses"), [((), [200, 429, 429]), (("127.0.0.1",), [200, 200, 429])]
)
def test_the_address_that_is_claimed_is_believed_of_a_trusted_proxy_alone(
    serving, trusted, statuses
):
    server = serving(limits=Limits(per_second=0.2), trusted_proxies=trusted)
    claimed = [{"X-Forwarded-For": f"10.0.0.{number}"} for number in (1, 2, 2)]
    answers = [server.post("/projects/list", **headers) for headers in claimed]
    assert [answer.status_code for answer in answers] == statuses


def test_the_first_five_errors_are_told(server):
    body = {"messages": [{"content": 1, "producer": 2, "produced_for": 3, "role": 4}] * 2}
    body |= {"org_id": 5, "project_id": 6}
    status, message = server.refusal("/memories", body)
    assert status == 422
    assert message.count("\n- ") == 6
    assert message.endswith("- and 1 more")


def test_what_was_sent_is_echoed_in_part_and_long_names_of_any_script_too(server):
    status, message = server.refusal("/memories/search", {"query": "x", "filter": "y" * 9_999})
    assert (status, len(message) <= 1_000) == (422, True)
    said = {"content": "x", "metadata": {"😀" * 1_000 + str(n): 1 for n in range(10)}}
    status, message = server.refusal("/memories", {"messages": [said]})
    assert (status, len(message.encode()) < 1_000) == (422, True)


def test_rights_are_told_before_what_is_wrong_with_a_body(server):
    reader = server.service.keys.create(rights="read").text
    told = "This needs a key with the right to write; this one may read."
    assert server.refusal("/memories", {"messages": 7}, key=reader) == (403, told)


def test_one_key_leaves_places_to_the_others(serving):
    server = serving(limits=Limits(concurrency=4, body_seconds=30))
    half_sent = request_head(1000, server.service.keys.create().text) + b"{"
    with ExitStack() as waiting:
        connections = [waiting.enter_context(connect(server)) for _ in range(6)]
        for each in connections:
            each.sendall(half_sent)
        # The last three find the key's share taken.
        assert all(b" 503 " in each.recv(100) for each in connections[3:])
        assert server.post("/projects/list").status_code == 200


def test_a_connection_that_sends_no_head_is_closed(serving):
    server = serving(limits=Limits(header_seconds=0.2))
    for sent in (b"", b"POST /api/v2/memories HTTP/1.1\r\nHost: x\r\n"):
        with connect(server) as slow:
            slow.sendall(sent)
            assert slow.recv(100) == b""
