"""What a session may spend: calls of the search tool, top level and branch together, and time."""

from __future__ import annotations

import time

from ekphory.agent.cancellation import raise_if_cancelled
from ekphory.agent.faults import SessionFault


class Budget:
    """Counts calls and watches the clock."""

    def __init__(self, *, most_calls: int, seconds: float) -> None:
        """Start the clock.

        Args:
            most_calls: How many calls may be made, refused ones included.
            seconds: How long the session may take.
        """
        self.most_calls = most_calls
        self.seconds = seconds
        self.calls = 0
        self._ends = time.monotonic() + seconds

    @property
    def calls_left(self) -> int:
        """How many calls may still be made."""
        return max(0, self.most_calls - self.calls)

    @property
    def seconds_left(self) -> float:
        """How much time is left; 0 once it is over."""
        return max(0.0, self._ends - time.monotonic())

    def spend_call(self) -> int:
        """Count one call; returns its number, from 1.

        Raises:
            SessionFault: No call or no time is left.
        """
        self.check_time()
        if self.calls >= self.most_calls:
            raise SessionFault(
                "session_call_budget_exceeded", f"all {self.most_calls} calls were made"
            )
        self.calls += 1
        return self.calls

    def check_time(self) -> None:
        """Go on only while there is time and somebody waits.

        Raises:
            SessionFault: The time is over.
            SessionCancelled: Nobody waits any more.
        """
        raise_if_cancelled()
        if self.seconds_left <= 0:
            raise SessionFault("global_timeout", f"the session took over {self.seconds:g} s")
