"""One store measured: in process, served, in process again, and served with lowered limits."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar
from urllib.request import Request, urlopen

from ekphory.bench.child import BenchError, Worker
from ekphory.bench.generate import BenchQuery
from ekphory.bench.layout import Told
from ekphory.bench.serving.clients import ask, ask_at_once, post
from ekphory.bench.serving.load import Answers, Load
from ekphory.bench.serving.options import ServingOptions
from ekphory.bench.serving.process import ServerProcess, serving
from ekphory.bench.serving.results import ServedLayout
from ekphory.bench.setup import Setup

Asked = TypeVar("Asked")
_SEARCH = "/api/v2/memories/search"
_ADD = "/api/v2/memories"
_LIST = "/api/v2/memories/list"
_PAGE = 100
_WRITTEN = "written_by_the_bench"
_IN_PROCESS: Mapping[str, str] = {"memory": "Memory.search", "service": "service, in process"}
_WARMING_ROUNDS = 2
_WARMING_CLIENTS = 4
_WARMING_SECONDS = 600.0
_SHARE_ALONE = 0.2
_TURNS = 12
_SHARE_MIXED = 0.5
_SHARE_OVERLOADED = 0.1
_SHARE_IN_PROCESS = 0.25
_LEAST_SECONDS = 1.0
_RATE = 2
"""Requests a second of one caller, when the rate is what is lowered."""


class Served:
    """A store that is filled, and what is asked of it.

    One caller asks in process and over HTTP by turns, and many ask in process before and after they
    ask the server, so that what else the machine does hits all alike.
    """

    def __init__(
        self, options: ServingOptions, *, setup: Setup, worker: Worker, on_progress: Told
    ) -> None:
        """Make the questions.

        Args:
            options: What to measure.
            setup: Where the store is.
            worker: Searches it in a process of its own.
            on_progress: Told in words what is being done.
        """
        self._options = options
        self._setup = setup
        self._worker = worker
        self._on_progress = on_progress
        found = setup.corpus.queries(options.questions, rows=options.n)
        self._questions = [(each.text, each.project) for each in found]
        self._requests = [self._request(each) for each in found]
        first = {each.project: each for each in found}
        self._first = list(first.values())
        self._asked_already = 0

    def measure(self) -> ServedLayout:
        """Measure it all."""
        self._warm_worker()
        together: dict[str, list[Answers]] = {through: [] for through in _IN_PROCESS}
        self._in_threads(together)
        with self._server() as server:
            self._warm(server)
            alone = self._one_caller(server)
            many = self._asked(server, clients=self._options.clients, share=1)
            mixed = self._mixed(server)
            found = self._found_writes(server)
        self._in_threads(together)
        return ServedLayout(
            scopes=self._setup.scopes,
            rows=self._options.n,
            start_seconds=round(server.start_seconds, 2),
            answer_seconds=round(server.answer_seconds, 2),
            alone=alone,
            together=(
                *_loads(together, self._options.threads),
                Load.of("HTTP", self._options.clients, [many]),
            ),
            mixed=(
                Load.of("HTTP, reads", self._options.clients - self._options.writers, mixed[:1]),
                Load.of("HTTP, writes", self._options.writers, mixed[1:]),
            ),
            writes_lost=len({*mixed[1].answered} - {*found}),
            writes_doubled=sum(count > 1 for count in found.values()),
            overload=(
                self._overloaded("--concurrency", max(1, self._options.clients // 5)),
                self._overloaded("--per-second", _RATE),
            ),
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
            threads = self._options.threads
            turns.append(self._searched(through, threads=threads, share=_SHARE_IN_PROCESS))

    def _searched(self, through: str, *, threads: int, share: float) -> Answers:
        self._tell(f"{_IN_PROCESS[through]}, threads: {threads}")
        asked = {
            "through": through,
            "threads": threads,
            "seconds": share * self._options.seconds,
            "k": self._options.k,
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
        seconds = max(_LEAST_SECONDS, share * self._options.seconds)
        answers = ask(server.url, requests, clients=clients, seconds=seconds)
        after = server.cpu_seconds()
        self._asked_already += len(answers.milliseconds)
        used = None if before is None or after is None else after - before
        return replace(answers, server_cpu=used)

    def _mixed(self, server: ServerProcess) -> list[Answers]:
        """Let some of the clients write, while the others go on asking."""
        writers = self._options.writers
        self._tell(f"the server, clients: {self._options.clients}, {writers} of them write")
        reads = itertools.cycle(self._from_here(self._requests))
        writes = (self._write(number) for number in itertools.count())
        seconds = max(_LEAST_SECONDS, _SHARE_MIXED * self._options.seconds)
        kinds = [(reads, self._options.clients - writers), (writes, writers)]
        answers = ask_at_once(server.url, kinds, seconds=seconds)
        self._asked_already += len(answers[0].milliseconds)
        return answers

    def _write(self, number: int) -> bytes:
        text, project = self._questions[number % len(self._questions)]
        # Its text is what it is known by afterwards.
        message = {"content": f"{text} {number}", "metadata": {_WRITTEN: _WRITTEN}}
        asked = {"org_id": self._setup.org, "project_id": project, "messages": [message]}
        return post(_ADD, json.dumps(asked).encode())

    def _found_writes(self, server: ServerProcess) -> Counter[bytes]:
        """Count the writes that are there, each as the request that it came in."""
        found: Counter[bytes] = Counter()
        for project in {project for _, project in self._questions}:
            for page in itertools.count():
                texts = self._page_of_writes(server, project, page)
                found.update(self._write(int(text.rsplit(" ", 1)[1])) for text in texts)
                if len(texts) < _PAGE:
                    break
        return found

    def _page_of_writes(self, server: ServerProcess, project: str, page: int) -> list[str]:
        asked = {
            "org_id": self._setup.org,
            "project_id": project,
            "page_size": _PAGE,
            "page_num": page,
            "type": "episodic",
            "filter": f"metadata.{_WRITTEN} = '{_WRITTEN}'",
        }
        headers = {"Content-Type": "application/json"}
        request = Request(f"{server.url}{_LIST}", json.dumps(asked).encode(), headers)  # noqa: S310
        with urlopen(request, timeout=_WARMING_SECONDS) as answer:  # noqa: S310  the bench's own
            content = json.load(answer)["content"]
        return [each["content"] for each in content["episodic_memory"]]

    def _from_here(self, each_question: Sequence[Asked]) -> list[Asked]:
        """Give the questions from the first that was not asked yet.

        The model remembers the vectors of those that were, which would flatter whoever comes later.
        """
        place = self._asked_already % len(each_question)
        return [*each_question[place:], *each_question[:place]]

    def _overloaded(self, option: str, limit: int) -> Load:
        with self._server(option, str(limit)) as server:
            answers = self._asked(server, clients=self._options.clients, share=_SHARE_OVERLOADED)
        return Load.of(f"HTTP, {option} {limit}", self._options.clients, [answers])

    def _server(self, *limits: str) -> AbstractContextManager[ServerProcess]:
        options = self._options
        arguments = ["--threads", str(options.threads), "--workers", str(options.workers), *limits]
        if options.embedder != "bundled":
            arguments += ["--embedder", options.embedder]
        log = Path(f"{self._setup.directory}.server.log")
        return serving(self._setup.directory, arguments, log=log)

    def _warm_worker(self) -> None:
        self._tell("first searches")
        first = [(each.text, each.project) for each in self._first] * _WARMING_ROUNDS
        self._worker.call("warm", {"questions": first, "k": self._options.k})

    def _warm(self, server: ServerProcess) -> None:
        """Let every project be read, by each worker process, before anything is timed."""
        # Connections are dealt out by chance: with enough of them each process gets some.
        clients = _WARMING_CLIENTS * self._options.workers
        first = [self._request(each) for each in self._first] * (_WARMING_ROUNDS * clients)
        answers = ask(
            server.url,
            first,
            clients=clients,
            seconds=_WARMING_SECONDS,
            patience=_WARMING_SECONDS,
        )
        if answers.failed:
            raise BenchError(f"the server gave no hits: {dict(answers.failed)}")

    def _request(self, query: BenchQuery) -> bytes:
        asked = {
            "org_id": self._setup.org,
            "project_id": query.project,
            "query": query.text,
            "top_k": self._options.k,
        }
        return post(_SEARCH, json.dumps(asked).encode())

    def _tell(self, what: str) -> None:
        scopes = "one scope" if self._setup.scopes == 1 else f"{self._setup.scopes} scopes"
        self._on_progress(f"{scopes}, {self._options.n:,} memories: {what}")


def _loads(turns: Mapping[str, list[Answers]], threads: int) -> list[Load]:
    return [Load.of(_IN_PROCESS[through], threads, each) for through, each in turns.items()]
