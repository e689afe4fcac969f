"""What a hook does: it recalls for a prompt, and notes what is to be captured.

A hook never fails its host: whatever goes wrong is noted, `ekphory hook status` tells it, and the
host gets nothing. It never waits for a capture either: that is done afterwards, by whoever keeps
the store open.
"""

from __future__ import annotations

import contextlib
import fnmatch
import getpass
import logging
import os
import re
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from ekphory.capture import clean_messages, clean_text, read_messages, redact, values_of
from ekphory.config import read_recorded
from ekphory.errors import StoreError
from ekphory.hooks.hosts import EventName, HookPayload, Host, format_reply, read_payload
from ekphory.hooks.repository import GIT_SECONDS, find_project
from ekphory.hooks.state import PLACE, HookEvent, HookState, Waiting
from ekphory.hooks.transcripts import read_end, read_lines, read_transcript
from ekphory.memory import Memory
from ekphory.models.captures import MOST_REACHED, bundled_capture_reader
from ekphory.models.reranker import RerankPassage, RerankQuery, bundled_reranker
from ekphory.resident import WAITS_UNTIL
from ekphory.scope import DEFAULT_NAME
from ekphory.types import Hit, is_pinned

LEAST_PROBABILITY = 0.2
LEAST_RELEVANCE = 0.03
"""By the reranker, which reads a prompt and a memory together. A search's probability supposes that
some memory answers; most prompts ask for none (`docs/decisions/0034-prompts-that-ask-nothing.md`).
"""
MOST_TOKENS = 600
MOST_RECALLED = 6
_LONGEST_PROMPT = 2_000
"""Characters of a prompt that are searched for; what is pasted behind it is not a question."""
_READ_OF_A_DIALOGUE = 64_000
"""Bytes at the end of a transcript in which a memory is looked for before it is told."""
_LOOKED_BACK = 256
"""Messages before those that are new in which secrets are looked for, to know them again."""
_LEAST_COPIED = 2
"""Messages that two sessions have in common if one is a copy; a single moment may be a chance."""
_WORD = re.compile(r"[^\W\d_]+")
IGNORE_FILE = ".ekphoryignore"
_GIT_SECONDS_AT_AN_END = 10.0
OpenStore = Callable[..., Memory]
"""Opens the store with a scope: `project`, `user`, `agent`."""


def is_ignored(folder: Path) -> bool:
    """Return whether a file `.ekphoryignore` here or anywhere above leaves the whole folder out.

    An empty file does, and one with a pattern that matches the folder's path below it.
    """
    return any(_leaves_out(file, folder.resolve()) for file in _find_ignore_files(folder))


def _leaves_out(file: Path, folder: Path) -> bool:
    below = folder.relative_to(file.parent).as_posix()
    return not file.read_bytes().strip() or any(
        pattern in ("*", "/") or fnmatch.fnmatch(f"{below}/", f"{pattern.rstrip('/')}/*")
        for pattern in read_patterns(file)
    )


def find_patterns(folder: Path) -> list[str]:
    """Return the patterns of paths that are left out of what is captured in a folder."""
    return [each for file in _find_ignore_files(folder) for each in read_patterns(file)]


def _find_ignore_files(folder: Path) -> list[Path]:
    """Return the files of a folder and of all above it, a repository within another among them."""
    folder = folder.resolve()
    places = (place / IGNORE_FILE for place in (folder, *folder.parents))
    return [file for file in places if file.is_file()]


def read_patterns(file: Path) -> list[str]:
    """Return the lines of a file that are neither empty nor comments."""
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def names_ignored(text: str, patterns: Sequence[str]) -> bool:
    """Return whether a text names a path that one of the patterns matches, or one below it."""
    words = [word.strip("`'\"(),;:") for word in text.split()]
    named = [pattern.rstrip("/") for pattern in patterns]
    return any(
        fnmatch.fnmatch(word, f"{before}{pattern}{behind}")
        for word in words
        if "." in word or "/" in word
        for pattern in named
        for before in ("", "*/")
        for behind in ("", "/*")
    )


# A hook.


@dataclass(frozen=True, slots=True)
class HookRun:
    """One run of a hook.

    Attributes:
        host: The tool.
        event: What happened in it.
        state: Of the store's hooks.
        open_store: Opens the store.
        project: Whose memories; None finds it by the session's folder.
        org: The organisation that they belong to.
        least_probability: What the search finds less likely to answer is not recalled.
        least_relevance: Nor is what the reranker finds less relevant.
    """

    host: Host
    event: EventName
    state: HookState
    open_store: OpenStore
    project: str | None = None
    org: str | None = None
    least_probability: float = LEAST_PROBABILITY
    least_relevance: float = LEAST_RELEVANCE

    def reply(self, payload: str) -> str:
        """Do what the event asks for; return what the host is told. Nothing is raised."""
        started = time.perf_counter()
        project, did, failure, told = "", "", None, ""
        try:
            given = read_payload(payload)
            seconds = GIT_SECONDS if self.event == "prompt" else _GIT_SECONDS_AT_AN_END
            project = self.project or find_project(given.folder, seconds=seconds)
            did, told = self._act(given, project)
        except Exception as error:  # noqa: BLE001  a hook never fails its host; it is noted
            failure = _describe(error)
        _note(self.state, started, (self.host.name, self.event, project), did, failure)
        return told

    def _act(self, given: HookPayload, project: str) -> tuple[str, str]:
        """Return what was done, in words, and what the host is told."""
        if why := self._left_to_others(given):
            return why, ""
        if why := self._left_out(given):
            if self.event not in ("prompt", "session-start"):
                self._pass_over(given)
            return why, ""
        if self.event == "prompt":
            return self._recall(given, project)
        if self.event == "session-start":
            return "noted", ""
        return self._keep(given, project), ""

    def _left_to_others(self, given: HookPayload) -> str:
        """Return why this is another hook's, or nobody's; empty where it is not."""
        if os.environ.get("CURSOR_VERSION") and self.host.name == "claude-code":
            return "left to Cursor's own hook"
        if given.is_of_a_helper:
            return "left out: it is not the user's session"
        return ""

    def _left_out(self, given: HookPayload) -> str:
        """Return why nothing is to be kept or recalled; empty where something is."""
        if self.state.paused_until() is not None:
            return "paused"
        return f"left out by {IGNORE_FILE}" if is_ignored(given.folder) else ""

    def _pass_over(self, given: HookPayload) -> None:
        """Note that what was said until now is not to be captured later either."""
        if given.messages is not None:
            messages = list(read_lines(given.messages))
        elif given.transcript is not None and given.transcript.is_file():
            messages = read_transcript(given.transcript)
        else:
            return
        self.state.note_captured(self.host.name, given.session, name_messages(messages))

    def _recall(self, given: HookPayload, project: str) -> tuple[str, str]:
        asked = given.prompt[:_LONGEST_PROMPT].strip()
        if not asked:
            return "nothing was asked", ""
        if read_recorded():
            asked = clean_text(asked)  # it is written into a file
        known = self.state.recalled(self.host.name, given.session)
        found = []
        asks = asks_for_something(asked)
        of_the_user = {"project": DEFAULT_NAME, "user": getpass.getuser()}
        for each in ({"project": project}, of_the_user):
            with self.open_store(org=self.org, **each) as memory:
                result = memory.search(asked, k=2 * MOST_RECALLED)
            hits = tuple(
                hit
                for hit in result.hits
                if ((asks and hit.score >= self.least_probability) or is_pinned(hit.memory))
                and hit.id not in known
                and hit.memory.session != given.session
            )
            found.append(replace(result, hits=hits))
        by_text = {hit.text: hit for result in reversed(found) for hit in reversed(result.hits)}
        shown = find_shown(by_text, read_dialogue(given) if by_text else [])
        by_text = {text: hit for text, hit in by_text.items() if text not in shown}
        rules = [hit for hit in by_text.values() if is_pinned(hit.memory)]
        best = sorted(
            (hit for hit in by_text.values() if not is_pinned(hit.memory)),
            key=lambda hit: -hit.score,
        )
        best = rules + self._find_relevant(asked, best[:MOST_RECALLED])
        chosen = replace(found[0], hits=tuple(best), abstained=not best)
        block = chosen.prompt_block(MOST_TOKENS)
        told = [hit.id for hit in block.included]
        if not told:
            return "recalled nothing", ""
        if time.time() > float(os.environ.get(WAITS_UNTIL, "inf")):
            return "recalled too late", ""  # nobody reads it, so that it may be told later
        self.state.note_recalled(self.host.name, given.session, told)
        reply = format_reply(self.host, self.event, block.text)
        return f"recalled {len(told)} of {len(best)}", reply

    def _find_relevant(self, asked: str, hits: Sequence[Hit]) -> list[Hit]:
        """Return those that the bundled reranker finds relevant; all where there is none."""
        reader = bundled_reranker() if hits and self.least_relevance > 0 else None
        if reader is None:
            return list(hits)
        passages = [RerankPassage(f"{hit.memory.producer}: {hit.text}") for hit in hits]
        scores = reader.score(RerankQuery(asked), passages)
        return [hit for hit, at in zip(hits, scores, strict=True) if at >= self.least_relevance]

    def _keep(self, given: HookPayload, project: str) -> str:
        """Note what is to be captured, so that a process that is killed loses nothing."""
        messages = None
        if given.messages is not None:
            messages = _without_paused(list(read_lines(given.messages)), self.state)
            known = find_captured(self.state, self.host.name, given.session, messages)
            messages = _clean(messages, known)
        elif given.transcript is None or not given.transcript.is_file():
            return "no transcript"
        self.state.add_waiting(
            Waiting(
                id=0,
                host=self.host.name,
                session=given.session,
                org=self.org,
                project=project,
                folder=str(given.folder),
                transcript=None if given.transcript is None else str(given.transcript),
                messages=messages,
            )
        )
        return "noted for capture"


def read_dialogue(given: HookPayload) -> list[str]:
    """Return what the model has before it: the prompt, and the end of what was said before."""
    said = list(read_lines(given.messages or ()))
    # A transcript that cannot be read shows nothing; no host fails for it.
    with contextlib.suppress(OSError):
        if given.transcript is not None and given.transcript.is_file():
            said += read_end(given.transcript, _READ_OF_A_DIALOGUE)
    return [given.prompt, *(each["content"] for each in said)]


def asks_for_something(prompt: str) -> bool:
    """Return whether a prompt has a word that does more than to go on, agree or thank."""
    return not _read_assents().issuperset(_WORD.findall(prompt.lower()))


@cache
def _read_assents() -> frozenset[str]:
    languages = tomllib.loads(files(__package__).joinpath("assents.toml").read_text("utf-8"))
    return frozenset(word for words in languages.values() for word in words.split())


def find_shown(texts: Iterable[str], dialogue: Sequence[str]) -> set[str]:
    """Return those texts that stand in a dialogue, whatever their case and white space."""
    said = [" ".join(each.casefold().split()) for each in dialogue]
    return {text for text in texts if _stands_in(text, said)}


def _stands_in(text: str, said: Sequence[str]) -> bool:
    words = " ".join(text.casefold().split())
    whole = re.compile(rf"(?<!\w){re.escape(words)}(?!\w)")
    # The pattern is slow, and nearly every message lacks the words.
    return any(words in each and whole.search(each) for each in said)


def _describe(error: Exception) -> str:
    """Return what went wrong, without what may be a secret of somebody's."""
    return redact(f"{type(error).__name__}: {error}")[0].encode("utf-8", "replace").decode()


def _note(
    state: HookState, started: float, which: tuple[str, str, str], did: str, failure: str | None
) -> None:
    """Note what the hook of a host, an event and a project did since it was started."""
    took = round(1000 * (time.perf_counter() - started), 1)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    # Where nothing can be written, nothing can be noted.
    with contextlib.suppress(StoreError, OSError, UnicodeError):
        state.note_event(HookEvent(now, *which, took, did, failure))


def name_messages(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what names each message: its moment and role, or else its place; nothing of its text.

    Several of the same moment and role are numbered.
    """
    seen: Counter[str] = Counter()
    names = []
    for place, each in enumerate(messages):
        name = f"{each['role']} {each['at']}" if "at" in each else f"{PLACE}{place}"
        names.append(f"{name} {seen[name]}" if seen[name] else name)
        seen[name] += 1
    return names


def find_captured(
    state: HookState, host: str, session: str, messages: Sequence[Mapping[str, Any]]
) -> set[str]:
    """Return what names the messages of a session that are captured.

    A session that was resumed under another id, or forked, begins with a copy of what was said
    before; that is captured once, and may have been forgotten since.
    """
    known = state.captured(host, session)
    first = messages[:_LEAST_COPIED]
    if known or len(first) < _LEAST_COPIED or not all("at" in each for each in first):
        return known
    return state.captured_elsewhere(host, name_messages(first))


def find_new(names: Sequence[str], known: Set[str]) -> list[range]:
    """Return the places of the messages that are not captured, those that follow each other as one.

    After a compaction or a step back, something new may stand before what is captured. That is not
    read again: it may have been forgotten since.
    """
    captured = [place for place, name in enumerate(names) if name in known]
    starts, ends = [0, *(place + 1 for place in captured)], [*captured, len(names)]
    return [range(start, end) for start, end in zip(starts, ends, strict=True) if start < end]


def _without_paused(messages: list[dict[str, Any]], state: HookState) -> list[dict[str, Any]]:
    """Return messages, those without text that were said while hooks were paused.

    No hook may have run meanwhile: a turn is interrupted, or ends after the pause.
    """
    pauses = state.pauses()
    return [{**each, "content": ""} if _is_within(each, pauses) else each for each in messages]


def _is_within(message: Mapping[str, Any], spans: Sequence[tuple[datetime, datetime]]) -> bool:
    if not spans or "at" not in message:
        return False
    at = datetime.fromisoformat(message["at"])
    return any(start <= at <= end for start, end in spans)


def _clean(messages: list[dict[str, Any]], known: Set[str]) -> list[dict[str, Any]]:
    """Return messages whose secrets are cut out, those that are captured already without text."""
    new = find_new(name_messages(messages), known)
    start = max(0, (new[0].start if new else len(messages)) - 2 * MOST_REACHED)
    given = read_messages(messages[start:])
    before = read_messages(messages[max(0, start - _LOOKED_BACK) : start])
    cleaned = clean_messages(given, bundled_capture_reader(), known=values_of(before)).messages
    return [
        *({**each, "content": ""} for each in messages[:start]),
        *(
            {**each, "content": clean.message.text}
            for each, clean in zip(messages[start:], cleaned, strict=True)
        ),
    ]


# What is captured afterwards.


def capture_waiting(state: HookState, open_store: OpenStore) -> int:
    """Capture all that hooks have noted; return how many sessions that were.

    Whatever fails stays noted, and is tried again with the next hook of its session.
    """
    done = 0
    for each in state.waiting():
        started = time.perf_counter()
        did, failure = "", None
        try:
            did = _capture_alone(each, state, open_store)
            done += 1
        except Exception as error:  # noqa: BLE001  noted, and tried again
            failure = _describe(error)
        _note(state, started, (each.host, "capture", each.project), did, failure)
    return done


def _capture_alone(waiting: Waiting, state: HookState, open_store: OpenStore) -> str:
    with state.hold_captures():
        if not state.is_waiting(waiting.id):
            return "captured or forgotten meanwhile"
        did = _capture(waiting, state, open_store)
        state.drop_waiting(waiting.id)
    return did


def leave_out_waiting(
    state: HookState, *, org: str | None, project: str | None, session: str
) -> None:
    """Note that what waits of a session is not to be captured, and wipe it.

    None leaves the organisation, or the project, open.
    """
    for each in state.waiting():
        is_meant = org in (None, each.org or DEFAULT_NAME) and project in (None, each.project)
        if each.session == session and is_meant:
            messages = _messages_of(each)
            state.note_captured(each.host, session, name_messages(messages or ()))
            state.drop_waiting(each.id)


def _messages_of(waiting: Waiting) -> list[dict[str, Any]] | None:
    """Return the messages that wait; None where their transcript is gone."""
    path = Path(waiting.transcript or "")
    if waiting.messages is None and path.is_file():
        return read_transcript(path)
    return waiting.messages


def _capture(waiting: Waiting, state: HookState, open_store: OpenStore) -> str:
    messages = _messages_of(waiting)
    if messages is None:
        return "the transcript is gone"
    messages = _without_paused(messages, state)
    names = name_messages(messages)
    known = find_captured(state, waiting.host, waiting.session, messages)
    known |= state.captured_by_hand(waiting.org, waiting.project, waiting.session)
    new = find_new(names, known)
    if not new:
        state.note_captured(waiting.host, waiting.session, names)  # there may be fewer than before
        return "nothing new"
    patterns = find_patterns(Path(waiting.folder))
    told = [
        {**each, "content": ""} if names_ignored(each["content"], patterns) else each
        for each in messages
    ]
    scope = {"org": waiting.org, "project": waiting.project, "agent": waiting.host}
    with open_store(user=getpass.getuser(), **scope) as memory:
        capture = partial(memory.capture, session=waiting.session, source=waiting.host)
        reports = [capture(told[: each.stop], since=each.start) for each in new]
    state.note_captured(waiting.host, waiting.session, names)
    kept = sum(len(each.kept) for each in reports)
    redactions = sum(each.redactions for each in reports)
    redacted = f", {redactions} secrets cut out" if redactions else ""
    return f"captured {kept} of {sum(map(len, new))} messages{redacted}"


Job = Callable[[], object]
_log = logging.getLogger("ekphory")


class CaptureWorker:
    """Runs jobs one after the other; what waits twice under one name runs once."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "ekphory-captures")
        self._jobs: dict[str, Job] = {}
        self._guard = threading.Lock()

    def add(self, name: str, job: Job) -> None:
        """Run a job soon."""
        with self._guard:
            if name not in self._jobs:
                self._thread.submit(self._run, name)
            self._jobs[name] = job

    def close(self) -> None:
        """Run what waits, and end."""
        self._thread.shutdown()

    def _run(self, name: str) -> None:
        with self._guard:
            job = self._jobs.pop(name)
        try:
            job()
        except Exception as error:  # noqa: BLE001  the next hook tries again
            _log.warning("a capture failed, which is tried again: %s", error)


_installed: list[CaptureWorker] = []


def install_worker(worker: CaptureWorker) -> None:
    """Let this process capture in a thread of its own; the resident process does."""
    _installed.append(worker)


def find_worker() -> CaptureWorker | None:
    """Return what captures in this process; None where a process of its own has to."""
    return _installed[-1] if _installed else None
