from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory.http_service import ServiceSettings, compute_backoff, read_retry_after

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120.0),
        (" 1.5 ", 1.5),
        ("0", 0.0),
        ("-5", 0.0),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0),
        ("Sun, 01 Mar 2026 12:00:30 -0000", 30.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_seconds_or_a_date(header, seconds):
    assert read_retry_after(header, now=NOON) == seconds


@given(st.text())
def test_no_header_makes_reading_it_fail(header):
    seconds = read_retry_after(header, now=NOON)

    assert seconds is None or seconds >= 0


@given(st.integers(0, 10_000), st.none() | st.text())
def test_a_wait_is_never_negative_and_never_longer_than_the_longest(attempt, header):
    settings = ServiceSettings(backoff=0.5, longest_wait=30.0)

    assert 0 <= compute_backoff(attempt, retry_after=header, settings=settings) <= 30.0
