"""Moments: what a caller gives becomes timezone-aware UTC, or a clear error."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ekphory.errors import InvalidInput

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_REMEDY = "Give an ISO 8601 text such as '2026-11-20T10:00:00Z' or a datetime, in the years 1-9998"


def to_utc(value: str | datetime, *, field: str) -> datetime:
    """Read a moment; naive input counts as UTC.

    Args:
        value: ISO 8601 text, or a datetime.
        field: The name the caller knows the value by, for the error.

    Raises:
        InvalidInput: The value is no moment in the years 1 to 9998.
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
        raise InvalidInput(field, value, f"a {type(value).__name__} is no moment", _REMEDY)
    try:
        return datetime.fromisoformat(value.strip())
    except ValueError as error:
        raise InvalidInput(field, value, f"cannot be read ({error})", _REMEDY) from error


def to_microseconds(moment: datetime) -> int:
    """Microseconds since 1970-01-01 UTC, exact."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def now_utc() -> datetime:
    """Give the current moment."""
    return datetime.now(UTC)
