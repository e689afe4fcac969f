"""Timestamps: what a caller gives becomes timezone-aware UTC, or a clear error."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from ekphory.errors import InvalidInput

# Moments: what a caller gives becomes timezone-aware UTC, or a clear error.

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_REMEDY = "Give an ISO 8601 text such as '2026-11-20T10:00:00Z' or a datetime, in the years 1-9998"


def to_utc(value: str | datetime, *, field: str) -> datetime:
    """Read a moment; naive input counts as UTC.

    Args:
        value: ISO 8601 text, or a datetime.
        field: The name the caller knows the value by, for the error.

    Raises:
        InvalidInput: The value is not a timestamp in the years 1 to 9998.
    """
    moment = value if isinstance(value, datetime) else _parse(value, field)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        moment = moment.astimezone(UTC)
    except OverflowError as error:
        raise InvalidInput(field, value, "outside the calendar", _REMEDY) from error
    if moment.year > 9998:
        raise InvalidInput(field, value, "year 9999 is a placeholder, not a moment", _REMEDY)
    return moment


def _parse(value: object, field: str) -> datetime:
    if not isinstance(value, str):
        raise InvalidInput(
            field, value, f"must be a timestamp, not {type(value).__name__}", _REMEDY
        )
    try:
        return datetime.fromisoformat(value.strip())
    except ValueError as error:
        raise InvalidInput(field, value, f"cannot be read ({error})", _REMEDY) from error


def to_microseconds(moment: datetime) -> int:
    """Microseconds since 1970-01-01 UTC, exact."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def now_utc() -> datetime:
    """Return the current moment."""
    return datetime.now(UTC)


# Timezones by name, looked up once.


def zone_of(timezone: str | tzinfo) -> tzinfo:
    """Return the timezone of a name; a `tzinfo` is given back.

    Raises:
        InvalidInput: There is no such timezone.
    """
    if isinstance(timezone, tzinfo):
        return timezone
    if not isinstance(timezone, str):
        raise _unknown(timezone)
    return UTC if timezone == "UTC" else _named(timezone)


@lru_cache(maxsize=64)
def _named(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError) as error:
        # KeyError is the one that says "no such zone"; a path or an odd byte gives the others.
        raise _unknown(name) from error


def _unknown(timezone: object) -> InvalidInput:
    return InvalidInput(
        "timezone", timezone, "there is no such timezone", "Give a name such as 'Europe/Berlin'"
    )


# A moment's day, as people write it.

# strftime would take the names from the process's locale.
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def spoken_date(moment: datetime) -> str:
    """Return the day in the moment's own timezone: `8 May 2023`."""
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}"
