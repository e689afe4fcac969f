"""What `read_time` gives, short enough to be compared at a glance."""

from datetime import UTC, datetime

from ekphory.time_words.parse import read_time

WEDNESDAY = datetime(2026, 11, 18, 15, 30, tzinfo=UTC)


def reading(text, *, now=WEDNESDAY, timezone="UTC"):
    return read_time(text, now=now, timezone=timezone)


def times(text, *, now=WEDNESDAY, timezone="UTC"):
    """The intervals of a text, each as `from/until`, without a midnight's hours."""
    references = reading(text, now=now, timezone=timezone).references
    return [shown(each.interval) for each in references if each.interval is not None]


def sessions(text):
    """The sessions of a text, each as (first, last)."""
    references = reading(text).references
    return [
        (each.sessions.first, each.sessions.last)
        for each in references
        if each.sessions is not None
    ]


def shown(interval):
    return f"{_shown(interval.start)}/{_shown(interval.end)}"


def _shown(moment):
    if moment is None:
        return ".."
    return moment.strftime("%Y-%m-%dT%H:%M").removesuffix("T00:00")
