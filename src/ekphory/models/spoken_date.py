"""A moment's day, as people write it."""

from __future__ import annotations

from datetime import datetime

# strftime would take the names from the process's locale.
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def spoken_date(moment: datetime) -> str:
    """Give the day in the moment's own timezone: `8 May 2023`."""
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}"
