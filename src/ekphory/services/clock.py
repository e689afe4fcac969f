"""The clock that a transport waits by."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clock:
    """Tells the time that has passed, and waits.

    Attributes:
        now: Gives seconds since some moment; never goes back.
        sleep: Waits so many seconds.
    """

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


SYSTEM_CLOCK = Clock()
