"""The time of the clock beside a day; it is Wednesday, 18 November 2026, 15:30."""

from datetime import UTC, datetime

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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("until midnight yesterday", "../2026-11-18"),
        ("before midnight yesterday", "2026-11-17/2026-11-18"),
        ("by midnight yesterday", "2026-11-17/2026-11-18"),
        ("yesterday before midnight", "2026-11-17/2026-11-18"),
        ("yesterday until midnight", "2026-11-17/2026-11-18"),
        ("between 10pm and midnight yesterday", "2026-11-17T22:00/2026-11-18"),
        ("between 10 and midnight yesterday", "2026-11-17T22:00/2026-11-18"),
        ("yesterday from 10pm to 12am", "2026-11-17T22:00/2026-11-18"),
        ("yesterday evening before midnight", "2026-11-17T17:00/2026-11-18"),
        ("last night until midnight", "2026-11-17T18:00/2026-11-18"),
        ("this morning until noon", "2026-11-18/2026-11-18T12:00"),
    ],
)
def test_midnight_as_an_end_is_the_end_of_the_day(text, expected):
    assert times(text) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("yesterday at midnight", "2026-11-17/2026-11-17T01:00"),
        ("from midnight to 2am yesterday", "2026-11-17/2026-11-17T02:00"),
        ("last night after midnight", "2026-11-18/2026-11-18T06:00"),
    ],
)
def test_midnight_as_a_beginning_is_the_beginning_of_the_day(text, expected):
    assert times(text) == [expected]


@pytest.mark.parametrize("text", ["yesterday at 2am", "yesterday between 2am and 3am"])
def test_an_hour_that_the_clocks_skip_leaves_the_day_whole(text):
    now = datetime(2026, 3, 30, 12, tzinfo=UTC)
    found = times(text, now=now, timezone="Europe/Berlin")
    assert found == ["2026-03-28T23:00/2026-03-29T22:00"]


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("final score 3:10 yesterday", "final score 3 10"),
        ("Psalm 23:10 yesterday", "Psalm 23 10"),
        ("Psalm 23:10 on Tuesday", "Psalm 23 10"),
        ("the results 3:10 and 4:10 yesterday", "results 3 10 4 10"),
    ],
)
def test_bare_numbers_before_a_day_are_no_time_of_the_clock(text, content):
    assert times(text) == ["2026-11-17/2026-11-18"]
    assert reading(text).remaining == content


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("since 15:00 yesterday", "2026-11-17T15:00/.."),
        ("until 15:00 yesterday", "../2026-11-17T15:00"),
        ("from 9:00 on Monday to 17:00 on Tuesday", "2026-11-16T09:00/2026-11-17T18:00"),
        ("between 15:00 yesterday and 9:00 today", "2026-11-17T15:00/2026-11-18T10:00"),
    ],
)
def test_a_word_of_direction_makes_them_one(text, expected):
    assert times(text) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("yesterday after 5:00", "2026-11-17T17:00/2026-11-18"),
        ("yesterday after 05:00", "2026-11-17T05:00/2026-11-18"),
        ("yesterday after 0:30", "2026-11-17T00:30/2026-11-18"),
        ("yesterday after 7:00", "2026-11-17T07:00/2026-11-18"),
        ("yesterday between 3:00 and 17:00", "2026-11-17T03:00/2026-11-17T17:00"),
        ("yesterday from 11:30 to 1:30", "2026-11-17T11:30/2026-11-17T13:30"),
        ("between 9:00 and 5:00 yesterday", "2026-11-17T09:00/2026-11-17T17:00"),
    ],
)
def test_a_small_hour_without_a_zero_is_in_the_afternoon(text, expected):
    assert times(text) == [expected]


@pytest.mark.parametrize("text", ["from 3pm yesterday", "yesterday from 3pm"])
def test_from_an_hour_on_goes_to_the_end_of_the_day(text):
    assert times(text) == ["2026-11-17T15:00/2026-11-18"]


@pytest.mark.parametrize("text", ["yesterday from 6 to 11", "between 6:00 and 11:00 yesterday"])
def test_hours_of_a_morning_or_an_evening_leave_the_day_whole(text):
    assert times(text) == ["2026-11-17/2026-11-18"]


def test_a_part_of_the_day_tells_which_hours_are_meant():
    assert times("this morning from 6 to 11") == ["2026-11-18T06:00/2026-11-18T11:00"]
    assert times("yesterday from 6 to 11pm") == ["2026-11-17T18:00/2026-11-17T23:00"]
    assert times("yesterday from 11 to 9") == ["2026-11-17T11:00/2026-11-17T21:00"]
