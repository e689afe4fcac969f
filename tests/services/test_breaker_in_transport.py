"""The circuit breaker as a caller of a transport meets it."""

import pytest
from tests.services.wire import Reply, says

from ekphory.errors import ServiceError

SETTINGS = {"retries": 0, "failures": 2, "cool_down": 30.0}


@pytest.fixture
def open_circuit(connect, wire):
    """A transport whose service has just failed twice."""
    transport = connect(**SETTINGS)
    wire.replies = [Reply(500), Reply(500)]
    for _ in range(2):
        with pytest.raises(ServiceError, match="status 500"):
            transport.post({})
    wire.asked.clear()
    return transport


def test_after_failures_in_a_row_the_service_is_left_alone(open_circuit, wire):
    with pytest.raises(ServiceError, match=r"left alone for now\. It is tried again in 30\.0 s"):
        open_circuit.post({})
    assert wire.asked == []


def test_after_the_cool_down_it_is_asked_again(open_circuit, wire, time):
    time.time += 30.0
    wire.replies = [says("back")]

    assert open_circuit.post({}) == "back"
    assert open_circuit.post({}) == {}


def test_a_trial_that_fails_begins_another_cool_down(open_circuit, wire, time):
    time.time += 30.0
    wire.replies = [Reply(500)]
    with pytest.raises(ServiceError, match="status 500"):
        open_circuit.post({})

    with pytest.raises(ServiceError, match="left alone"):
        open_circuit.post({})


def test_what_is_not_json_counts_as_a_failure(connect, wire):
    transport = connect(**SETTINGS)
    wire.replies = [Reply(body=b"<html>"), Reply(body=b"<html>")]
    for _ in range(2):
        with pytest.raises(ServiceError, match="not JSON"):
            transport.post({})

    with pytest.raises(ServiceError, match="left alone"):
        transport.post({})


def test_refusals_do_not_count_for_the_service_works(connect, wire):
    transport = connect(**SETTINGS)
    wire.replies = [Reply(400)] * 5
    for _ in range(5):
        with pytest.raises(ServiceError, match="status 400"):
            transport.post({})

    assert transport.post({}) == {}


def test_repeats_of_one_call_count_once(connect, wire):
    transport = connect(**SETTINGS | {"retries": 3})
    wire.replies = [Reply(500)] * 4
    with pytest.raises(ServiceError, match="status 500"):
        transport.post({})

    assert transport.post({}) == {}
