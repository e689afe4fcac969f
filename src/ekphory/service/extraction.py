"""Extraction: an episode is handed over, and a language model is asked what it says."""

from __future__ import annotations

import json
import logging
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import filelock

from ekphory import errors
from ekphory.catalog.extraction import (
    Consolidations,
    ExtractionJob,
    ExtractionQueue,
    FailedExtraction,
    FeatureGroup,
)
from ekphory.http_service import ServiceRefusal, ServiceUnavailable
from ekphory.models.chat import Chat, ChatMessage, ChatOptions
from ekphory.prompting.injection import neutralise_markers
from ekphory.service.configuration import Configuration
from ekphory.service.handles import Handles, Place, Reach
from ekphory.service.learning import (
    MERGING_SCHEMA,
    ExtractionSettings,
    Learning,
    Merger,
    Target,
    answer_schema,
    read_commands,
    read_mergers,
)
from ekphory.service.semantic import Feature
from ekphory.service.sets import Category, SemanticSet, Tag
from ekphory.types import MemoryRecord

_log = logging.getLogger("ekphory.extraction")

# The prompts: a task in our words, and beside it stored text as data.

OPTIONS = ChatOptions(max_tokens=2_000, temperature=0.0)
LONGEST_PART = 8_000
"""A message of more characters is read in parts, one after the other."""
_DATA = "data"
_PROMPTS = tomllib.loads(files(__package__).joinpath("learning_prompts.toml").read_text("utf-8"))


def learning_prompt(
    category: Category, tags: Sequence[Tag], known: Sequence[Feature], message: dict[str, str]
) -> tuple[ChatMessage, ...]:
    """Ask what a message changes in the features of a category."""
    told = "\n".join(f"- {tag.name}: {tag.description}" for tag in tags)
    system = _PROMPTS["learn"].format(
        purpose=category.prompt,
        tags=(told and f"{told}\nUse no others.") or "Choose short ones, and use noted ones again.",
        untrusted=_PROMPTS["untrusted"],
    )
    noted = [{"tag": each.tag, "feature": each.name, "value": each.value} for each in known]
    return _format_prompt(system, {"noted": noted, "message": message})


def merging_prompt(
    category: Category, tag: str, features: Sequence[Feature]
) -> tuple[ChatMessage, ...]:
    """Ask which features under a tag are to be merged; they are numbered from 1."""
    system = _PROMPTS["merge"].format(purpose=category.prompt, untrusted=_PROMPTS["untrusted"])
    noted = [
        {"number": number, "feature": each.name, "value": each.value}
        for number, each in enumerate(features, start=1)
    ]
    return _format_prompt(system, {"tag": tag, "noted": noted})


def message_parts(record: MemoryRecord) -> Iterator[dict[str, str]]:
    """Return an episode as a model is shown it; a long one in parts."""
    about = {"said_at": record.at.isoformat(), "said_by": record.producer, "role": record.role}
    given = {name: value for name, value in about.items() if value}
    for start in range(0, max(len(record.text), 1), LONGEST_PART):
        yield {**given, "text": record.text[start : start + LONGEST_PART]}


def _format_prompt(system: str, data: dict[str, Any]) -> tuple[ChatMessage, ...]:
    # No tag can be closed and no chat turn opened from inside of the JSON.
    written = neutralise_markers(json.dumps(data, ensure_ascii=False, indent=1))
    written = written.replace("<", "\\u003c").replace(">", "\\u003e")
    return (ChatMessage("system", system), ChatMessage("user", f"<{_DATA}>\n{written}\n</{_DATA}>"))


# The work.

_MOST_NOTED = 50
"""So many features of a category are told to the model, those nearest to the message."""
_MOST_MERGED = 200


class Unwanted(errors.EkphoryError):
    """Nothing is wanted of a job any more, or not now."""


@dataclass(frozen=True, slots=True)
class _Task:
    """A job with what it is about."""

    job: ExtractionJob
    place: Place
    episode: MemoryRecord


class Extractor:
    """Does the jobs of a queue, one at a time."""

    def __init__(
        self,
        chat: Callable[[SemanticSet], Chat | None],
        queue: ExtractionQueue,
        *,
        handles: Handles,
        learning: Learning,
        consolidations: Consolidations,
    ) -> None:
        """Take what is needed; `chat` returns the language model of a set, None without one."""
        self._chat = chat
        self._queue = queue
        self._handles = handles
        self._learning = learning
        self._consolidations = consolidations
        self._writing = threading.Lock()
        self._stopped = threading.Event()

    def do(self, job: ExtractionJob, *, group: int) -> None:
        """Learn from one episode, and take its job out of the queue, unless `stop` was called.

        Args:
            job: The job; steps that are done are not done again.
            group: So many features under one tag are put in order.

        Raises:
            ServiceError: The model failed, refused, or answered what cannot be used.
            EkphoryError: Something could not be read or written.
        """
        episode = self._episode(job)
        if episode is not None:
            place = Place(job.org, job.project, cast("Reach", job.reach))
            try:
                self._learn_all(_Task(job, place, episode), group)
            except Unwanted:
                if self._stopped.is_set():
                    return
        self._queue.finish(job)

    def drop(self, place: Place) -> None:
        """Take a project's jobs out of the queue.

        Once this returns, this process writes nothing for them; another one takes back the
        features that it was adding.
        """
        with self._writing:
            self._queue.drop(place.owner)

    def stop(self) -> None:
        """Let nothing be written any more."""
        with self._writing:
            self._stopped.set()

    def _learn_all(self, task: _Task, group: int) -> None:
        targets = self._learning.targets(task.place, task.episode)
        changed = [target for target in targets if self._learn(task, target)]
        # An earlier attempt may have come to an end behind its last step.
        for target in targets if task.job.attempts or task.job.done else changed:
            self._put_in_order(task, target, group)

    def _learn(self, task: _Task, target: Target) -> bool:
        """Ask what the message changes for a target; return whether that is anything."""
        chat, changed = self._chat(target.owner), False
        if chat is None:
            return False
        for number, part in enumerate(message_parts(task.episode)):
            step = _step(target, number)
            if step in task.job.done:
                continue
            noted = self._learning.noted(target, like=part["text"], limit=_MOST_NOTED)
            prompt = learning_prompt(target.category, target.tags, noted, part)
            answer = chat.complete_json(prompt, answer_schema(target.tags), options=OPTIONS)
            commands = read_commands(answer)
            with self._still_wanted(task.job):
                new = self._learning.carry_out(task.place, target, task.episode, commands)
                self._queue.note_done(task.job, step)
                if not self._queue.holds(task.job):  # another process has dropped it meanwhile
                    self._learning.take_back(task.place, new)
                    raise Unwanted
            changed = changed or bool(commands)
        return changed

    def _put_in_order(self, task: _Task, target: Target, group: int) -> None:
        """Merge what says the same, wherever a tag has gathered `group` features since."""
        for tag, learnt in self._learning.by_tag(target).items():
            key = FeatureGroup(*target.owner.key, target.category.name, tag, target.user)
            if len(learnt) < self._left_before(task.job, key, now=len(learnt)) + group:
                continue
            mergers = self._mergers(target, tag, learnt[-_MOST_MERGED:])
            with self._still_wanted(task.job):
                for merger in mergers:
                    self._learning.merge(task.place, merger)
                left = len(learnt) - sum(len(each.features) - 1 for each in mergers)
                self._consolidations.note(key, left)

    def _left_before(self, job: ExtractionJob, key: FeatureGroup, *, now: int) -> int:
        """Return how many were left of a group when it was put in order, and are not gone since."""
        before = self._consolidations.size(key)
        if now >= before:
            return before
        with self._still_wanted(job):
            self._consolidations.note(key, now)
        return now

    def _mergers(self, target: Target, tag: str, features: Sequence[Feature]) -> list[Merger]:
        """Ask what is to be merged; where the answer cannot be used, nothing for now.

        What was learnt stands already: a message must not fail, nor others wait, for its order.
        """
        chat = self._chat(target.owner)
        if chat is None:
            return []
        prompt = merging_prompt(target.category, tag, features)
        try:
            answer = chat.complete_json(prompt, MERGING_SCHEMA, options=OPTIONS)
            return read_mergers(answer, features)
        except (ServiceUnavailable, ServiceRefusal):
            raise
        except errors.ServiceError as error:
            fields = {"features": len(features)}
            _log.warning("features not put in order", extra={"fields": fields}, exc_info=error)
            return []

    @contextmanager
    def _still_wanted(self, job: ExtractionJob) -> Iterator[None]:
        with self._writing:
            gone = not self._queue.holds(job) or self._episode(job) is None
            if gone or self._stopped.is_set():
                raise Unwanted
            yield

    def _episode(self, job: ExtractionJob) -> MemoryRecord | None:
        with self._handles.episodes(Place(job.org, job.project)) as memory:
            try:
                return memory.get(job.episode)
            except errors.MemoryNotFound:
                return None


def _step(target: Target, part: int) -> str:
    owner = target.owner
    return "\n".join((owner.project or "", owner.id, target.category.name, str(part)))


# The queue: an episode is handed over, and a thread works through what was handed over.

LOCK_FILE = ".ekphory-extraction.lock"
# Whoever asks is refused so, whatever is asked: a wrong key, an unknown model, no credit left.
_REFUSED_TO_ALL = (
    *(HTTPStatus.UNAUTHORIZED, HTTPStatus.PAYMENT_REQUIRED, HTTPStatus.FORBIDDEN),
    *(HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED),
)


_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (ServiceUnavailable, "a model cannot be reached, or is busy"),
    (errors.ServiceError, "a model refused, or gave no usable answer"),
    (errors.StoreError, "the store cannot be read or written"),
    (errors.EkphoryError, "a feature cannot be kept"),
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
        extractor: Extractor,
        configuration: Configuration,
        *,
        folder: Path,
        settings: ExtractionSettings,
    ) -> None:
        """Let the thread run, if there is anything to be learnt.

        Args:
            queue: What is to be done.
            extractor: Does it.
            configuration: Says whether there is a language model now, and what it waits for.
            folder: Where the processes of one catalog agree on which of them works.
            settings: What is learnt, and how often and how long it is tried.
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
        if settings.learnt != "off":
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
        except errors.StoreError as error:
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
        self._extractor.drop(place)

    def close(self) -> None:
        """End the learning; what is under way is done again after the next start."""
        if self._settings.learnt != "off":
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
            else:
                self._attempt(job)
        except errors.StoreClosed:
            self._stopping.set()
        except (errors.ServiceError, errors.StoreError) as error:
            self._stand_still(error)

    def _may_learn(self) -> bool:
        return self._settings.learnt != "off" and self._configuration.may_learn()

    def _has_turn(self) -> bool:
        if self._turn.is_locked:
            return True
        try:
            self._turn.acquire()
        except filelock.Timeout:
            return False
        except OSError as error:
            raise errors.StoreError(
                f"{self._turn.lock_file}: cannot be locked ({error})."
            ) from error
        return True

    def _attempt(self, job: ExtractionJob) -> None:
        try:
            self._extractor.do(job, group=self._settings.group)
        except (errors.StoreError, ServiceUnavailable):
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

    def _stand_still(self, error: errors.EkphoryError) -> None:
        self._failures += 1
        self._out_of_order = _reason(error)
        fields = {"reason": self._out_of_order, "failures": self._failures}
        _log.warning("extraction stands still", extra={"fields": fields}, exc_info=error)
        self._stopping.wait(self._settings.wait(self._failures))


def _reason(error: Exception) -> str:
    """Say what went wrong without a text that was stored or answered, and without addresses."""
    if isinstance(error, ServiceRefusal):
        return f"a model's service refused (status {error.status})"
    if isinstance(error, errors.InvalidInput):
        return f"a feature cannot be kept: its {error.field}"
    return next(reason for kind, reason in _REASONS if isinstance(error, kind))
