"""The time arm: which rows lie in a time, and how sessions are counted."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from tests.store.store_contract import contract_record

from ekphory.retrieval.time_arm import choose_sessions, find_timed_rows
from ekphory.time_words.parse import read_time
from ekphory.time_words.reference import Sessions
from ekphory.types import to_microseconds
from retrieval.states import state_of

NOW = datetime(2026, 6, 10, 12, tzinfo=UTC)


def told(*moments):
    """A snapshot of memories of these moments."""
    records = [
        replace(contract_record(number), at=datetime.fromisoformat(moment).replace(tzinfo=UTC))
        for number, moment in enumerate(moments, start=1)
    ]
    return state_of(*records).snapshot


def timed(snapshot, query, *, hidden=0):
    reading = read_time(query, now=NOW)
    visible = np.arange(len(snapshot)) >= hidden
    return find_timed_rows(snapshot, reading, visible=visible, now=to_microseconds(NOW))


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (1, 1, [10]),
        (2, 3, [20, 30]),
        (-1, -1, [40]),
        (-3, -2, [20, 30]),
        (3, -1, [30, 40]),
        (-9, -1, [10, 20, 30, 40]),
        (-9, -9, []),
        (5, 5, []),
    ],
)
def test_sessions_are_counted_from_either_end(first, last, expected):
    threads = np.array([10, 20, 30, 40])
    assert choose_sessions(threads, Sessions(first, last)).tolist() == expected


def test_rows_of_a_time_come_in_its_order():
    # Rows come in the order of time not of writing if they are visible.
    snapshot = told("2026-05-03", "2026-05-01", "2026-04-01", "2026-05-02")
    assert timed(snapshot, "in May").rows.tolist() == [1, 3, 0]
    assert timed(snapshot, "in May", hidden=1).rows.tolist() == [1, 3]
    # Recently begins with the newest.
    snapshot = told("2026-06-05", "2026-06-07", "2026-06-06")
    assert timed(snapshot, "recently").rows.tolist() == [1, 2, 0]
    # A wider time is looked into only where the time is empty.
    full, empty = told("2026-06-07", "2026-06-06"), told("2026-06-06", "2026-06-01")
    assert timed(full, "3 days ago").rows.tolist() == [0]
    assert timed(empty, "3 days ago").rows.tolist() == [0]
    assert timed(empty, "3 days ago").widened == ("3 days ago",)
    # What is told within three days after a time is marked apart.
    found = timed(told("2026-05-08", "2026-05-10", "2026-05-20"), "on May 8th")
    assert found.confidence.tolist() == pytest.approx([0.93, 0, 0])
    assert found.told.tolist() == pytest.approx([0, 0.93, 0])
