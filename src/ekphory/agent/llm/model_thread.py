"""Runs a dialogue's coroutines in a thread of its own, so that any call of them can be ended."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future, wait
from concurrent.futures import TimeoutError as NotYet
from types import TracebackType
from typing import Any, Self, TypeVar

Result = TypeVar("Result")
_LOOK_SECONDS = 0.1
_END_SECONDS = 5.0


class ModelThread:
    """An event loop in a thread; use it in a `with` block, which ends it and all that runs in it.

    The caller may itself run inside an event loop, and waits in slices, between which it looks
    whether there is time and somebody who waits.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Streams that were left before their end are closed here, and not when memory is cleaned.
        ending = asyncio.run_coroutine_threadsafe(self._loop.shutdown_asyncgens(), self._loop)
        wait([ending], _END_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_END_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()

    def run(self, work: Coroutine[Any, Any, Result], check: Callable[[], None]) -> Result:
        """Run a coroutine to its end.

        Args:
            work: The coroutine.
            check: Is called while it runs; what it raises ends the coroutine and is raised.
        """
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            while True:
                check()
                try:
                    return future.result(_LOOK_SECONDS)
                except NotYet:
                    if future.done():
                        raise
        except BaseException:
            _ended(future)
            raise


def _ended(future: Future[Any]) -> None:
    """Cancel what still runs, and wait until it has let go of its connection."""
    future.cancel()
    try:
        future.exception(_END_SECONDS)
    except (CancelledError, NotYet):
        return
