"""Ages in words."""

from datetime import UTC, datetime, timedelta

import pytest

from ekphory.prompting.block import format_age

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("age", "words"),
    [
        (timedelta(0), "just now"),
        (timedelta(seconds=59), "just now"),
        (timedelta(minutes=1), "1 minute ago"),
        (timedelta(hours=5, minutes=59), "5 hours ago"),
        (timedelta(days=1), "1 day ago"),
        (timedelta(days=13), "1 week ago"),
        (timedelta(days=45), "1 month ago"),
        (timedelta(days=800), "2 years ago"),
        (timedelta(days=-3), "in 3 days"),
        (timedelta(seconds=-20), "just now"),
    ],
)
def test_an_age_counts_its_largest_unit(age, words):
    assert format_age(NOW - age, NOW) == words
