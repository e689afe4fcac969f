"""How long to wait before a request is repeated."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import SystemRandom

from ekphory.services.settings import ServiceSettings

_MOST_DOUBLINGS = 30
_chance = SystemRandom()


def seconds_before_repeat(
    attempt: int, *, retry_after: str | None, settings: ServiceSettings
) -> float:
    """Give the wait: what the service asks for, else one that doubles with every attempt.

    Args:
        attempt: Number of the attempt that failed, from 0.
        retry_after: The header of that name.
        settings: Names the first wait and the longest.
    """
    asked = asked_seconds(retry_after, now=datetime.now(UTC))
    if asked is not None:
        return min(asked, settings.longest_wait)
    # some jitter, so that clients refused together do not come back together
    jitter = 1 + _chance.random() / 4
    doubled = settings.backoff * float(2 ** min(attempt, _MOST_DOUBLINGS))
    return min(doubled * jitter, settings.longest_wait)


def asked_seconds(retry_after: str | None, *, now: datetime) -> float | None:
    """Read a `Retry-After` header: seconds, or a date (RFC 9110 §10.2.3); None where it is neither.

    Args:
        retry_after: The header's value.
        now: The moment it was received, with a time zone.
    """
    if retry_after is None:
        return None
    try:
        seconds = float(retry_after)
    except ValueError:
        return _seconds_until(retry_after, now)
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _seconds_until(date: str, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max((moment - now).total_seconds(), 0.0)
    except (ValueError, OverflowError):
        return None
