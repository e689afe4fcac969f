"""Clients of a server, and a real `ekphory serve` in a process of its own."""

from __future__ import annotations

import asyncio
import json
import math
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import numpy as np
from uvicorn.loops.auto import auto_loop_factory

from ekphory_lab.bench.measure import BenchError

# What a load of searches got, as plain values that go to JSON as they are.


@dataclass(slots=True, kw_only=True)
class Answers:
    """The searches of several callers, each of whom asks again as soon as it has an answer.

    Attributes:
        milliseconds: Of each search that was answered with its hits.
        seconds: How long they asked.
        failed: Searches without hits, by what came instead: a status, or `timeout`.
        server_cpu: CPU seconds of the processes that answered; None where they are not known.
        client_cpu: CPU seconds of the clients, where they are a process of their own.
        unannounced: Refusals that did not say when to come back.
    """

    milliseconds: list[float] = field(default_factory=list)
    seconds: float = 0.0
    failed: Counter[str] = field(default_factory=Counter)
    server_cpu: float | None = None
    client_cpu: float = 0.0
    unannounced: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A load in figures.

    Attributes:
        name: Who answered.
        callers: How many asked at once.
        answered: Searches that were answered with their hits.
        failed, unannounced: As in `Answers`.
        per_second: Answers a second.
        p50, p95, p99: Milliseconds of an answer.
        server_cpu_ms, client_cpu_ms: CPU milliseconds for one answer; None where not known.
        machine_load: What ran on the machine in the last minute; None where it does not tell.
    """

    name: str
    callers: int
    answered: int
    failed: Mapping[str, int]
    unannounced: int
    per_second: float
    p50: float
    p95: float
    p99: float
    server_cpu_ms: float | None
    client_cpu_ms: float | None
    machine_load: float | None

    @classmethod
    def of(cls, name: str, callers: int, turns: Sequence[Answers]) -> Load:
        """Summarise the turns of one load; where nothing was answered, times are NaN."""
        times = [each for turn in turns for each in turn.milliseconds] or [math.nan]
        answered = sum(len(turn.milliseconds) for turn in turns)
        p50, p95, p99 = (round(float(each), 2) for each in np.percentile(times, [50, 95, 99]))
        failed = sum((turn.failed for turn in turns), Counter[str]())
        server = [turn.server_cpu for turn in turns if turn.server_cpu is not None]
        return cls(
            name=name,
            callers=callers,
            answered=answered,
            failed=dict(failed),
            unannounced=sum(turn.unannounced for turn in turns),
            per_second=round(answered / sum(turn.seconds for turn in turns), 1),
            p50=p50,
            p95=p95,
            p99=p99,
            server_cpu_ms=_each(sum(server), times) if server else None,
            client_cpu_ms=_each(sum(turn.client_cpu for turn in turns), times),
            machine_load=round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        )


def _each(seconds: float, times: Sequence[float]) -> float:
    return round(1000 * seconds / len(times), 2)


# Clients of a server, all in one process: as cheap as they can be, since they share its cores.

PATIENCE_SECONDS = 10.0
_PAUSE_SECONDS = 0.05
"""After a refusal a client waits so long: less than it is told, or there would be no overload."""
_OK = 200
_REFUSALS = (429, 503)


class _Connection:
    """One connection that is kept open, and made anew when it breaks."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: bytes) -> tuple[int, bool]:
        """Return the status of the answer, and whether it says when to come back."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        reader, writer = self._streams
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        _, found, rest = head.partition(b"content-length:")
        if found:
            await reader.readexactly(int(rest.split(b"\r\n", 1)[0]))
        if b"\r\nconnection: close" in head:
            await self.close()
        return int(head[9:12]), b"\r\nretry-after:" in head

    async def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def post(path: str, body: bytes) -> bytes:
    """Return a whole HTTP request."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def ask(
    url: str,
    requests: Iterable[bytes],
    *,
    clients: int,
    seconds: float,
    patience: float = PATIENCE_SECONDS,
) -> Answers:
    """Let clients send requests in turn, each one after the other, until the time is over.

    Args:
        url: Where the server listens.
        requests: Whole requests; with the last one, clients stop before the time is over.
        clients: How many ask at once.
        seconds: After so long no new request is sent; those under way are waited for.
        patience: A request that takes longer, in seconds, counts as a timeout.
    """
    asking = _ask(url, iter(requests), clients=clients, seconds=seconds, patience=patience)
    with asyncio.Runner(loop_factory=auto_loop_factory()) as runner:
        return runner.run(asking)


async def _ask(
    url: str, requests: Iterator[bytes], *, clients: int, seconds: float, patience: float
) -> Answers:
    answers = Answers()
    cpu, began = time.process_time(), time.perf_counter()

    async def be_client() -> None:
        connection = _Connection(url)
        for request in requests:
            started = time.perf_counter()
            if started >= began + seconds:
                break
            try:
                async with asyncio.timeout(patience):
                    status, says_when = await connection.ask(request)
            except (OSError, asyncio.IncompleteReadError) as error:
                # A timeout is an OSError too.
                lost = "timeout" if isinstance(error, TimeoutError) else "connection lost"
                answers.failed[lost] += 1
                await connection.close()
                continue
            if status == _OK:
                answers.milliseconds.append((time.perf_counter() - started) * 1000)
                continue
            answers.failed[str(status)] += 1
            answers.unannounced += status in _REFUSALS and not says_when
            await asyncio.sleep(_PAUSE_SECONDS)
        await connection.close()

    await asyncio.gather(*(be_client() for _ in range(clients)))
    answers.seconds = time.perf_counter() - began
    answers.client_cpu = time.process_time() - cpu
    return answers


# A real `ekphory serve` in a process of its own.

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
