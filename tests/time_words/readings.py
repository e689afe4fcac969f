"""What `read_time` gives, short enough to be compared at a glance."""

from datetime import UTC, datetime

from ekphory.time_words.parse import read_time

WEDNESDAY = datetime(2026, 11, 18, 15, 30, tzinfo=UTC)


def read(text, *, now=WEDNESDAY, timezone="UTC"):
    return read_time(text, now=now, timezone=timezone)


def write(text, *, now=WEDNESDAY, timezone="UTC"):
    """Return what a text says about time, as the examples of `time_rules.toml` have it."""
    references = read(text, now=now, timezone=timezone).references
    return ", ".join(write_reference(each) for each in references)


def write_reference(reference):
    sessions, interval = reference.sessions, reference.interval
    within = "event" if interval is None else write_interval(interval)
    if sessions is None:
        return within
    numbers = f"{sessions.first} to {sessions.last}"
    return numbers if interval is None else f"{numbers} in {within}"


def write_interval(interval):
    """Return `from/until`, without a midnight's hours."""
    return f"{_write_moment(interval.start)}/{_write_moment(interval.end)}"


def _write_moment(moment):
    if moment is None:
        return ".."
    return moment.strftime("%Y-%m-%dT%H:%M").removesuffix("T00:00")
