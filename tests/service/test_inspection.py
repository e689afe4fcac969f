"""Memories counted by time."""

from collections import Counter
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import read_cases

from ekphory.search import SearchResult
from ekphory.server.routes.inspect import HealthAnswer, join_health
from ekphory.service.inspection import (
    MOST_BARS,
    GrowthAnswer,
    count_by_time,
    join_growth,
    reasons,
)
from ekphory.store.checks import Finding
from ekphory.types import EPOCH, Hit, MemoryRecord, Trace, to_microseconds


def at(*moments):
    given = [datetime.fromisoformat(each).replace(tzinfo=UTC) for each in moments]
    return np.array([to_microseconds(each) for each in given], np.int64)


def drawn(*moments):
    return count_by_time(at(*moments), np.array(["semantic"] * len(moments)))


@pytest.mark.parametrize(("last", "unit", "begins"), read_cases(__file__)["units"])
def test_the_unit_makes_a_picture_of_few_bars(last, unit, begins):
    found, bars = drawn("2026-03-04T09:30", last)
    assert found == unit
    assert bars[0].begins == datetime.fromisoformat(begins).replace(tzinfo=UTC)
    assert unit == "century" or len(bars) <= MOST_BARS


def test_bars_follow_each_other_without_a_gap():
    _, bars = drawn("2026-01-01", "2026-06-01")
    assert all(one.ends == other.begins for one, other in pairwise(bars))
    assert [sum(bar.counts.values()) for bar in bars][:: len(bars) - 1] == [1, 1]


def test_what_happened_at_the_edges_of_the_calendar_has_a_bar():
    _, bars = drawn("0001-01-01", "1969-12-31T23:59", "9998-12-31")
    assert sum(sum(bar.counts.values()) for bar in bars) == 3
    assert (bars[0].begins.year, bars[-1].ends.year) == (1, 9998)


def test_a_bar_counts_by_type():
    _, (bar,) = count_by_time(at("2026-01-01", "2026-01-01"), np.array(["semantic", "episodic"]))
    assert bar.counts == {"semantic": 1, "episodic": 1}


def test_nothing_has_no_bars():
    assert count_by_time(np.empty(0, np.int64), np.empty(0, np.str_)) == (None, [])


WRITTEN = st.lists(
    st.tuples(
        st.datetimes(datetime(2020, 1, 1), datetime(2026, 1, 1)),
        st.sampled_from(["home", "work"]),
    ),
    max_size=12,
)


def grown(written):
    moments = at(*(moment.isoformat() for moment, _ in written))
    names = np.array([name for _, name in written], np.str_)
    unit, bars = count_by_time(moments, names)
    counts = {name: int((names == name).sum()) for name in np.unique(names).tolist()}
    return GrowthAnswer(total=len(written), unit=unit, projects=bars, pools=bars, counts=counts)


@given(WRITTEN, WRITTEN)
def test_what_two_stores_hold_is_counted_together(first, second):
    joined, whole = join_growth([grown(first), grown(second)]), grown([*first, *second])
    assert (joined.total, joined.counts) == (whole.total, whole.counts)
    drawn = Counter()
    for bar in joined.projects:
        drawn.update(bar.counts)
    assert drawn == whole.counts
    assert all(one.ends == other.begins for one, other in pairwise(joined.projects))


def test_bars_of_two_stores_on_the_same_days_are_added():
    first = grown([(datetime(2026, 1, 1), "home"), (datetime(2026, 1, 9), "work")])
    second = grown([(datetime(2026, 1, 1), "home"), (datetime(2026, 1, 8), "home")])
    bars = join_growth([first, second]).projects
    assert [bar.counts for bar in bars if bar.counts] == [{"home": 2}, {"home": 1}, {"work": 1}]


def test_of_several_stores_what_is_the_same_is_told_once_and_the_rest_by_name():
    fine, stale = Finding("upkeep", "fine", "It succeeds."), Finding("upkeep", "note", "It waits.")
    first = HealthAnswer(healthy=True, findings=[fine], numbers={"memories": 2, "bytes": None})
    second = HealthAnswer(healthy=True, findings=[stale], numbers={"memories": 3, "bytes": 9})
    both = join_health({"shard-0": first, "shard-1": second})
    assert both.findings == [Finding("upkeep", "note", "shard-1: It waits.")]
    assert both.numbers == {"memories": 5, "bytes": None}
    alike = join_health({"shard-0": first, "shard-1": first})
    assert alike.findings == [Finding("upkeep", "fine", "Fine in all shards.")]
    waiting = join_health({"shard-0": second, "shard-1": second})
    assert waiting.findings == [Finding("upkeep", "note", "It waits.")]


def test_no_share_of_a_match_is_more_than_the_whole():
    record = MemoryRecord(id="a", text="tea", at=EPOCH, created_at=EPOCH)
    hit = Hit("a", "tea", 0.9, {"lexical": 1.4, "bm25": 3.0}, record)
    ((found,),) = reasons(SearchResult((hit,), Trace("balanced")), EPOCH)
    assert found.sentence == "No. 1 of 1 by words: 100% of a full match."
