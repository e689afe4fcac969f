"""The time of the clock beside a day; it is Wednesday, 18 November 2026, 15:30."""

import pytest

from temporal.readings import reading, shown, times


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("yesterday at 3pm", "2026-11-17T15:00/2026-11-17T16:00"),
        ("at 3pm yesterday", "2026-11-17T15:00/2026-11-17T16:00"),
        ("yesterday at 15:00", "2026-11-17T15:00/2026-11-17T16:00"),
        ("at 3 p.m. on Tuesday", "2026-11-17T15:00/2026-11-17T16:00"),
        ("at noon on May 8", "2026-05-08T12:00/2026-05-08T13:00"),
        ("this morning at 9am", "2026-11-18T09:00/2026-11-18T10:00"),
        ("at 9 this morning", "2026-11-18T09:00/2026-11-18T10:00"),
        ("yesterday evening at 8", "2026-11-17T20:00/2026-11-17T21:00"),
        ("last night at 1am", "2026-11-18T01:00/2026-11-18T02:00"),
        ("at 3 o'clock yesterday", "2026-11-17T15:00/2026-11-17T16:00"),
    ],
)
def test_an_hour_narrows_a_day_to_that_hour(text, expected):
    assert times(text) == [expected]


def test_a_minute_is_in_the_middle_of_an_hour():
    assert times("at 3:15pm yesterday") == ["2026-11-17T14:45/2026-11-17T15:45"]


def test_around_an_hour_is_half_an_hour_more_on_both_sides():
    assert times("around 3pm yesterday") == ["2026-11-17T14:30/2026-11-17T16:30"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("between 2pm and 4pm yesterday", "2026-11-17T14:00/2026-11-17T16:00"),
        ("yesterday between 2 and 4", "2026-11-17T14:00/2026-11-17T16:00"),
        ("from 2 to 4pm on May 8", "2026-05-08T14:00/2026-05-08T16:00"),
        ("between 11 and 1pm yesterday", "2026-11-17T11:00/2026-11-17T13:00"),
        ("between 11pm and 1am last night", "2026-11-17T23:00/2026-11-18T01:00"),
        ("before noon yesterday", "2026-11-17/2026-11-17T12:00"),
        ("yesterday after 3pm", "2026-11-17T15:00/2026-11-18"),
        ("since 3pm yesterday", "2026-11-17T15:00/.."),
        ("from 2pm yesterday until 4pm today", "2026-11-17T14:00/2026-11-18T17:00"),
    ],
)
def test_hours_open_and_close_a_time(text, expected):
    assert times(text) == [expected]


def test_an_hour_is_no_content_and_an_empty_one_gives_way_to_the_day():
    found = reading("What did we discuss at 3pm yesterday?")
    (yesterday,) = found.references
    assert (found.remaining, shown(yesterday.wider)) == ("", "2026-11-17/2026-11-18")


@pytest.mark.parametrize("text", ["Who won 3-2 yesterday?", "this morning at 9pm"])
def test_what_is_no_hour_of_that_day_leaves_it_whole(text):
    (found,) = reading(text).references
    assert found.text in ("yesterday", "this morning")
