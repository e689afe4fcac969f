"""Seasons and holidays; it is 18 November 2026."""

from datetime import datetime

import pytest

from ekphory.time_words.reference import find_easter
from temporal.readings import times


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in spring", "2026-03-01/2026-06-01"),
        ("in the springtime", "2026-03-01/2026-06-01"),
        ("last summer", "2026-06-01/2026-09-01"),
        ("the summer before last", "2025-06-01/2025-09-01"),
        ("two summers ago", "2025-06-01/2025-09-01"),
        ("three winters ago", "2023-12-01/2024-03-01"),
        ("in the summer of '22", "2022-06-01/2022-09-01"),
        ("at Christmas '22", "2022-12-24/2022-12-27"),
        ("in winter", "2025-12-01/2026-03-01"),
        ("in the fall", "2026-09-01/2026-12-01"),
        ("last autumn", "2025-09-01/2025-12-01"),
        ("in the summer of 2024", "2024-06-01/2024-09-01"),
        ("in the summer two years ago", "2024-06-01/2024-09-01"),
        ("at Christmas", "2025-12-24/2025-12-27"),
        ("on Halloween", "2026-10-31/2026-11-01"),
        ("Easter 2023", "2023-04-07/2023-04-11"),
        ("Thanksgiving 2025", "2025-11-27/2025-11-28"),
        ("the week after Christmas", "2025-12-27/2026-01-03"),
    ],
)
def test_a_season_is_the_newest_that_has_begun(text, expected):
    assert times(text) == [expected]


@pytest.mark.parametrize(
    "text", ["to fall asleep", "hot springs", "a fall of snow", "What do we know about Christmas?"]
)
def test_a_season_needs_a_word_that_makes_it_a_time(text):
    assert times(text) == []


@pytest.mark.parametrize(
    ("year", "day"), [(1818, (3, 22)), (1943, (4, 25)), (2000, (4, 23)), (2024, (3, 31))]
)
def test_easter_is_where_the_calendar_has_it(year, day):
    assert find_easter(year) == datetime(year, *day)
