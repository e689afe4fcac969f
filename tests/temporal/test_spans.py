"""Times made of two, and words that narrow, move or open a time; it is 18 November 2026."""

import pytest

from temporal.readings import times


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("between May 8th and June 9th", "2026-05-08/2026-06-10"),
        ("from May 8th to June 9th", "2026-05-08/2026-06-10"),
        ("from May 8 through 12", "2026-05-08/2026-05-13"),
        ("May 8-12", "2026-05-08/2026-05-13"),
        ("8-12 May 2023", "2023-05-08/2023-05-13"),
        ("between 3 and 5 May", "2026-05-03/2026-05-06"),
        ("December 30th to January 2nd", "2025-12-30/2026-01-03"),
        ("from November 2025 to February 2026", "2025-11-01/2026-03-01"),
        ("between March and May", "2026-03-01/2026-06-01"),
        ("from Monday to Wednesday", "2026-11-09/2026-11-12"),
        ("between Monday and Wednesday last week", "2026-11-09/2026-11-12"),
        ("between 2019 and 2021", "2019-01-01/2022-01-01"),
    ],
)
def test_two_times_make_a_span_with_both_ends_inside(text, expected):
    assert times(text) == [expected]


def test_two_times_side_by_side_are_two():
    assert times("on May 8th and June 9th") == ["2026-05-08/2026-05-09", "2026-06-09/2026-06-10"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("yesterday and the day before", "2026-11-16/2026-11-18"),
        ("yesterday or the day before that", "2026-11-16/2026-11-18"),
        ("last month and the month before", "2026-09-01/2026-11-01"),
        ("May 8th and the day after", "2026-05-08/2026-05-10"),
        ("not yesterday, but the day before", "2026-11-16/2026-11-17"),
        ("yesterday, but rather the day before", "2026-11-16/2026-11-17"),
    ],
)
def test_a_time_and_the_one_beside_it_are_both_meant_unless_one_corrects_the_other(text, expected):
    assert times(text) == [expected]


def test_the_day_before_yesterday_is_not_the_day_before_that():
    assert times("yesterday and the day before yesterday") == [
        "2026-11-17/2026-11-18",
        "2026-11-16/2026-11-17",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in early May", "2026-05-01/2026-05-11"),
        ("in late October 2026", "2026-10-21/2026-11-01"),
        ("the first half of October", "2026-10-01/2026-10-16"),
        ("the first week of May 2026", "2026-05-01/2026-05-08"),
        ("the last day of last month", "2026-10-31/2026-11-01"),
        ("the week of May 8th", "2026-05-04/2026-05-11"),
        ("the weekend before May 8, 2026", "2026-05-02/2026-05-04"),
        ("two days before May 8", "2026-05-06/2026-05-07"),
        ("the week after May 8", "2026-05-09/2026-05-16"),
        ("the week before last Tuesday", "2026-11-10/2026-11-17"),
        ("the day before last Tuesday", "2026-11-16/2026-11-17"),
        ("the Friday before last Tuesday", "2026-11-13/2026-11-14"),
        ("the week before last month", "2026-09-24/2026-10-01"),
        ("the year before last summer", "2025-06-01/2026-06-01"),
        ("on the evening of May 8", "2026-05-08T17:00/2026-05-09"),
        ("around May 8", "2026-05-05/2026-05-12"),
    ],
)
def test_words_around_a_time_narrow_and_move_it(text, expected):
    assert times(text) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("since May 8", "2026-05-08/.."),
        ("from October onwards", "2026-10-01/.."),
        ("after May 8", "2026-05-09/.."),
        ("before May 8", "../2026-05-08"),
        ("until May 8", "../2026-05-08"),
    ],
)
def test_a_time_can_be_open_to_one_side(text, expected):
    assert times(text) == [expected]
