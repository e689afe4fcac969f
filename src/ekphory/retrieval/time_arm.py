"""The time arm: which memories lie in the time, or the sessions, that a query names."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from ekphory.retrieval.snapshot import ScopeSnapshot
from ekphory.store.protocol import NO_THREAD, IntArray, ScoreArray
from ekphory.time_words.reference import Interval, Sessions, TimeReading, TimeReference
from ekphory.types import to_microseconds

Mask = NDArray[np.bool_]

STILL_ONGOING = 30 * 60 * 1_000_000
"""A session goes on for half an hour after its last memory, in microseconds."""
TELLING = timedelta(days=3)
WIDER_SHARE = 0.7
"""Share of the confidence that is left when only the wider time holds memories."""


@dataclass(frozen=True, slots=True)
class TimedRows:
    """Rows in the times that a query names.

    Attributes:
        rows: In the order in which they are told: of time, or from the newest for "recently".
        confidence: By row of the snapshot, that it is meant; 0 outside, shape (rows,).
        told: By row, the confidence that what is meant was told then, within three days after the
            time; 0 elsewhere and inside, shape (rows,).
        found: How many rows each reference that has a time or sessions gave.
        widened: Texts of the references that only their wider time gave rows for.
    """

    rows: IntArray
    confidence: ScoreArray
    told: ScoreArray
    found: dict[str, int]
    widened: tuple[str, ...]

    @property
    def inside(self) -> Mask:
        """Which rows of the snapshot lie in any of the times."""
        return self.confidence > 0


def find_timed_rows(
    snapshot: ScopeSnapshot, reading: TimeReading, *, visible: Mask, now: int
) -> TimedRows:
    """Find the rows that a query's references name.

    Args:
        snapshot: The scope.
        reading: What the query says about time.
        visible: Rows that may be found. Sessions are counted whether they may be found or not.
        now: The moment of asking, microseconds since 1970; what lies after it is no session yet.
    """
    confidence = np.zeros(len(snapshot), np.float32)
    told = np.zeros(len(snapshot), np.float32)
    found: dict[str, int] = {}
    widened: list[str] = []
    scope = _Scope(snapshot, now)
    for reference in reading.references:
        if reference.kind == "event":
            continue
        interval = reference.interval
        inside = _mark_reference(scope, reference, interval) & visible
        sure = reference.confidence
        if reference.wider is not None and not inside.any():
            inside = _mark_reference(scope, reference, reference.wider) & visible
            sure *= WIDER_SHARE
            widened.append(reference.text)
        confidence[inside] = np.maximum(confidence[inside], np.float32(sure))
        if reference.sessions is None and interval and interval.start and interval.end:
            # People tell of what happened then.
            after = scope.mark(Interval(interval.end, interval.end + TELLING)) & visible
            told[after] = np.maximum(told[after], np.float32(reference.confidence))
        found[reference.text] = int(np.count_nonzero(inside))
    told[confidence > 0] = 0
    rows = scope.sort(np.flatnonzero(confidence > 0))
    if any(reference.newest_first for reference in reading.references):
        rows = rows[::-1]
    return TimedRows(rows, confidence, told, found, tuple(widened))


@dataclass(frozen=True, slots=True)
class _Scope:
    snapshot: ScopeSnapshot
    now: int

    def sort(self, rows: IntArray) -> IntArray:
        """Order rows by moment, then by their place in the session, then as written."""
        columns = self.snapshot.columns
        order = np.lexsort((rows, columns.sequence[rows], columns.at[rows]))
        return np.asarray(rows[order], np.int64)

    def mark(self, interval: Interval | None) -> Mask:
        """Mark the rows of an interval; None marks all that have happened."""
        first, end = self._find_bounds(interval)
        at = self.snapshot.columns.at
        return np.asarray((at >= first) & (at < end))

    def list_sessions(self, interval: Interval | None) -> IntArray:
        """Return the threads that begin in an interval, in the order in which they begin."""
        columns = self.snapshot.columns
        rows = np.flatnonzero((columns.thread != NO_THREAD) & (columns.at <= self.now))
        threads, places = np.unique(columns.thread[rows], return_inverse=True)
        begins = np.full(len(threads), np.iinfo(np.int64).max)
        np.minimum.at(begins, places, columns.at[rows])
        first, end = self._find_bounds(interval)
        order = np.argsort(begins, kind="stable")
        begun = (begins[order] >= first) & (begins[order] < end)
        return np.asarray(threads[order][begun], np.int64)

    def mark_ongoing(self) -> Mask:
        """Mark the rows of the session that is going on now."""
        columns = self.snapshot.columns
        past = np.flatnonzero(columns.at <= self.now)
        if not len(past):
            return np.zeros(len(columns.at), bool)
        newest = past[np.argmax(columns.at[past])]
        if columns.thread[newest] == NO_THREAD or self.now - columns.at[newest] > STILL_ONGOING:
            return np.zeros(len(columns.at), bool)
        return np.asarray(columns.thread == columns.thread[newest])

    def _find_bounds(self, interval: Interval | None) -> tuple[int, int]:
        """Return the first microsecond of an interval, and the one after its last."""
        if interval is None:
            return np.iinfo(np.int64).min, self.now + 1
        start, end = interval.start, interval.end
        first = np.iinfo(np.int64).min if start is None else to_microseconds(start)
        return first, np.iinfo(np.int64).max if end is None else to_microseconds(end)


def _mark_reference(scope: _Scope, reference: TimeReference, interval: Interval | None) -> Mask:
    if reference.sessions is not None:
        chosen = choose_sessions(scope.list_sessions(interval), reference.sessions)
        return np.isin(scope.snapshot.columns.thread, chosen)
    within = scope.mark(interval)
    return within & ~scope.mark_ongoing() if reference.before_ongoing else within


def choose_sessions(threads: IntArray, sessions: Sessions) -> IntArray:
    """Return the sessions of these numbers, of those in the order of time."""
    first, last = (
        number - 1 if number > 0 else len(threads) + number
        for number in (sessions.first, sessions.last)
    )
    return threads[max(first, 0) : max(last + 1, 0)]
