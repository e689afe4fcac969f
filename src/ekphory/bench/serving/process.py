"""A real `ekphory serve` in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

from ekphory.bench.child import BenchError

_START_SECONDS = 60.0
_STOP_SECONDS = 60.0
_LOG_CHARACTERS = 600
_END_OF_JSON = "}\n"


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """A server that listens.

    Attributes:
        url: Where.
        pid: Its process.
        start_seconds: From its start until it listened; what is asked from then on is answered.
        answer_seconds: From its start until it had answered a first request.
    """

    url: str
    pid: int
    start_seconds: float
    answer_seconds: float

    def cpu_seconds(self) -> float | None:
        """CPU time that it and its worker processes have used; None where that is not told."""
        used = [_cpu_seconds(pid) for pid in (self.pid, *_children(self.pid))]
        known = [each for each in used if each is not None]
        return sum(known) if known else None


@contextmanager
def serving(store: str, arguments: Sequence[str], *, log: Path) -> Iterator[ServerProcess]:
    """Serve a store on a free port of this machine until the block ends.

    Args:
        store: Its directory.
        arguments: Further options of `ekphory serve`.
        log: The file that gets its log.

    Raises:
        BenchError: It did not start, or does not answer.
    """
    command = [sys.executable, "-m", "ekphory", "serve", "--store", store, "--port", "0"]
    with log.open("ab") as stream:
        began = time.perf_counter()
        process = subprocess.Popen(  # noqa: S603  our own program
            [*command, "--json", *arguments],
            stdout=subprocess.PIPE,
            stderr=stream,
            encoding="utf-8",
        )
    try:
        url = _told_url(process, log)
        start_seconds = time.perf_counter() - began
        _wait_for_answer(url)
        yield ServerProcess(url, process.pid, start_seconds, time.perf_counter() - began)
    finally:
        process.terminate()
        try:
            process.communicate(timeout=_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _told_url(process: subprocess.Popen[str], log: Path) -> str:
    lines: list[str] = []
    while not lines or lines[-1] != _END_OF_JSON:
        line = process.stdout.readline() if process.stdout is not None else ""
        if not line:
            words = log.read_text(encoding="utf-8", errors="replace").strip()
            raise BenchError(f"the server did not start. {words[-_LOG_CHARACTERS:]}")
        lines.append(line)
    return str(json.loads("".join(lines))["url"])


def _wait_for_answer(url: str) -> None:
    try:
        with urlopen(f"{url}/health", timeout=_START_SECONDS) as answer:  # noqa: S310  our own server
            answer.read()
    except OSError as error:
        raise BenchError(f"the server does not answer ({error})") from error


def _cpu_seconds(pid: int) -> float | None:
    file = Path(f"/proc/{pid}/stat")
    if not file.is_file():
        return None
    # The name, in brackets, may hold blanks; user and system time are the 12th and 13th behind it.
    fields = file.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _children(pid: int) -> list[int]:
    file = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(each) for each in file.read_text("ascii").split()] if file.is_file() else []
