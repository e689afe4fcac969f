"""A server under load: one store measured in process and served."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import urlopen

import numpy as np
from uvicorn.loops.auto import auto_loop_factory

from ekphory_lab.bench import measure, run
from ekphory_lab.bench.generate import BATCH, BenchQuery
from ekphory_lab.bench.options import ServingOptions, StoreOptions, refuse_nothing
from ekphory_lab.evaluation.tables import ReportTable, records_table

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
        file = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        workers = map(int, file.read_text("ascii").split()) if file.is_file() else ()
        used = [_cpu_seconds(pid) for pid in (self.pid, *workers)]
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
            raise measure.BenchError(f"the server did not start. {words[-_LOG_CHARACTERS:]}")
        lines.append(line)
    return str(json.loads("".join(lines))["url"])


def _wait_for_answer(url: str) -> None:
    try:
        with urlopen(f"{url}/health", timeout=_START_SECONDS) as answer:  # noqa: S310  our own server
            answer.read()
    except OSError as error:
        raise measure.BenchError(f"the server does not answer ({error})") from error


def _cpu_seconds(pid: int) -> float | None:
    file = Path(f"/proc/{pid}/stat")
    if not file.is_file():
        return None
    # The name, in brackets, may hold blanks; user and system time are the 12th and 13th behind it.
    fields = file.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# What one run measured of a server, as plain values that go to JSON as they are.


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedLayout:
    """One store, served and searched in process in turn.

    Attributes:
        scopes: Projects that the memories are spread over.
        rows: How many memories.
        start_seconds: From the start of the server's process until it listened.
        answer_seconds: From its start until it had answered a first request.
        alone: One caller: `Memory.search`, the service that the server stands on, and HTTP.
        together: Many callers: the two in process, in as many threads as the server has, and HTTP.
        overload: Servers with lowered limits, asked by as many clients.
        http_adds: Milliseconds that HTTP adds to one caller's median search.
        shares: The server's answers a second as a share of each of those in process.
    """

    scopes: int
    rows: int
    start_seconds: float
    answer_seconds: float
    alone: tuple[Load, ...]
    together: tuple[Load, ...]
    overload: tuple[Load, ...]
    http_adds: float
    shares: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ServingReport:
    """Everything that one run measured.

    Attributes:
        machine, versions, options: Under what conditions.
        layouts: One for each number of projects.
        seconds: How long it all took.
    """

    machine: Mapping[str, str | int | float]
    versions: Mapping[str, str]
    options: Mapping[str, Any]
    layouts: tuple[ServedLayout, ...]
    seconds: float


# One store measured: in process, served, in process again, and served with lowered limits.

Asked = TypeVar("Asked")
_SEARCH = "/api/v2/memories/search"
_IN_PROCESS: Mapping[str, str] = {"memory": "Memory.search", "service": "service, in process"}
_QUESTIONS = 10_000
"""So many different ones are asked; the model remembers the vectors of some."""
_WARMING_ROUNDS = 2
_WARMING_CLIENTS = 4
_WARMING_SECONDS = 600.0
_SHARE_ALONE = 0.2
_TURNS = 12
_SHARE_OVERLOADED = 0.1
_SHARE_IN_PROCESS = 0.25
_LEAST_SECONDS = 1.0
_CHUNK = 10 * BATCH
_RATE = 2
"""Requests a second of one caller, when the rate is what is lowered."""


@dataclass(kw_only=True)
class Served:
    """A store, and what is asked of it.

    One caller asks in process and over HTTP by turns, and many ask in process before and after they
    ask the server, so that what else the machine does hits all alike.

    Attributes:
        stores: Which memories, in which stores.
        asked: How much is asked.
        setup: Where the store is.
        on_progress: Told in words what is being done.
    """

    stores: StoreOptions
    asked: ServingOptions
    setup: measure.Setup
    on_progress: run.Told

    def __post_init__(self) -> None:
        found = self.setup.corpus.queries(_QUESTIONS, rows=self.stores.n)
        self._questions = [(each.text, each.project) for each in found]
        self._requests = [self._request(each) for each in found]
        self._first = list({each.project: each for each in found}.values())
        self._asked_already = 0

    def measure(self) -> ServedLayout:
        """Fill the store, and measure it all."""
        self._fill()
        self._worker = measure.in_child("service", self.setup)
        try:
            layout = self._measured()
            self._worker.call("close", {})
        finally:
            self._worker.end()
        return layout

    def _fill(self) -> None:
        worker, rows = measure.in_child(run.PRODUCT, self.setup), self.stores.n
        for start in range(0, rows, _CHUNK):
            stop = min(start + _CHUNK, rows)
            worker.call("fill", {"start": start, "stop": stop})
            self._tell(f"{stop:,} written")
        worker.call("index", {"rows": rows})
        worker.call("close", {})
        worker.end()

    def _measured(self) -> ServedLayout:
        self._tell("first searches")
        first = [(each.text, each.project) for each in self._first] * _WARMING_ROUNDS
        self._worker.call("warm", {"questions": first, "k": self.stores.k})
        together: dict[str, list[Answers]] = {through: [] for through in _IN_PROCESS}
        self._in_threads(together)
        with self._server() as server:
            self._warm(server)
            alone = self._one_caller(server)
            many = self._asked(server, clients=self.asked.clients, share=1)
        self._in_threads(together)
        clients, threads = self.asked.clients, self.asked.threads
        inside, served = _loads(together, threads), Load.of("HTTP", clients, [many])
        return ServedLayout(
            scopes=self.setup.scopes,
            rows=self.stores.n,
            start_seconds=round(server.start_seconds, 2),
            answer_seconds=round(server.answer_seconds, 2),
            alone=alone,
            together=(*inside, served),
            overload=(
                self._overloaded("--concurrency", max(1, clients // 5)),
                self._overloaded("--per-second", _RATE),
            ),
            http_adds=round(alone[-1].p50 - alone[-2].p50, 2),
            shares={each.name: round(served.per_second / each.per_second, 3) for each in inside},
        )

    def _one_caller(self, server: ServerProcess) -> tuple[Load, ...]:
        """Let one caller ask in process and over HTTP, in short turns."""
        inside: dict[str, list[Answers]] = {through: [] for through in _IN_PROCESS}
        http: list[Answers] = []
        for _ in range(_TURNS):
            for through, turns in inside.items():
                turns.append(self._searched(through, threads=1, share=_SHARE_ALONE / _TURNS))
            http.append(self._asked(server, clients=1, share=_SHARE_ALONE / _TURNS))
        return (*_loads(inside, 1), Load.of("HTTP", 1, http))

    def _in_threads(self, together: dict[str, list[Answers]]) -> None:
        for through, turns in together.items():
            threads = self.asked.threads
            turns.append(self._searched(through, threads=threads, share=_SHARE_IN_PROCESS))

    def _searched(self, through: str, *, threads: int, share: float) -> Answers:
        self._tell(f"{_IN_PROCESS[through]}, threads: {threads}")
        asked = {
            "through": through,
            "threads": threads,
            "seconds": share * self.asked.seconds,
            "k": self.stores.k,
            "questions": self._from_here(self._questions),
        }
        answer = self._worker.call("searches", asked)
        self._asked_already += len(answer["milliseconds"])
        return Answers(
            milliseconds=answer["milliseconds"],
            seconds=answer["seconds"],
            server_cpu=answer["cpu_seconds"],
        )

    def _asked(self, server: ServerProcess, *, clients: int, share: float) -> Answers:
        self._tell(f"the server, clients: {clients}")
        before = server.cpu_seconds()
        requests = itertools.cycle(self._from_here(self._requests))
        seconds = max(_LEAST_SECONDS, share * self.asked.seconds)
        answers = ask(server.url, requests, clients=clients, seconds=seconds)
        after = server.cpu_seconds()
        self._asked_already += len(answers.milliseconds)
        used = None if before is None or after is None else after - before
        return replace(answers, server_cpu=used)

    def _from_here(self, each_question: Sequence[Asked]) -> list[Asked]:
        """Return the questions from the first that was not asked yet.

        The model remembers the vectors of those that were, which would flatter whoever comes later.
        """
        place = self._asked_already % len(each_question)
        return [*each_question[place:], *each_question[:place]]

    def _overloaded(self, option: str, limit: int) -> Load:
        with self._server(option, str(limit)) as server:
            answers = self._asked(server, clients=self.asked.clients, share=_SHARE_OVERLOADED)
        return Load.of(f"HTTP, {option} {limit}", self.asked.clients, [answers])

    def _server(self, *limits: str) -> AbstractContextManager[ServerProcess]:
        threads, workers = str(self.asked.threads), str(self.asked.workers)
        arguments = ["--threads", threads, "--workers", workers, *limits]
        if self.setup.embedder != "bundled":
            arguments += ["--embedder", self.setup.embedder]
        log = Path(f"{self.setup.directory}.server.log")
        return serving(self.setup.directory, arguments, log=log)

    def _warm(self, server: ServerProcess) -> None:
        """Let every project be read, by each worker process, before anything is timed."""
        # Connections are dealt out by chance: with enough of them each process gets some.
        clients = _WARMING_CLIENTS * self.asked.workers
        first = [self._request(each) for each in self._first] * (_WARMING_ROUNDS * clients)
        answers = ask(
            server.url, first, clients=clients, seconds=_WARMING_SECONDS, patience=_WARMING_SECONDS
        )
        if answers.failed:
            raise measure.BenchError(f"the server gave no hits: {dict(answers.failed)}")

    def _request(self, query: BenchQuery) -> bytes:
        asked = {
            "org_id": self.setup.org,
            "project_id": query.project,
            "query": query.text,
            "top_k": self.stores.k,
        }
        return post(_SEARCH, json.dumps(asked).encode())

    def _tell(self, what: str) -> None:
        scopes = run.name_scopes(self.setup.scopes)
        self.on_progress(f"{scopes}, {self.stores.n:,} memories: {what}")


def _loads(turns: Mapping[str, list[Answers]], threads: int) -> list[Load]:
    return [Load.of(_IN_PROCESS[through], threads, each) for through, each in turns.items()]


# The report for people, as text in tables.


def serving_tables(report: ServingReport) -> list[ReportTable]:
    """Show a table for each layout: one caller, many, and with lowered limits."""
    return [
        records_table(
            f"{layout.rows:,} memories in {run.name_scopes(layout.scopes)}",
            map(_row, (*layout.alone, *layout.together, *layout.overload)),
        )
        for layout in report.layouts
    ]


def _row(load: Load) -> Mapping[str, object]:
    return {
        "": load.name,
        "callers": load.callers,
        "a second": load.per_second,
        "p50 / p95 / p99 ms": f"{load.p50:.1f} / {load.p95:.1f} / {load.p99:.1f}",
        "CPU ms, server": load.server_cpu_ms,
        "CPU ms, clients": load.client_cpu_ms,
        "no hits": ", ".join(f"{count:,} × {what}" for what, count in load.failed.items()) or "0",
        "load": load.machine_load,
    }


def serving_finding(layout: ServedLayout) -> str:
    """Say how the server compares with the searches in process."""
    shares = ", ".join(f"{share:.0%} of {name}" for name, share in layout.shares.items())
    unannounced = sum(each.unannounced for each in layout.overload)
    return (
        f"{run.name_scopes(layout.scopes)}: the server listened after {layout.start_seconds:.1f} s "
        f"and answered after {layout.answer_seconds:.1f} s; "
        f"HTTP adds {layout.http_adds:.1f} ms to one caller's median; "
        f"throughput {shares}; refusals without Retry-After: {unannounced}"
    )


# The whole run: the vectors, and each layout filled and measured.

_ORG = "bench"
_PACKAGES = ("ekphory", "fastapi", "pydantic", "starlette", "uvicorn")


def run_serving_bench(
    stores: StoreOptions, asked: ServingOptions, *, on_progress: run.Told
) -> ServingReport:
    """Measure everything that the options ask for.

    Args:
        stores: Which memories, in which stores.
        asked: How much is asked.
        on_progress: Told in words what is being done.

    Raises:
        InvalidInput: Nothing would be measured.
        BenchError: A measuring process or the server failed.
    """
    stores.check()
    refuse_nothing(asked)
    began, described = time.perf_counter(), measure.machine()
    with run.stores_with_vectors(stores, measure.in_child, on_progress, org=_ORG) as setups:
        layouts = [
            Served(stores=stores, asked=asked, setup=setup, on_progress=on_progress).measure()
            for setup in setups
        ]
    return ServingReport(
        machine=described,
        versions=measure.versions(_PACKAGES),
        options=stores.describe(asked),
        layouts=tuple(layouts),
        seconds=round(time.perf_counter() - began, 1),
    )
