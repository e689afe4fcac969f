"""Whether upkeep succeeds, and when it is tried again after it failed."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from ekphory.errors import StoreError
from ekphory.moments import now_utc
from ekphory.placing import put_in_place

NOTE_FILE = ".ekphory.upkeep.json"
"""Tells other processes, such as `ekphory doctor`, that upkeep fails."""
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 600.0


@dataclass(frozen=True, slots=True)
class UpkeepFailure:
    """Upkeep that has failed and not succeeded since.

    Attributes:
        message: The last error.
        attempts: How often it failed.
        since: When it failed first, as ISO 8601.
    """

    message: str
    attempts: int
    since: str

    @property
    def sentence(self) -> str:
        """The failure in words."""
        times = "once" if self.attempts == 1 else f"{self.attempts:,} times"
        return f"Upkeep has failed {times} since {self.since}: {self.message}"


class UpkeepState:
    """Counts failures of upkeep; the pause after each is twice the one before.

    Args:
        directory: Of the store, where a failure is noted; None notes nothing.
        clock: Seconds that never go back.
    """

    def __init__(
        self, directory: Path | None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._note = None if directory is None else directory / NOTE_FILE
        self._clock = clock
        self._failure: UpkeepFailure | None = None
        self._next = clock()
        self._guard = threading.Lock()

    @property
    def is_due(self) -> bool:
        """Whether upkeep may be tried now; of a directory that was deleted nothing is kept up."""
        is_there = self._note is None or self._note.parent.exists()
        return is_there and self._clock() >= self._next

    @property
    def failure(self) -> UpkeepFailure | None:
        """What failed in this process, or was noted by another one; None if all is well."""
        return self._failure or self._noted()

    def note_failure(self, error: StoreError) -> None:
        """Count a failure, and put off the next try."""
        with self._guard:
            before = self._failure
            attempts = 1 if before is None else before.attempts + 1
            since = now_utc().isoformat() if before is None else before.since
            self._failure = UpkeepFailure(str(error), attempts, since)
            self._next = self._clock() + min(_FIRST_PAUSE * 2 ** (attempts - 1), _LONGEST_PAUSE)
            self._write(self._failure)

    def note_success(self) -> None:
        """Forget earlier failures, also those that another process noted."""
        with self._guard:
            self._failure = None
            self._next = self._clock()
            if self._note is not None:
                # What cannot be removed tells of a failure too many, never of one too few.
                with suppress(OSError):
                    self._note.unlink(missing_ok=True)

    def _write(self, failure: UpkeepFailure) -> None:
        if self._note is None:
            return
        part = self._note.with_suffix(".part")
        # Where nothing can be written, the failure is told by this process alone.
        with suppress(OSError):
            part.write_text(json.dumps(asdict(failure)) + "\n", encoding="utf-8")
            put_in_place(part, self._note)

    def _noted(self) -> UpkeepFailure | None:
        if self._note is None:
            return None
        try:
            noted = UpkeepFailure(**json.loads(self._note.read_text(encoding="utf-8")))
            if type(noted.attempts) is not int:
                raise TypeError("attempts must be a number")
            return noted
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            return UpkeepFailure(f"{self._note}: cannot be read ({error})", 1, "")
