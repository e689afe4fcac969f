"""Memories counted by time."""

from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import pytest
from tests.cases import read_cases

from ekphory.search import SearchResult
from ekphory.service.inspection import MOST_BARS, count_by_time, reasons
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


def test_no_share_of_a_match_is_more_than_the_whole():
    record = MemoryRecord(id="a", text="tea", at=EPOCH, created_at=EPOCH)
    hit = Hit("a", "tea", 0.9, {"lexical": 1.4, "bm25": 3.0}, record)
    ((found,),) = reasons(SearchResult((hit,), Trace("balanced")), EPOCH)
    assert found.sentence == "No. 1 of 1 by words: 100% of a full match."
