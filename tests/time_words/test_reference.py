"""The calendar in which times are counted."""

from datetime import datetime

import pytest

from ekphory.time_words.reference import find_easter


@pytest.mark.parametrize(
    ("year", "day"), [(1818, (3, 22)), (1943, (4, 25)), (2000, (4, 23)), (2024, (3, 31))]
)
def test_easter_is_where_the_calendar_has_it(year, day):
    assert find_easter(year) == datetime(year, *day)
