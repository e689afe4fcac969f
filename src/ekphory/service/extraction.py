"""Extraction: an episode is handed over, and a thread learns features from it."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import filelock

from ekphory.catalog.extraction import ExtractionJob, ExtractionQueue, FailedExtraction
from ekphory.errors import EkphoryError, InvalidInput, ServiceError, StoreClosed, StoreError
from ekphory.http_service import ServiceRefusal, ServiceUnavailable
from ekphory.service.configuration import Configuration
from ekphory.service.extractor import Extractor
from ekphory.service.handles import Place
from ekphory.service.learning import ExtractionSettings

LOCK_FILE = ".ekphory-extraction.lock"
_log = logging.getLogger("ekphory.extraction")
# Whoever asks is refused so, whatever is asked: a wrong key, an unknown model, no credit left.
_REFUSED_TO_ALL = frozenset(
    {
        HTTPStatus.UNAUTHORIZED,
        HTTPStatus.PAYMENT_REQUIRED,
        HTTPStatus.FORBIDDEN,
        HTTPStatus.NOT_FOUND,
        HTTPStatus.METHOD_NOT_ALLOWED,
    }
)


_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (ServiceUnavailable, "a model cannot be reached, or is busy"),
    (ServiceError, "a model refused, or gave no usable answer"),
    (StoreError, "the store cannot be read or written"),
    (EkphoryError, "a feature cannot be kept"),
    (Exception, "a defect of ekphory; the log says where"),
)


MOST_SHOWN = 100


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


class Extraction:
    """Learns from episodes that are handed over, in the background, job after job.

    A job whose answer cannot be used is tried again later, and given up after some attempts. While
    the service is out of order, nothing is: all jobs wait.
    """

    def __init__(
        self,
        queue: ExtractionQueue,
        extractor: Extractor | None,
        configuration: Configuration,
        *,
        folder: Path,
        settings: ExtractionSettings,
    ) -> None:
        """Let the thread run, if there is anything to be learnt.

        Args:
            queue: What is to be done.
            extractor: Does it; None where nothing is ever learnt.
            configuration: Says whether there is a language model now, and what it waits for.
            folder: Where the processes of one catalog agree on which of them works.
            settings: How often and how long something is tried.
        """
        self._queue = queue
        self._configuration = configuration
        self._settings = settings
        self._turn = filelock.FileLock(folder / LOCK_FILE, blocking=False, thread_local=False)
        self._woken = threading.Event()
        self._stopping = threading.Event()
        self._failures = 0
        self._out_of_order: str | None = None  # why nothing can be learnt at the moment
        self._counting = threading.Lock()
        self._unqueued: Counter[tuple[str, str]] = Counter()
        self._extractor = extractor
        self._thread = threading.Thread(target=self._run, name="ekphory extraction", daemon=True)
        if extractor is not None:
            self._thread.start()

    def learn_from(self, place: Place, episodes: Sequence[str]) -> None:
        """Hand over episodes that are stored already; costs microseconds and never fails.

        Where the catalog cannot take them, that is logged and counted: they are stored all the
        same.
        """
        if not self._may_learn() or not episodes:
            return
        least, seconds = self._configuration.trigger()
        due = time.time() + seconds if least > 1 else 0
        try:
            self._queue.add(place.owner, place.reach, episodes, due=due)
            if least > 1:
                self._queue.let_begin(place.owner, least=least)
        except StoreError as error:
            with self._counting:
                self._unqueued[place.owner] += len(episodes)
            fields = {"episodes": len(episodes)}
            _log.error("extraction not queued", extra={"fields": fields}, exc_info=error)
        else:
            self._woken.set()

    def state(self, place: Place | None = None) -> ExtractionState:
        """Tell how far the learning is: of a project, or of all of them."""
        owner = None if place is None else place.owner
        waiting, failed = self._queue.length(owner)
        with self._counting:
            unqueued = self._unqueued.total() if owner is None else self._unqueued[owner]
        return ExtractionState(
            enabled=self._may_learn(),
            waiting=waiting,
            failed=failed,
            unqueued=unqueued,
            out_of_order=self._out_of_order,
            failures=() if owner is None else tuple(self._queue.failed(owner, limit=MOST_SHOWN)),
        )

    def try_again(self, place: Place) -> int:
        """Let the episodes of a project that were given up be read anew; return how many."""
        again = self._queue.ask_again(place.owner)
        self._woken.set()
        return again

    def drop(self, place: Place) -> None:
        """Let nothing more be learnt from what a project holds now."""
        if self._extractor is None:
            self._queue.drop(place.owner)
        else:
            self._extractor.drop(place)

    def close(self) -> None:
        """End the learning; what is under way is done again after the next start."""
        if self._extractor is not None:
            self._stopping.set()
            self._extractor.stop()
            self._woken.set()
            self._thread.join(self._settings.stop)

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._work()
        finally:
            self._turn.release(force=True)

    def _work(self) -> None:
        """Do the next job, or wait for one."""
        self._woken.clear()
        try:
            may = self._may_learn() and self._has_turn()
            job = self._queue.next(time.time()) if may else None
            if job is None:
                self._woken.wait(self._settings.poll)
            elif self._extractor is not None:
                self._attempt(self._extractor, job)
        except StoreClosed:
            self._stopping.set()
        except (ServiceError, StoreError) as error:
            self._stand_still(error)

    def _may_learn(self) -> bool:
        return self._extractor is not None and self._configuration.may_learn()

    def _has_turn(self) -> bool:
        if self._turn.is_locked:
            return True
        try:
            self._turn.acquire()
        except filelock.Timeout:
            return False
        except OSError as error:
            raise StoreError(f"{self._turn.lock_file}: cannot be locked ({error}).") from error
        return True

    def _attempt(self, extractor: Extractor, job: ExtractionJob) -> None:
        try:
            extractor.do(job, group=self._settings.group)
        except (StoreError, ServiceUnavailable):
            raise
        except Exception as error:  # outermost: counted against the job, and logged
            if isinstance(error, ServiceRefusal) and error.status in _REFUSED_TO_ALL:
                raise
            self._put_off(job, error)
        self._failures, self._out_of_order = 0, None

    def _put_off(self, job: ExtractionJob, error: Exception) -> None:
        attempts = job.attempts + 1
        fields = {"job": job.id, "attempts": attempts, "reason": _reason(error)}
        if attempts < self._settings.attempts:
            self._queue.put_off(job, due=time.time() + self._settings.wait(attempts))
            _log.warning("extraction failed", extra={"fields": fields}, exc_info=error)
        else:
            self._queue.give_up(job, _reason(error))
            _log.error("extraction given up", extra={"fields": fields}, exc_info=error)

    def _stand_still(self, error: EkphoryError) -> None:
        self._failures += 1
        self._out_of_order = _reason(error)
        fields = {"reason": self._out_of_order, "failures": self._failures}
        _log.warning("extraction stands still", extra={"fields": fields}, exc_info=error)
        self._stopping.wait(self._settings.wait(self._failures))


def _reason(error: Exception) -> str:
    """Say what went wrong without a text that was stored or answered, and without addresses."""
    if isinstance(error, ServiceRefusal):
        return f"a model's service refused (status {error.status})"
    if isinstance(error, InvalidInput):
        return f"a feature cannot be kept: its {error.field}"
    return next(reason for kind, reason in _REASONS if isinstance(error, kind))
