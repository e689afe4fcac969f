"""No text, however odd or long, raises an error or takes long."""

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekphory.time_words.parse import read_time

WORDS = (
    "last next this previous the a of in on at between and from to until since before after early "
    "late end week weekend month year days weeks ago session sessions first second 1st 31 30 2023 "
    "0001 9999 2022-02-30 12/31/99 May march monday tuesdays yesterday today morning 3pm 12:30 "
    "half couple of few recently spring christmas new year's not but the one before that , ? - "
    "decade quarter Q3 hundredth 29 feb around so far time while long fortnight time "
    "'23 90s summers winters weekends Friday the 6th, noon o'clock 2pm 4 am : 0 when did we talked"
).split()
MOMENTS = st.one_of(
    st.datetimes(timezones=st.sampled_from([None, UTC])),
    st.sampled_from([datetime.min, datetime.max, datetime(2024, 2, 29, tzinfo=UTC)]),
)
ZONES = st.sampled_from(["UTC", "Pacific/Kiritimati", "America/Los_Angeles", "Etc/GMT+12"])


@given(
    st.one_of(st.text(max_size=300), st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join)),
    MOMENTS,
    ZONES,
)
@settings(max_examples=300, deadline=None)
def test_every_text_is_read_at_every_moment(text, now, zone):
    reading = read_time(text, now=now, timezone=zone)
    for each in reading.references:
        assert text[each.start : each.end] == each.text
        assert 0 < each.confidence <= 1
        interval = each.interval
        if interval is not None and None not in (interval.start, interval.end):
            assert interval.start <= interval.end


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", ["a", "last ", "1 ", "May ", "session 1 to ", "first and ", "between ", "the day "]
)
def test_a_text_five_times_as_long_does_not_take_longer(words):
    def seconds(text):
        started = time.perf_counter()
        for _ in range(3):
            read_time(text, now=datetime(2026, 1, 1, tzinfo=UTC))
        return time.perf_counter() - started

    short, long = (words * 2000)[:2000], (words * 10_000)[:10_000]
    seconds(short)
    assert min(seconds(long) for _ in range(3)) < 3 * max(seconds(short) for _ in range(3))
