"""How long ago something was, in words."""

from __future__ import annotations

from datetime import datetime

_UNITS = (
    (365.25 * 86_400, "year"),
    (30.44 * 86_400, "month"),
    (7 * 86_400, "week"),
    (86_400, "day"),
    (3_600, "hour"),
    (60, "minute"),
)


def age_in_words(at: datetime, now: datetime) -> str:
    """Say how far `at` lies from `now`: `3 days ago`, `in 2 hours`, `just now` below a minute.

    The largest unit that fits is counted, rounded down. Both moments are timezone-aware.
    """
    seconds = (now - at).total_seconds()
    for length, unit in _UNITS:
        count = int(abs(seconds) // length)
        if count:
            span = f"{count} {unit}{'s' if count > 1 else ''}"
            return f"{span} ago" if seconds > 0 else f"in {span}"
    return "just now"
