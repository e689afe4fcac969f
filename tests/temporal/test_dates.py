"""Dates of the calendar, whole and in part; it is Wednesday, 18 November 2026."""

import pytest

from temporal.readings import times


@pytest.mark.parametrize(
    "text",
    [
        "What was decided on 2026-05-08?",
        "on 8.5.2026",
        "on 5/8/2026",
        "on May 8, 2026",
        "on May 8th 2026",
        "on the 8th of May, 2026",
        "on 8 May 2026",
        "on May the eighth, 2026",
        "What happened May 8th?",
        "on the eighth of May",
    ],
)
def test_a_day_can_be_written_in_many_ways(text):
    assert times(text) == ["2026-05-08/2026-05-09"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("on November 17th", "2026-11-17/2026-11-18"),
        ("on November 18th", "2026-11-18/2026-11-19"),
        ("on November 19th", "2025-11-19/2025-11-20"),
        ("on February 29", "2024-02-29/2024-03-01"),
        ("in May", "2026-05-01/2026-06-01"),
        ("in November", "2026-11-01/2026-12-01"),
        ("in December", "2025-12-01/2026-01-01"),
        ("on the 3rd", "2026-11-03/2026-11-04"),
        ("on the 20th", "2026-10-20/2026-10-21"),
    ],
)
def test_a_date_in_part_is_the_newest_that_has_begun(text, expected):
    assert times(text) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in May 2023", "2023-05-01/2023-06-01"),
        ("in May of last year", "2025-05-01/2025-06-01"),
        ("last year in May", "2025-05-01/2025-06-01"),
        ("May last year", "2025-05-01/2025-06-01"),
        ("last year, May", "2025-05-01/2025-06-01"),
        ("as it may this year", "2026-01-01/2027-01-01"),
        ("last May", "2026-05-01/2026-06-01"),
        ("last November", "2025-11-01/2025-12-01"),
        ("2023-05", "2023-05-01/2023-06-01"),
        ("in 2023", "2023-01-01/2024-01-01"),
        ("in '23", "2023-01-01/2024-01-01"),
        ("in '23 I moved", "2023-01-01/2024-01-01"),
        ("in May in '23", "2023-05-01/2023-06-01"),
        ("the summer of '22", "2022-06-01/2022-09-01"),
        ("between '19 and '21", "2019-01-01/2022-01-01"),
        ("in the 1990s", "1990-01-01/2000-01-01"),
        ("in Q3 2025", "2025-07-01/2025-10-01"),
        ("in the third quarter", "2026-07-01/2026-10-01"),
        ("in week 2 of 2026", "2026-01-05/2026-01-12"),
    ],
)
def test_months_quarters_weeks_and_years(text, expected):
    assert times(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "May I ask what April said?",
        "Did June march with August?",
        "It has 2001 pages",
        "version 3.11 of Python",
        "the song in '24'",
        "on the 3rd floor",
        'Who wrote "11/22/63"?',
        "What did we say in '12 Angry Men'?",
        "What did we say in '12 Years a Slave'?",
        "What did we say in '12 Angry Men?",
        "February 30",
    ],
)
def test_what_looks_like_a_date_is_none(text):
    assert times(text) == []
