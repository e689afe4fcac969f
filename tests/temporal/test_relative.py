"""Times counted from now; it is Wednesday, 18 November 2026, 15:30."""

import pytest

from temporal.readings import reading, shown, times


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("today", "2026-11-18/2026-11-19"),
        ("yesterday", "2026-11-17/2026-11-18"),
        ("the day before yesterday", "2026-11-16/2026-11-17"),
        ("3 days ago", "2026-11-15/2026-11-16"),
        ("three days ago", "2026-11-15/2026-11-16"),
        ("two weeks ago", "2026-11-01/2026-11-08"),
        ("2 months ago", "2026-09-01/2026-10-01"),
        ("a month ago", "2026-10-01/2026-11-01"),
        ("two years ago", "2024-01-01/2025-01-01"),
        ("an hour ago", "2026-11-18T14:00/2026-11-18T15:00"),
        ("two or three weeks ago", "2026-10-25/2026-11-08"),
        ("this month", "2026-11-01/2026-12-01"),
        ("last month", "2026-10-01/2026-11-01"),
        ("last week", "2026-11-09/2026-11-16"),
        ("this week", "2026-11-16/2026-11-23"),
        ("the week before last", "2026-11-02/2026-11-09"),
        ("the week before", "2026-11-09/2026-11-16"),
        ("last year", "2025-01-01/2026-01-01"),
        ("this morning", "2026-11-18/2026-11-18T12:00"),
        ("last night", "2026-11-17T18:00/2026-11-18T06:00"),
        ("yesterday evening", "2026-11-17T17:00/2026-11-18"),
        ("earlier this week", "2026-11-16/2026-11-18"),
        ("so far this year", "2026-01-01/2026-11-18T15:30"),
        ("more than a year ago", "../2025-11-18T15:30"),
        ("less than 2 days ago", "2026-11-16T15:30/2026-11-18T15:30"),
    ],
)
def test_a_time_is_counted_from_now(text, expected):
    assert times(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "over the last week",
        "in the past week",
        "over this last week",
        "over this previous week",
        "over the last 7 days",
        "in the last seven days",
        "during the past seven days",
    ],
)
def test_a_time_up_to_now_begins_with_a_whole_day(text):
    assert times(text) == ["2026-11-11/2026-11-18T15:30"]


def test_days_that_were_counted_in_full_hours_may_be_those_of_the_day_before():
    (found,) = reading("What did we discuss 3 days ago?").references
    assert shown(found.wider) == "2026-11-14/2026-11-16"


def test_earlier_today_leaves_out_the_session_that_is_going_on():
    (found,) = reading("What did we discuss earlier today?").references
    assert (shown(found.interval), found.before_ongoing) == (
        "2026-11-18/2026-11-18T15:30",
        True,
    )


@pytest.mark.parametrize(
    "text",
    [
        "How many times a week does Mara run?",
        "She stayed for three weeks",
        "What does she drink in the morning?",
        "twice a day",
        "Which day suits her?",
        "a six month old puppy",
    ],
)
def test_a_duration_or_a_habit_is_no_time(text):
    assert times(text) == []


def test_days_begin_where_the_user_is():
    assert times("yesterday", timezone="Asia/Tokyo") == ["2026-11-17T15:00/2026-11-18T15:00"]
