"""One episode after another: what it says is asked of a language model."""

from __future__ import annotations

import json
import logging
import threading
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, cast

from ekphory.catalog.extraction import Consolidations, ExtractionJob, ExtractionQueue, FeatureGroup
from ekphory.errors import EkphoryError, MemoryNotFound, ServiceError
from ekphory.http_service import ServiceRefusal, ServiceUnavailable
from ekphory.models.chat import Chat, ChatMessage, ChatOptions
from ekphory.prompting.injection import neutralise_markers
from ekphory.service.handles import Handles, Place, Reach
from ekphory.service.learning import (
    MERGING_SCHEMA,
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
    return (
        ChatMessage("system", system),
        ChatMessage("user", f"<{_DATA}>\n{written}\n</{_DATA}>"),
    )


# The work.

_log = logging.getLogger("ekphory.extraction")
_MOST_NOTED = 50
"""So many features of a category are told to the model, those nearest to the message."""
_MOST_MERGED = 200


class Unwanted(EkphoryError):
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
            answer = chat.complete_json(
                learning_prompt(target.category, target.tags, noted, part),
                answer_schema(target.tags),
                options=OPTIONS,
            )
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
            key = _group(target, tag)
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
        try:
            answer = chat.complete_json(
                merging_prompt(target.category, tag, features), MERGING_SCHEMA, options=OPTIONS
            )
            return read_mergers(answer, features)
        except (ServiceUnavailable, ServiceRefusal):
            raise
        except ServiceError as error:
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
            except MemoryNotFound:
                return None


def _group(target: Target, tag: str) -> FeatureGroup:
    return FeatureGroup(*target.owner.key, target.category.name, tag, target.user)


def _step(target: Target, part: int) -> str:
    owner = target.owner
    return "\n".join((owner.project or "", owner.id, target.category.name, str(part)))
