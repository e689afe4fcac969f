"""A session that nobody waits for any more is told so, and ends at its next step."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ekphory.errors import EkphoryError

_cancelled: ContextVar[threading.Event | None] = ContextVar("ekphory_cancelled", default=None)


class SessionCancelled(EkphoryError):
    """Whoever asked has gone."""


@contextmanager
def cancellable(cancelled: threading.Event) -> Iterator[None]:
    """Let sessions that begin inside, also in threads that copy this context, be cancelled."""
    token = _cancelled.set(cancelled)
    try:
        yield
    finally:
        _cancelled.reset(token)


def raise_if_cancelled() -> None:
    """Raise `SessionCancelled` where whoever asked has gone."""
    event = _cancelled.get()
    if event is not None and event.is_set():
        raise SessionCancelled
