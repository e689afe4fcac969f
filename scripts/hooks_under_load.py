"""Run hooks of several sessions at once while their resident process is killed again and again.

`python -m scripts.hooks_under_load --minutes 60` plays written sessions side by side, kills the
process with SIGKILL at random moments, and then compares the store with one into which the same
transcripts were captured in one go. It prints one JSON document, and ends with 1 where a message
was lost or kept twice.
"""

from __future__ import annotations

import argparse
import getpass
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from scripts.hook_sessions import (
    PROJECT,
    HookHome,
    find_turns,
    read_session,
    transcript_lines,
    write_lines,
)

from ekphory.hooks.running import name_messages
from ekphory.hooks.transcripts import read_transcript
from ekphory.memory import Memory

HOST = "claude-code"
_BETWEEN_KILLS = (1.0, 15.0)
_BETWEEN_TURNS = (0.0, 2.0)
_HELPING_SECONDS = 15.0
"""So often another hook is run when kills are over, which captures what still waits."""
_END_SECONDS = 600.0
Kept = Counter[tuple[str | None, str]]
"""How often each text of each session was kept."""


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What became of the messages.

    Attributes:
        minutes: How long hooks ran.
        kills: How often the resident process was killed.
        hooks: How many events were answered.
        sessions: How many there were.
        messages: That their transcripts held before the last answered event.
        not_captured: Those that no capture has read.
        kept_in_one_go: Memories that a capture without kills makes of them.
        lost: Those of them that are not there.
        beside: Memories that are there, and that a capture in one go does not make.
        doubled: Memories that are there more than once.
        failures: What hooks noted as failed, and how often.
        died: Hook commands that ended with an error, which no hook may.
        slowest_ms: How long the slowest hook took its tool.
    """

    minutes: float
    kills: int
    hooks: int
    sessions: int
    messages: int
    not_captured: int
    kept_in_one_go: int
    lost: int
    beside: int
    doubled: int
    failures: dict[str, int]
    died: int
    slowest_ms: int

    @property
    def holds(self) -> bool:
        """Whether nothing was lost and nothing kept twice."""
        return not (self.not_captured or self.lost or self.doubled)


class Player(threading.Thread):
    """Plays written sessions one after the other until it is told to end."""

    def __init__(self, home: HookHome, number: int, ended: threading.Event) -> None:
        super().__init__(name=f"player-{number}")
        self.transcripts: dict[str, Path] = {}
        self.taken: list[float] = []
        self.died = 0
        self._home, self._number, self._ended = home, number, ended
        self._random = random.Random(number)

    def run(self) -> None:
        """Play."""
        written = read_session()
        while not self._ended.is_set():
            session = f"p{self._number}-{len(self.transcripts)}"
            path = self.transcripts[session] = self._home.path / f"{session}.jsonl"
            path.touch()
            # No two begin at one moment: the later one would be taken for a copy of the other.
            after = timedelta(days=len(self.transcripts), seconds=self._number)
            began = datetime(2026, 1, 5, tzinfo=UTC) + after
            lines = transcript_lines(
                written.lines, session=session, folder=self._home.folder, began=began
            )
            for start, end in find_turns(written.lines):
                self._fire("prompt", session, prompt=written.lines[start].text)
                write_lines(path, lines[start:end])
                self._fire("turn-end", session)
                if self._ended.wait(self._random.uniform(*_BETWEEN_TURNS)):
                    break

    def _fire(self, event: str, session: str, **given: object) -> None:
        started = time.perf_counter()
        path = self.transcripts[session]
        while True:
            try:
                self._home.fire(event, session=session, transcript_path=path, **given)
                break
            except subprocess.CalledProcessError:
                self.died += 1  # killed by somebody else; the tool's next event comes
        self.taken.append(1000 * (time.perf_counter() - started))


def run_under_load(home: HookHome, *, minutes: float, players: int, seed: int) -> LoadReport:
    """Play sessions side by side, kill what captures them, and tell what became of them."""
    ended = threading.Event()
    threads = [Player(home, number, ended) for number in range(players)]
    for each in threads:
        each.start()
    kills = _kill_at_random(home, until=time.monotonic() + 60 * minutes, seed=seed)
    ended.set()
    for each in threads:
        each.join()
    transcripts = {name: path for each in threads for name, path in each.transcripts.items()}
    _let_captures_end(home, transcripts)
    home.stop()
    taken = [each for thread in threads for each in thread.taken]
    died = sum(each.died for each in threads)
    return _compare(home, transcripts, minutes=minutes, kills=kills, taken=taken, died=died)


def _kill_at_random(home: HookHome, *, until: float, seed: int) -> int:
    """Kill the resident process at random moments, at least once; return how often."""
    source = random.Random(seed)
    kills = 0
    while (left := until - time.monotonic()) > 0 or not kills:
        time.sleep(min(max(left, 1.0), source.uniform(*_BETWEEN_KILLS)))
        if (pid := home.find_resident()) is not None:
            os.kill(pid, signal.SIGKILL)
            kills += 1
    return kills


def _let_captures_end(home: HookHome, transcripts: Mapping[str, Path]) -> None:
    """Run further hooks, of another session, until all is captured or the time is up.

    A hook that got no answer in time is still being run by a process that nobody waits for.
    """
    end = time.monotonic() + _END_SECONDS
    while _missing(home, transcripts) and time.monotonic() < end:
        home.fire("session-start", session="afterwards")
        pause = time.monotonic() + _HELPING_SECONDS
        while _missing(home, transcripts) and time.monotonic() < pause:
            time.sleep(0.5)


def _missing(home: HookHome, transcripts: Mapping[str, Path]) -> int:
    """Return how many messages no capture has read."""
    missing = 0
    for session, path in transcripts.items():
        known = home.state.captured(HOST, session)
        missing += sum(name not in known for name in name_messages(read_transcript(path)))
    return missing


def _compare(
    home: HookHome,
    transcripts: Mapping[str, Path],
    *,
    minutes: float,
    kills: int,
    taken: Sequence[float],
    died: int,
) -> LoadReport:
    scope = {"project": PROJECT, "user": getpass.getuser(), "agent": HOST}
    messages = 0
    with Memory(home.path / "once", **scope) as memory:
        for session, path in transcripts.items():
            said = read_transcript(path)
            messages += len(said)
            memory.capture(said, session=session, source=HOST)
        once = _kept(memory)
    with Memory(home.store, **scope) as memory:
        there = _kept(memory)
    failures = home.state.events(limit=1_000, failed=True)
    return LoadReport(
        minutes=minutes,
        kills=kills,
        hooks=len(taken),
        sessions=len(transcripts),
        messages=messages,
        not_captured=_missing(home, transcripts),
        kept_in_one_go=once.total(),
        lost=(once - there).total(),
        beside=len(there.keys() - once.keys()),
        doubled=sum(count > once.get(name, 1) for name, count in there.items()),
        failures=dict(Counter(str(each.failure) for each in failures)),
        died=died,
        slowest_ms=round(max(taken, default=0.0)),
    )


def _kept(memory: Memory) -> Kept:
    return Counter((each.session, each.text) for each in memory.list(limit=1_000_000))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, and print what became of the messages."""
    parser = argparse.ArgumentParser(prog="python -m scripts.hooks_under_load", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--players", type=int, default=3, help="sessions at once")
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the kills")
    asked = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="ek"))
    home = HookHome(folder)
    try:
        report = run_under_load(home, minutes=asked.minutes, players=asked.players, seed=asked.seed)
    finally:
        home.stop()
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(asdict(report), indent=2))
    return 0 if report.holds else 1


if __name__ == "__main__":
    sys.exit(main())
