"""Kill a writing process again and again: what it was told is written is there, once; and purged.

Half of the kills come at a random moment, half at the moment in which a thread renames or links a
file for the first, second, … ninth time. After each, all memories are read: every acknowledged
write is there, once, and the write that was under way is there wholly or not at all. After every
fifth, half of the memories are purged, and then no file holds anything of what is gone.
"""

from __future__ import annotations

import json
import os
import queue
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

from scripts.attack.leftovers import (
    bytes_of,
    files_too_many,
    require_tracing,
    tokens_in,
    tokens_left,
)

from ekphory.filters.tree import Field, In
from ekphory.memory import Memory
from ekphory.testing import HashEmbedder

_RENAMES = "rename,renameat,renameat2,link,linkat"
_AT_RENAMES = (1, 2, 3, 4, 6, 9)
_KILLS_A_STORE = 25
_KILLS_A_PURGE = 5
_LONGEST_SECONDS = 1.5
_HANGS_AFTER = 60.0
_STARTS_WITHIN = 300.0


def run(*, rounds: int) -> dict[str, float]:
    """Kill so often; a twelfth of the rounds at each of six renames, half at random moments."""
    require_tracing()
    counts: Counter[str] = Counter()
    each = max(rounds // (2 * len(_AT_RENAMES)), 1)
    with tempfile.TemporaryDirectory(prefix="ekphory-kills-") as folder:
        for rename in _AT_RENAMES:
            _kill(Path(folder), each, rename, counts)
        _kill(Path(folder), rounds - each * len(_AT_RENAMES), None, counts)
    kinds = ("lost", "doubled", "torn", "foreign", "purge", "leftover", "hung", "failed")
    counted = ("kills", "at_renames", "acknowledged", "purged", "purges", "largest_bytes_left")
    return {f"kills.{name}": float(counts[name]) for name in counted} | {
        f"kills.{kind}_violations": float(counts[kind]) for kind in kinds
    }


class _Writers:
    """The process that forks writers, traced where they die at a rename."""

    def __init__(self, rename: int | None) -> None:
        inject = f"inject={_RENAMES}:signal=SIGKILL:when={rename}"
        tracing = ["strace", "-f", "-qq", "-o", "/dev/null"]
        tracing += ["-e", f"trace={_RENAMES}", "-e", inject]
        self._process = subprocess.Popen(
            [*(tracing if rename else []), sys.executable, "-m", "scripts.attack.killed_writer"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # Writing a compiled module renames a file, too.
            env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()
        if (said := self._next(time.monotonic() + _STARTS_WITHIN)) != "ready":
            raise RuntimeError(f"the writer must say that it is ready, said {said!r}")

    def killed(self, store: Path, seed: int, *, after: float | None) -> list[str] | None:
        """Let one write until it dies; None if it did not.

        Args:
            store: Where it writes.
            seed: Of what it writes.
            after: Seconds after its start at which it is killed; None where tracing kills it.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([str(store), seed]) + "\n")
        self._process.stdin.flush()
        until = time.monotonic() + _HANGS_AFTER
        started = self._next(until)
        assert started is not None
        child = int(started.split()[1])
        if after is not None:
            time.sleep(after)
            # One that ended by itself has failed, and is counted so.
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            until = time.monotonic() + _HANGS_AFTER
        said: list[str] = []
        while (line := self._next(until)) is not None:
            if line.startswith("ended"):
                said.append(line)
                return said
            said.append(line)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        while not (self._next(until + _HANGS_AFTER) or "ended").startswith("ended"):
            pass
        return None

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(_HANGS_AFTER)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put("ended without being asked")

    def _next(self, until: float) -> str | None:
        try:
            return self._lines.get(timeout=max(until - time.monotonic(), 0.001))
        except queue.Empty:
            return None


class _Book:
    """What a store must hold."""

    def __init__(self, counts: Counter[str]) -> None:
        self.texts: dict[str, str] = {}
        self._counts = counts

    def take_in(self, said: list[str], found: dict[str, list[str]]) -> None:
        """Compare what is stored with what the killed writer said, and take that as given."""
        under_way: dict[str, str] = {}
        for line in said:
            if line == "done":
                self._counts["acknowledged"] += len(under_way)
                self.texts |= under_way
                under_way = {}
            elif line.startswith("{") and line.endswith("}"):
                # A line that was cut off tells of a write that had not begun.
                under_way = json.loads(line)
        self._counts["doubled"] += sum(len(texts) > 1 for texts in found.values())
        stored = {name: texts[0] for name, texts in found.items()}
        written = {name for name, text in under_way.items() if stored.get(name) == text}
        self._counts["torn"] += 0 < len(written) < len(under_way)
        expected = self.texts | (under_way if written else {})
        self._counts["lost"] += sum(stored.get(name) != text for name, text in expected.items())
        self._counts["foreign"] += len(stored.keys() - expected.keys())
        self.texts = stored


def _kill(folder: Path, rounds: int, rename: int | None, counts: Counter[str]) -> None:
    drawn = random.Random(rename or 0)
    with closing(_Writers(rename)) as writers:
        for number in range(rounds):
            if number % _KILLS_A_STORE == 0:
                store = folder / f"{rename or 'moment'}-{number}"
                book = _Book(counts)
            after = None if rename else drawn.uniform(0.0, _LONGEST_SECONDS)
            said = writers.killed(store, drawn.getrandbits(63), after=after)
            counts["hung"] += said is None
            counts["kills"] += said is not None and said[-1] == f"ended {-signal.SIGKILL}"
            counts["failed"] += said is not None and said[-1] != f"ended {-signal.SIGKILL}"
            counts["at_renames"] += rename is not None
            book.take_in(said or [], _found(store))
            last = number % _KILLS_A_STORE == _KILLS_A_STORE - 1 or number == rounds - 1
            if last or number % _KILLS_A_PURGE == _KILLS_A_PURGE - 1:
                _purge(store, book, drawn, share=1.0 if last else 0.5, counts=counts)
            if number % 50 == 49:
                print(f"  at rename {rename}: {number + 1} of {rounds}", flush=True)


def _found(store: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    with Memory(store, embedder=HashEmbedder()) as memory:
        for record in memory.list(limit=1_000_000):
            found.setdefault(record.id, []).append(record.text)
    return found


def _purge(
    store: Path, book: _Book, drawn: random.Random, *, share: float, counts: Counter[str]
) -> None:
    gone = [name for name in sorted(book.texts) if drawn.random() < share]
    with Memory(store, embedder=HashEmbedder()) as memory:
        counts["purged"] += memory.forget(filter=In(Field("id"), tuple(gone)), purge=True)
        # What an update replaced is history, and stays until its memory is purged.
        kept = [past.text for name in book.texts.keys() - gone for past in memory.history(name)]
    for name in gone:
        del book.texts[name]
    counts["purges"] += 1
    counts["purge"] += len(tokens_left(store) - tokens_in([*kept, *book.texts.values()]))
    counts["leftover"] += len(files_too_many(store))
    if share == 1.0:
        counts["largest_bytes_left"] = max(counts["largest_bytes_left"], bytes_of(store))
