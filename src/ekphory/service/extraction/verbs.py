"""The verbs of extraction: an episode is handed over, and everybody may see what became of it."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ekphory.catalog.extraction_queue import ExtractionQueue, FailedExtraction
from ekphory.errors import StoreError
from ekphory.service.extraction.extractor import Extractor
from ekphory.service.extraction.worker import ExtractionWorker
from ekphory.service.place import Place

MOST_SHOWN = 100
_log = logging.getLogger("ekphory.extraction")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionState:
    """How far the learning is.

    Attributes:
        enabled: Whether features are learnt at all: a language model is configured.
        waiting: Episodes that are still to be read.
        failed: Episodes that were given up.
        unqueued: Episodes that could not be handed over since this process started.
        out_of_order: Why nothing can be learnt at the moment, as this process knows; None where
            that is not so.
        failures: The newest of those that were given up; none where all projects are meant.
    """

    enabled: bool
    waiting: int = 0
    failed: int = 0
    unqueued: int = 0
    out_of_order: str | None = None
    failures: tuple[FailedExtraction, ...] = ()


@dataclass(frozen=True, slots=True)
class RunningExtraction:
    """What learns, where a language model is configured."""

    extractor: Extractor
    worker: ExtractionWorker


class Extraction:
    """Hands episodes over to be learnt from; without a language model nothing is ever learnt."""

    def __init__(self, queue: ExtractionQueue, running: RunningExtraction | None) -> None:
        self._queue = queue
        self._running = running
        self._counting = threading.Lock()
        self._unqueued: Counter[tuple[str, str]] = Counter()
        if running is not None:
            running.worker.start()

    def learn_from(self, place: Place, episodes: Sequence[str]) -> None:
        """Hand over episodes that are stored already; costs microseconds and never fails.

        Where the catalog cannot take them, that is logged and counted: they are stored all the
        same.
        """
        if self._running is None or not episodes:
            return
        try:
            self._queue.add(place.owner, place.reach, episodes)
        except StoreError as error:
            with self._counting:
                self._unqueued[place.owner] += len(episodes)
            fields = {"episodes": len(episodes)}
            _log.error("extraction not queued", extra={"fields": fields}, exc_info=error)
        else:
            self._running.worker.wake()

    def state(self, place: Place | None = None) -> ExtractionState:
        """Tell how far the learning is: of a project, or of all of them."""
        owner = None if place is None else place.owner
        length = self._queue.length(owner)
        running = self._running
        return ExtractionState(
            enabled=running is not None,
            waiting=length.waiting,
            failed=length.failed,
            unqueued=self._number_unqueued(owner),
            out_of_order=None if running is None else running.worker.out_of_order,
            failures=() if owner is None else tuple(self._queue.failed(owner, limit=MOST_SHOWN)),
        )

    def try_again(self, place: Place) -> int:
        """Let the episodes of a project that were given up be read anew; gives how many."""
        again = self._queue.ask_again(place.owner)
        if self._running is not None:
            self._running.worker.wake()
        return again

    def drop(self, place: Place) -> None:
        """Let nothing more be learnt from what a project holds now."""
        if self._running is None:
            self._queue.drop(place.owner)
        else:
            self._running.extractor.drop(place)

    def close(self) -> None:
        """End the learning; what is under way is done again after the next start."""
        if self._running is not None:
            self._running.worker.stop()

    def _number_unqueued(self, owner: tuple[str, str] | None) -> int:
        with self._counting:
            return self._unqueued.total() if owner is None else self._unqueued[owner]
