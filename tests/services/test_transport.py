import json
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.services.wire import Reply, says

from ekphory.errors import ServiceError
from ekphory.http_service import SYSTEM_CLOCK, ServiceRefusal, ServiceUnavailable


def test_the_body_is_sent_as_json_and_the_answers_json_comes_back(connect, wire):
    wire.replies = [says({"words": ["ü", 1]})]

    assert connect().post({"text": "ö"}) == {"words": ["ü", 1]}
    assert [request.path for request in wire.asked] == ["/v1/test"]
    assert wire.bodies == [{"text": "ö"}]


@pytest.mark.slow
def test_many_threads_get_each_its_own_answer(connect, wire):
    wire.answer = lambda request: says(request.body["number"])
    transport = connect()

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda number: transport.post({"number": number}), range(40)))

    assert answers == list(range(40))


def test_the_key_is_sent_with_its_scheme(connect, wire):
    connect().post({})

    assert wire.asked[0].headers["Authorization"] == "Bearer geheim-123"


def test_what_utf8_cannot_hold_is_sent_as_a_question_mark(connect, wire):
    connect().post({"text": "a\0b \ud800"})

    assert wire.bodies == [{"text": "a\0b ?"}]


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
def test_a_busy_service_is_asked_again(connect, wire, status):
    wire.replies = [Reply(status), Reply(status), says("at last")]

    assert connect().post({}) == "at last"


def test_a_service_that_stays_busy_is_unavailable_and_quoted(connect, wire):
    wire.replies = [Reply(503, b"overloaded")] * 3

    with pytest.raises(ServiceUnavailable, match="answered status 503: 'overloaded'"):
        connect().post({})
    assert len(wire.asked) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 501, 302])
def test_a_refusal_is_not_repeated(connect, wire, status):
    wire.replies = [Reply(status, b"no")]

    with pytest.raises(ServiceRefusal, match=f"status {status}: 'no'") as caught:
        connect().post({})

    assert (caught.value.status, caught.value.body, len(wire.asked)) == (status, b"no", 1)


def test_a_redirect_is_not_followed_for_it_would_carry_the_key_away(connect, wire):
    wire.replies = [Reply(307, headers={"Location": f"{wire.host}/elsewhere"})]

    with pytest.raises(ServiceRefusal, match="status 307"):
        connect().post({})
    assert [request.path for request in wire.asked] == ["/v1/test"]


def test_waits_double_with_some_jitter(connect, wire, time):
    wire.replies = [Reply(503), Reply(503), says({})]

    connect().post({})

    first, second = time.waits
    assert 1.0 <= first <= 1.25
    assert 2.0 <= second <= 2.5


def test_retry_after_goes_before_the_backoff(connect, wire, time):
    wire.replies = [Reply(429, headers={"Retry-After": "7"}), says({})]

    connect().post({})

    assert time.waits == [7.0]


def test_no_service_makes_us_wait_longer_than_the_longest_wait(connect, wire, time):
    wire.replies = [Reply(429, headers={"Retry-After": "3600"}), says({})]

    connect(longest_wait=20.0).post({})

    assert time.waits == [20.0]


def test_a_slow_answer_is_given_up(connect, wire):
    wire.replies = [Reply(delay=5.0)]

    with pytest.raises(ServiceUnavailable, match="ReadTimeout"):
        connect(timeout=0.05, retries=0).post({})


def test_a_dripping_answer_is_given_up(connect, wire, time):
    wire.replies = [Reply(body=b'{"a": "long answer"}', drip=0.02)]
    time.clock = SYSTEM_CLOCK

    with pytest.raises(ServiceUnavailable, match=r"did not finish its answer within 0\.1 s"):
        connect(timeout=0.1, retries=0).post({})


def test_an_answer_cut_off_on_the_way_is_asked_for_again(connect, wire):
    wire.replies = [Reply(body=b'{"a":', missing_bytes=9), says("whole")]

    assert connect().post({}) == "whole"


def test_an_answer_cut_off_every_time_is_unavailable(connect, wire):
    wire.replies = [Reply(body=b'{"a":', missing_bytes=9)] * 3

    with pytest.raises(ServiceUnavailable, match="could not be asked"):
        connect().post({})


def test_a_refused_connection_is_unavailable_and_says_what_to_check(connect):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"

    with pytest.raises(ServiceUnavailable, match=r"refused.*Check the URL, and that the service"):
        connect(url).post({})


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b'{"a": ', b"\xff\xfe", b"[" * 100_000, b"1" * 5_000]
)
def test_what_is_not_json_is_a_service_error(connect, wire, body):
    wire.replies = [Reply(body=body)]

    with pytest.raises(ServiceError, match="answered what is not JSON"):
        connect().post({})
    assert len(wire.asked) == 1


def test_a_long_answer_is_read_to_its_bound(connect, wire):
    wire.replies = [says("x" * 98), says("x" * 99)]
    transport = connect(most_bytes=100)

    assert transport.post({}) == "x" * 98
    with pytest.raises(ServiceError, match="answered more than 100 bytes"):
        transport.post({})


def test_a_long_error_is_bounded_too(connect, wire):
    wire.replies = [Reply(400, b"x" * 101)]

    with pytest.raises(ServiceError, match="answered more than 100 bytes"):
        connect(most_bytes=100).post({})


@pytest.mark.parametrize(
    "reply",
    [
        Reply(401, b"bad key geheim-123"),
        Reply(400, b"x" * 195 + b"geheim-123"),
        Reply(503, b"geheim-123"),
        Reply(200, b"geheim-123 is no key"),
        Reply(400, json.dumps({"error": "query=vertraulich, pass=wort"}).encode()),
    ],
)
def test_no_error_shows_the_key_or_what_the_url_hides(connect, wire, reply):
    wire.replies = [reply]
    url = wire.host.replace("//", "//user:wort@") + "/v1/test?token=vertraulich"
    transport = connect(url, retries=0)

    with pytest.raises(ServiceError) as caught:
        transport.post({})

    shown = f"{caught.value!s} {caught.value!r} {transport._service!r}"
    assert not [secret for secret in ("gehei", "wort", "vertraulich") if secret in shown]
