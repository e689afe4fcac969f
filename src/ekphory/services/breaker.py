"""A circuit breaker: a service that keeps failing is left alone for a while."""

from __future__ import annotations

from collections.abc import Callable

from ekphory.fork_safe import ForkSafeLock


class CircuitBreaker:
    """Counts failures in a row, and says when to call again. Safe to use from several threads.

    After so many failures it refuses for the length of the cool-down; then it admits one trial
    and refuses again for as long, until the trial or another call has succeeded. A trial of which
    nothing is heard again therefore blocks nothing for ever.
    """

    def __init__(self, *, failures: int, cool_down: float, now: Callable[[], float]) -> None:
        """Start closed, which is: admitting every call.

        Args:
            failures: How many in a row open it, at least 1.
            cool_down: Seconds for which it refuses.
            now: Gives seconds that never go back.
        """
        self._most = failures
        self._cool_down = cool_down
        self._now = now
        self._lock = ForkSafeLock()
        self._failures = 0
        self._trial_at = 0.0

    def refusal(self) -> float | None:
        """Ask for a call: None admits it, else the seconds until the next trial."""
        with self._lock:
            if self._failures < self._most:
                return None
            now = self._now()
            if now < self._trial_at:
                return self._trial_at - now
            self._trial_at = now + self._cool_down
            return None

    def succeeded(self) -> None:
        """Note that a call succeeded: admit every call again."""
        with self._lock:
            self._failures = 0

    def failed(self) -> None:
        """Note that a call failed."""
        with self._lock:
            self._failures += 1
            self._trial_at = self._now() + self._cool_down
