"""Weekdays and weekends; it is Wednesday, 18 November 2026."""

import pytest

from temporal.readings import reading, shown, times


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("last Tuesday", "2026-11-17/2026-11-18"),
        ("last Wednesday", "2026-11-11/2026-11-12"),
        ("last Thursday", "2026-11-12/2026-11-13"),
        ("on Tuesday", "2026-11-17/2026-11-18"),
        ("last Fri.", "2026-11-13/2026-11-14"),
        ("this Friday", "2026-11-20/2026-11-21"),
        ("next Friday", "2026-11-20/2026-11-21"),
        ("two Fridays ago", "2026-11-06/2026-11-07"),
        ("the Friday before last", "2026-11-06/2026-11-07"),
        ("on Tuesday last week", "2026-11-10/2026-11-11"),
        ("Tuesday morning", "2026-11-17/2026-11-17T12:00"),
        ("last weekend", "2026-11-14/2026-11-16"),
        ("this past weekend", "2026-11-14/2026-11-16"),
        ("two weekends ago", "2026-11-07/2026-11-09"),
        ("the Sunday before October 25, 2022", "2022-10-23/2022-10-24"),
        ("the first Friday of October", "2026-10-02/2026-10-03"),
    ],
)
def test_a_weekday_is_the_last_one_before_today(text, expected):
    assert times(text) == [expected]


def test_where_that_day_is_empty_the_week_before_may_be_meant():
    (found,) = reading("last Tuesday").references
    assert shown(found.wider) == "2026-11-10/2026-11-11"


@pytest.mark.parametrize("text", ["She works on Mondays", "every Friday", "the sun is out"])
def test_a_weekday_that_comes_again_and_again_is_no_time(text):
    assert times(text) == []
