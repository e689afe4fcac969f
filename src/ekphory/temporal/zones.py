"""Timezones by name, looked up once."""

from __future__ import annotations

from datetime import UTC, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from ekphory.errors import InvalidInput


def zone_of(timezone: str | tzinfo) -> tzinfo:
    """Give the timezone of a name; a `tzinfo` is given back.

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
