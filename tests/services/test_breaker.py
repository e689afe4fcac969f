from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.services.stepped_clock import SteppedClock

from ekphory.http_service import CircuitBreaker


@pytest.fixture
def time():
    return SteppedClock()


@pytest.fixture
def breaker(time):
    return CircuitBreaker(failures=3, cool_down=10.0, now=time.clock.now)


def fail(breaker, times):
    for _ in range(times):
        breaker.failed()


def test_fewer_failures_than_the_limit_refuse_nothing(breaker):
    fail(breaker, 2)

    assert breaker.refusal() is None


def test_the_last_failure_opens_it_and_the_refusal_says_for_how_long(breaker, time):
    fail(breaker, 3)
    time.time += 4.0

    assert breaker.refusal() == 6.0


def test_a_success_between_starts_the_count_anew(breaker):
    fail(breaker, 2)
    breaker.succeeded()
    fail(breaker, 2)

    assert breaker.refusal() is None


def test_of_many_threads_one_makes_the_trial(breaker, time):
    fail(breaker, 3)
    time.time += 10.0

    with ThreadPoolExecutor(8) as threads:
        refusals = list(threads.map(lambda _: breaker.refusal(), range(50)))

    assert refusals.count(None) == 1


def test_a_trial_of_which_nothing_is_heard_is_followed_by_another(breaker, time):
    fail(breaker, 3)
    time.time += 10.0

    assert breaker.refusal() is None
    assert breaker.refusal() == 10.0
    time.time += 10.0
    assert breaker.refusal() is None


def test_no_failure_of_many_threads_is_lost(time):
    breaker = CircuitBreaker(failures=4_000, cool_down=10.0, now=time.clock.now)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: fail(breaker, 500), range(8)))

    assert breaker.refusal() == 10.0
