"""JSON over HTTP to a model service: addresses, errors, waits, the circuit breaker."""

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from time import sleep
from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import read_cases
from tests.services.wire import Reply, running_service, says

from ekphory.errors import InvalidInput, ServiceError
from ekphory.http_service import (
    CircuitBreaker,
    JsonTransport,
    Service,
    ServiceRefusal,
    ServiceSettings,
    ServiceUnavailable,
    complete_url,
    compute_backoff,
    read_retry_after,
)

CASES = read_cases(__file__)


class SteppedClock:
    """Stands for the module `time`."""

    def __init__(self):
        self.time = 0.0
        self.waits = []

    def monotonic(self):
        return self.time

    def sleep(self, seconds):
        self.waits.append(seconds)
        self.time += seconds


KEY = "geheim-123"


@pytest.fixture
def wire():
    with running_service() as service:
        yield service


@pytest.fixture
def time(monkeypatch):
    stepped = SteppedClock()
    monkeypatch.setattr("ekphory.http_service.time", stepped)
    return stepped


@pytest.fixture
def connect(wire, time):
    """Connects to the service; `url` and settings may be others."""
    transports = []

    def connect(url=None, **settings):
        service = Service(
            kind="test service", url=url or f"{wire.host}/v1/test", model="m", api_key=KEY
        )
        chosen = ServiceSettings(**{"timeout": 5.0, "retries": 2, "backoff": 1.0} | settings)
        transports.append(JsonTransport(service, settings=chosen))
        return transports[-1]

    yield connect
    for transport in transports:
        transport.close()


@pytest.mark.parametrize(
    ("url", "completed"), CASES["a host a base and an endpoint become the endpoint"]
)
def test_a_host_a_base_and_an_endpoint_become_the_endpoint(url, completed):
    assert complete_url(url, prefix="/v1", operation="/rerank") == completed


@pytest.mark.parametrize(
    "url",
    [
        *("", "localhost:80", "ftp://host/v1", "http://", "http://:80/", "http://host:abc", None),
        *("http://host:99999", "http://[", " http://host", "http://host:0", "http://" + "a" * 64),
        "ftp://user:geheim@host/v1?key=geheim",
    ],
)
def test_what_is_no_url_is_refused_without_its_password_or_query(url):
    with pytest.raises(InvalidInput, match=r"url=.*not an http") as caught:
        complete_url(url, prefix="/v1", operation="/rerank")
    assert "geheim" not in f"{caught.value} {caught.value.value}"


@given(st.text())
def test_whatever_follows_http_is_refused_or_a_url_that_can_be_called(text):
    try:
        completed = complete_url(f"http://{text}", prefix="/v1", operation="/rerank")
    except InvalidInput:
        return
    assert httpx.URL(completed).host.encode("idna")
    assert urlsplit(completed).path.endswith("/rerank")


def test_an_error_says_which_service_where_which_model_what_and_what_to_do():
    service = Service(kind="chat service", url="https://a:b@host:81/v1?k=1", model="small")

    assert str(service.error("broke", "Mend it.")) == (
        "The chat service at https://host:81/v1 (model 'small') broke. Mend it."
    )
    assert Service(kind="test", url="https://host").describe() == "test at https://host"


@pytest.mark.parametrize("key", ["ge\nheim", "geheim ", "gehüm-ü", "geheim\0"])
def test_a_key_that_no_header_can_carry_is_refused_and_none_is_shown(key):
    with pytest.raises(InvalidInput, match="api_key") as caught:
        Service(kind="chat service", url="https://host", api_key=key)
    assert "ge" not in caught.value.value
    assert "geheim" not in repr(Service(kind="k", url="https://u:geheim@h", api_key="geheim"))


@pytest.mark.parametrize(
    ("name", "value"),
    [("timeout", 0), ("most_bytes", 0), ("failures", 0), ("retries", -1), ("cool_down", -1.0)],
)
def test_settings_that_no_service_can_be_called_with_are_refused(name, value):
    with pytest.raises(InvalidInput, match=name):
        ServiceSettings(**{name: value})


NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        *(("120", 120.0), (" 1.5 ", 1.5), ("0", 0.0), ("-5", 0.0)),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0),
        ("Sun, 01 Mar 2026 12:00:30 -0000", 30.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        *((odd, None) for odd in ("soon", "nan", "inf", "", None)),
    ],
)
def test_retry_after_is_seconds_or_a_date(header, seconds):
    assert read_retry_after(header, now=NOON) == seconds


@given(st.integers(0, 10_000), st.none() | st.text())
def test_a_wait_is_never_negative_and_never_longer_than_the_longest(attempt, header):
    settings = ServiceSettings(backoff=0.5, longest_wait=30.0)

    assert 0 <= compute_backoff(attempt, retry_after=header, settings=settings) <= 30.0


def test_the_body_is_sent_as_json_and_the_answers_json_comes_back(connect, wire):
    wire.replies = [says({"words": ["ü", 1]})]

    assert connect().post({"text": "ö", "half": "a\0b \ud800"}) == {"words": ["ü", 1]}
    assert [request.path for request in wire.asked] == ["/v1/test"]
    assert wire.asked[0].headers["Authorization"] == "Bearer geheim-123"
    # What UTF-8 cannot hold is sent as a question mark.
    assert wire.bodies == [{"text": "ö", "half": "a\0b ?"}]


@pytest.mark.slow
def test_many_threads_get_each_its_own_answer(connect, wire):
    wire.answer = lambda request: says(request.body["number"])
    transport = connect()

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda number: transport.post({"number": number}), range(40)))

    assert answers == list(range(40))


def answer_once_a_connection(listener):
    listener.settimeout(8)
    for _ in range(2):
        connection, _ = listener.accept()
        with connection:
            asked = b""
            while not asked.endswith(b"\r\n\r\n{}"):
                asked += connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            connection.recv(65_536)


@pytest.mark.slow
def test_a_connection_that_a_service_is_about_to_close_is_not_used_again():
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as thread:
        thread.submit(answer_once_a_connection, listener)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1/test"
        service = Service(kind="test service", url=url, model="m", api_key=KEY)
        transport = JsonTransport(service, settings=ServiceSettings(timeout=5.0, retries=0))
        assert transport.post({}) == {}
        sleep(4.5)  # of the five seconds after which uvicorn closes one
        assert transport.post({}) == {}
        transport.close()


BUSY = [Reply(status) for status in (408, 429, 500, 502, 503, 504, 529)]


@pytest.mark.parametrize("busy", [*BUSY, Reply(body=b'{"a":', missing_bytes=9)])
def test_a_busy_service_is_asked_again_after_waits_that_double_with_some_jitter(
    connect, wire, time, busy
):
    wire.replies = [busy, busy, says("at last")]

    assert connect().post({}) == "at last"
    first, second = time.waits
    assert 1.0 <= first <= 1.25
    assert 2.0 <= second <= 2.5


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 501, 302, 307])
def test_a_refusal_is_not_repeated_nor_a_redirect_followed_with_the_key(failing, wire, status):
    wire.replies = [Reply(status, b"no", {"Location": f"{wire.host}/elsewhere"})]
    refusal = failing(f"status {status}: 'no'", error=ServiceRefusal)
    assert (refusal.status, refusal.body, len(wire.asked)) == (status, b"no", 1)


@pytest.fixture
def failing(connect):
    """Ask what must fail as unavailable, in such words."""

    def fail(said, *url, error=ServiceUnavailable, **settings):
        with pytest.raises(error, match=said) as caught:
            connect(*url, **settings).post({})
        return caught.value

    return fail


def test_a_service_that_stays_busy_or_cannot_be_reached_is_unavailable(failing, wire, monkeypatch):
    wire.replies = [Reply(503, b"overloaded")] * 3
    failing("answered status 503: 'overloaded'")
    assert len(wire.asked) == 3
    # A refused connection says what to check.
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    failing(r"refused.*Check the URL, and that the service", url)
    # A slow answer is given up, and so is one that drips.
    wire.replies = [Reply(delay=5.0), Reply(body=b'{"a": "long answer"}', drip=0.02)]
    failing("ReadTimeout", timeout=0.05, retries=0)
    monkeypatch.undo()  # the clock is the machine's
    failing(r"did not finish its answer within 0\.1 s", timeout=0.1, retries=0)


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b'{"a": ', b"\xff\xfe", b"[" * 100_000, b"1" * 5_000]
)
def test_what_is_not_json_is_a_service_error(failing, wire, body):
    wire.replies = [Reply(body=body)]
    failing("answered what is not JSON", error=ServiceError)
    assert len(wire.asked) == 1


def test_a_long_answer_is_read_to_its_bound(connect, wire):
    wire.replies = [says("x" * 98), says("x" * 99), Reply(400, b"x" * 101)]
    transport = connect(most_bytes=100)
    assert transport.post({}) == "x" * 98
    for _ in range(2):
        with pytest.raises(ServiceError, match="answered more than 100 bytes"):
            transport.post({})


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


@pytest.mark.parametrize(("asked", "waited"), [("7", 7.0), ("3600", 20.0)])
def test_retry_after_goes_before_the_backoff_up_to_the_longest_wait(
    connect, wire, time, asked, waited
):
    wire.replies = [Reply(429, headers={"Retry-After": asked}), says({})]
    connect(longest_wait=20.0).post({})
    assert time.waits == [waited]


def test_of_many_threads_no_failure_is_lost_and_one_makes_each_trial(time):
    breaker = CircuitBreaker(failures=4_000, cool_down=10.0)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: breaker.note_failure(), range(4_000)))
        assert breaker.wait() == 10.0
        # A trial of which nothing is heard is followed by another.
        for _ in range(2):
            time.time += 10.0
            waits = list(threads.map(lambda _: breaker.wait(), range(50)))
            assert sorted(waits) == [0.0] + [10.0] * 49


BREAKING = {"retries": 0, "failures": 2, "cool_down": 30.0}


@pytest.mark.parametrize(
    ("reply", "problem"), [(Reply(500), "status 500"), (Reply(body=b"<html>"), "not JSON")]
)
def test_after_failures_in_a_row_the_service_is_left_alone_until_a_trial_succeeds(
    connect, wire, time, reply, problem
):
    transport = connect(**BREAKING)
    wire.replies = [reply, says({}), reply, reply, says("back")]
    for said in (problem, None, problem, problem):
        if said is None:
            transport.post({})
            continue
        with pytest.raises(ServiceError, match=said):
            transport.post({})
    time.time += 20.0
    with pytest.raises(
        ServiceUnavailable, match=r"left alone for now\. It is tried again in 10\.0 s"
    ) as raised:
        transport.post({})
    assert not raised.value.sent
    assert len(wire.asked) == 4
    time.time += 10.0
    assert [transport.post({}), transport.post({})] == ["back", {}]


@pytest.mark.parametrize(
    ("settings", "replies", "times"),
    [
        # The service works, and refuses.
        (BREAKING, [Reply(400)] * 5, 5),
        # Repeats of one call count once.
        (BREAKING | {"retries": 3}, [Reply(500)] * 4, 1),
    ],
)
def test_what_does_not_count_as_failures_in_a_row(connect, wire, settings, replies, times):
    transport = connect(**settings)
    wire.replies = [*replies]
    for _ in range(times):
        with pytest.raises(ServiceError, match="status"):
            transport.post({})

    assert transport.post({}) == {}
