"""Weekdays and weekends; it is Wednesday, 18 November 2026."""

from datetime import UTC, datetime

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
        ("the last two weekends", "2026-11-07/2026-11-16"),
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("on Friday, May 1", "2026-05-01/2026-05-02"),
        ("Fri, May 1", "2026-05-01/2026-05-02"),
        ("on May 1st (a Friday)", "2026-05-01/2026-05-02"),
        ("last Monday, 9 November", "2026-11-09/2026-11-10"),
        ("on Monday, 2026-11-09", "2026-11-09/2026-11-10"),
        ("on Friday the 6th", "2026-11-06/2026-11-07"),
        ("on Friday the 6th of March", "2026-03-06/2026-03-07"),
        ("on Friday the 9th of last month", "2026-10-09/2026-10-10"),
        ("the day before Friday, May 1", "2026-04-30/2026-05-01"),
        ("from Monday, May 4 to Friday, May 8", "2026-05-04/2026-05-09"),
        ("between Monday the 2nd and Friday the 6th", "2026-11-02/2026-11-07"),
    ],
)
def test_a_weekday_beside_a_date_only_says_it_once_more(text, expected):
    assert times(text) == [expected]
    assert reading(text).remaining == ""


def test_a_weekday_in_brackets_is_part_of_the_date():
    (found,) = reading("on May 1st (a Friday) in Lisbon").references
    assert found.text == "May 1st (a Friday)"


def test_the_date_is_kept_where_it_was_another_weekday():
    assert times("on Wednesday, May 1") == ["2026-05-01/2026-05-02"]


def test_a_weekday_and_a_date_can_be_two_days():
    assert times("on Monday and May 1") == ["2026-11-16/2026-11-17", "2026-05-01/2026-05-02"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("next Monday the 20th", "2026-07-20/2026-07-21"),
        ("next Friday the 24th", "2026-07-24/2026-07-25"),
        ("this coming Monday, the 3rd", "2026-08-03/2026-08-04"),
    ],
)
def test_a_date_beside_the_next_weekday_lies_ahead(text, expected):
    assert times(text, now=datetime(2026, 7, 15, tzinfo=UTC)) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Sunday, 2nd or 3rd place?", "2026-11-15/2026-11-16"),
        ("Sunday, 2nd prize", "2026-11-15/2026-11-16"),
        ("on Friday, 2nd meeting", "2026-11-13/2026-11-14"),
        ("Monday 1st thing", "2026-11-16/2026-11-17"),
    ],
)
def test_a_rank_after_a_weekday_is_no_date(text, expected):
    assert times(text) == [expected]


@pytest.mark.parametrize("text", ["on Tuesday, 10th", "on Tuesday the 10th we met"])
def test_a_day_of_the_month_after_a_weekday_is_a_date(text):
    assert times(text) == ["2026-11-10/2026-11-11"]
