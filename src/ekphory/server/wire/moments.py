"""Moments as clients give them: ISO 8601, or seconds or milliseconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from ekphory.errors import InvalidInput
from ekphory.moments import to_utc

_MILLISECONDS_FROM = 1e12
"""A larger number counts milliseconds: as seconds it would lie 31,000 years ahead."""


def _moment(value: object) -> datetime:
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value / 1000 if value > _MILLISECONDS_FROM else value
            return to_utc(datetime.fromtimestamp(seconds, tz=UTC), field="timestamp")
        if isinstance(value, str | datetime):
            return to_utc(value, field="timestamp")
    except (InvalidInput, OverflowError, OSError, ValueError) as error:
        raise ValueError(f"no moment ({error})") from error
    raise ValueError("no moment: give ISO 8601, or seconds since 1970")


Moment = Annotated[
    datetime,
    BeforeValidator(_moment),
    WithJsonSchema(
        {
            "anyOf": [{"type": "string", "format": "date-time"}, {"type": "number"}],
            "examples": ["2026-05-01T10:00:00Z"],
        }
    ),
]
