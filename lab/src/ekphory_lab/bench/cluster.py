"""What a store of shards costs: requests and bytes of object storage, memory, processor time."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ekphory.errors import MissingExtra
from ekphory_lab.bench import measure
from ekphory_lab.bench.generate import BATCH, BenchQuery, Corpus
from ekphory_lab.bench.options import TURNS, ClusterOptions, name_embedder
from ekphory_lab.bench.run import Told
from ekphory_lab.evaluation.tables import NOTHING, ReportTable, records_table

_BUCKET = "bench"
_MILLION = 1_000_000
_WHILE_LEASED = 20
_PACKAGES = ("moto", "boto3", "obstore", "lance")


# Object storage that counts and takes its time.


Traffic = Counter[str]
"""How many `requests` came, and the bytes of bodies, `sent` to the storage and `received`."""


def _count(application: Callable[..., Iterable[bytes]], traffic: Traffic, delay: float) -> Any:  # noqa: ANN401  WSGI
    """Return an application of WSGI that counts what it hands on, and answers later."""
    guard = threading.Lock()

    def answer(environ: dict[str, Any], start_response: Any) -> list[bytes]:  # noqa: ANN401  WSGI
        time.sleep(delay)
        parts = list(application(environ, start_response))
        with guard:
            traffic["requests"] += 1
            traffic["sent"] += int(environ.get("CONTENT_LENGTH") or 0)
            traffic["received"] += sum(map(len, parts))
        return parts

    return answer


@contextmanager
def object_storage(*, delay: float) -> Iterator[Traffic]:
    """Run an S3 on this machine, which the environment names until the block ends.

    Args:
        delay: Seconds that every request takes longer.

    Raises:
        MissingExtra: Moto is not installed.
    """
    if not all(map(find_spec, _PACKAGES)):
        raise MissingExtra("cluster,cluster-test", "ekphory bench-cluster")
    moto = importlib.import_module("moto.server")
    serving = importlib.import_module("werkzeug.serving")
    traffic = Traffic()
    application = _count(moto.DomainDispatcherApplication(moto.create_backend_app), traffic, delay)
    server = serving.make_server(
        "127.0.0.1", 0, application, threaded=True, request_handler=_quiet(serving)
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    before = dict(os.environ)
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "bench",
        "AWS_SECRET_ACCESS_KEY": "bench",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT": url,
        "AWS_ALLOW_HTTP": "true",
    }
    try:
        client = importlib.import_module("boto3").client
        client("s3", endpoint_url=url, region_name="us-east-1").create_bucket(Bucket=_BUCKET)
        yield traffic
    finally:
        server.shutdown()
        os.environ.clear()
        os.environ |= before


def _quiet(serving: Any) -> type:  # noqa: ANN401  the module, which need not be installed
    def log(*_: object) -> None:
        return

    return type("QuietHandler", (serving.WSGIRequestHandler,), {"log": log})


# What was measured.


@dataclass(frozen=True, slots=True)
class Cost:
    """What one call costs on average; of the time, the median and the slow ones.

    Attributes:
        count: How many there were.
        requests: To the object storage.
        sent, received: Bytes.
        p50, p95: Milliseconds.
        cpu: Processor milliseconds.
        embedder: Of these, those of the embedder.
    """

    count: int
    requests: float
    sent: float
    received: float
    p50: float
    p95: float
    cpu: float
    embedder: float


@dataclass(frozen=True, slots=True)
class ClusterBenchReport:
    """Everything that one run measured.

    Attributes:
        machine, versions, options: Under what conditions.
        first_commit: The first memory that a process writes to a shard, which takes its lease.
        commit: Every further memory, written one by one.
        cold: The first search of a project in a process.
        warm: Further ones, by a process that does not write.
        warm_writer: Further ones, by a process that holds the lease.
        cpu_search: Processor seconds of 1,000 warm searches: all, embedder, rest.
        cpu_write: Processor seconds of a million memories in batches, likewise, extrapolated.
        a_million: Bytes of a million memories, extrapolated: stored, and held to be searched.
        process_bytes: What a process holds that has half of the projects open.
        seconds: How long it all took.
    """

    machine: Mapping[str, str | int | float]
    versions: Mapping[str, str]
    options: Mapping[str, Any]
    first_commit: Cost
    commit: Cost
    cold: Cost
    warm: Cost
    warm_writer: Cost
    cpu_search: Mapping[str, float]
    cpu_write: Mapping[str, float]
    a_million: Mapping[str, float | None]
    process_bytes: int | None
    seconds: float


class _Calls:
    """The calls of one kind, and what each cost."""

    def __init__(self, worker: measure.Worker, traffic: Traffic) -> None:
        self._worker, self._traffic = worker, traffic
        self.answers: list[dict[str, Any]] = []
        self.traffic: list[Traffic] = []

    def call(self, operation: str, payload: Mapping[str, Any]) -> None:
        """Run an operation, and note what it cost."""
        before = self._traffic.copy()
        self.answers.append(self._worker.call(operation, payload))
        self.traffic.append(self._traffic - before)

    def cost(self) -> Cost:
        """Return the average cost."""
        p50, p95 = np.percentile([each["milliseconds"] for each in self.answers], [50, 95])
        names = ("requests", "sent", "received")
        return Cost(
            count=len(self.answers),
            **{name: _mean([each[name] for each in self.traffic]) for name in names},
            p50=round(float(p50), 1),
            p95=round(float(p95), 1),
            cpu=_mean([each["cpu_seconds"] * 1000 for each in self.answers]),
            embedder=_mean([each["embedder_seconds"] * 1000 for each in self.answers]),
        )


def _mean(values: Sequence[float]) -> float:
    return round(float(np.mean(values)), 2)


# The whole run.


def run_cluster_bench(options: ClusterOptions, *, on_progress: Told) -> ClusterBenchReport:
    """Measure what a store of shards costs.

    Args:
        options: What to measure.
        on_progress: Told in words what is being done.

    Raises:
        InvalidInput: Nothing would be measured.
        MissingExtra: What a cluster or its object storage needs is not installed.
        BenchError: A measuring process failed.
    """
    options.check()
    began, described = time.perf_counter(), measure.machine()
    with (
        object_storage(delay=options.delay / 1000) as traffic,
        tempfile.TemporaryDirectory(prefix="ekphory-bench-") as logs,
    ):
        run = _Run(options, traffic, Path(logs), on_progress)
        written = run.fill()
        figures = run.search() | run.commit()
    rest = written["all"] - written["embedder"]
    warm: Cost = figures["warm"]
    return ClusterBenchReport(
        machine=described,
        versions=measure.versions(),
        options=asdict(options) | {"embedder": name_embedder(options.embedder)},
        cpu_write={**written, "rest": round(rest, 1)},
        cpu_search={
            "all": warm.cpu,
            "embedder": warm.embedder,
            "rest": round(warm.cpu - warm.embedder, 2),
        },
        seconds=round(time.perf_counter() - began, 1),
        **figures,
    )


@dataclass(frozen=True, slots=True)
class _Run:
    """One run, phase by phase, each in a fresh process."""

    options: ClusterOptions
    traffic: Traffic
    logs: Path
    on_progress: Told

    @contextmanager
    def _worker(self, phase: str) -> Iterator[measure.Worker]:
        self.on_progress(phase)
        options = self.options
        setup = measure.Setup(
            directory=f"s3://{_BUCKET}/store",
            pool=str(self.logs),
            embedder=name_embedder(options.embedder),
            seed=options.seed,
            scopes=options.projects,
            org="bench",
        )
        worker = measure.ChildWorker(
            [sys.executable, "-m", "ekphory_lab.bench.cluster_worker", setup.to_json()],
            log=self.logs / "cluster.log",
        )
        try:
            yield worker
            worker.call("close", {})
        finally:
            worker.end()

    def fill(self) -> dict[str, float]:
        """Write all memories; return processor seconds a million, with the embedder's apart."""
        with self._worker("writing") as worker:
            worker.call("make", {"shards": self.options.shards})
            # Each project gets batches of a good size.
            step = BATCH * self.options.projects
            calls = _Calls(worker, self.traffic)
            for start in range(0, self.options.n, step):
                calls.call("write", {"start": start, "stop": min(start + step, self.options.n)})
                self.on_progress(f"writing: {min(start + step, self.options.n):,} memories")
        million = _MILLION / self.options.n
        return {
            name: round(sum(each[field] for each in calls.answers) * million, 1)
            for name, field in (("all", "cpu_seconds"), ("embedder", "embedder_seconds"))
        }

    def search(self) -> dict[str, Any]:
        """Search all projects, and then some again."""
        first, others = self._questions()
        with self._worker("searching") as worker:
            cold, warm = _Calls(worker, self.traffic), _Calls(worker, self.traffic)
            half = len(first) // 2
            for query in first[:half]:
                cold.call("search", query.asked(self.options.k))
            # What is loaded once is there by now: further projects cost only themselves.
            halfway = worker.call("size", {})
            for query in first[half:]:
                cold.call("search", query.asked(self.options.k))
            after = worker.call("size", {})
            for query in others:
                warm.call("search", query.asked(self.options.k))
        million = _MILLION / self.options.n
        held = None
        if after["resident"] is not None:
            share = (len(first) - half) / len(first)
            held = round((after["resident"] - halfway["resident"]) * million / share)
        return {
            "cold": cold.cost(),
            "warm": warm.cost(),
            "a_million": {"stored": round(after["stored"] * million), "held": held},
            "process_bytes": halfway["resident"],
        }

    def commit(self) -> dict[str, Any]:
        """Write single memories into one project, and search it meanwhile."""
        _, others = self._questions()
        # Memories that are not written yet, each of another session, all of one project.
        start = -(-self.options.n // TURNS) * TURNS
        step = TURNS * self.options.projects
        places = range(start, start + (1 + self.options.commits) * step, step)
        project = f"project-{start // TURNS % self.options.projects:02d}"
        with self._worker("single commits") as worker:
            first, further = _Calls(worker, self.traffic), _Calls(worker, self.traffic)
            warm = _Calls(worker, self.traffic)
            for place in places:
                calls = further if first.answers else first
                calls.call("write", {"start": place, "stop": place + 1})
            asked = [{**each.asked(self.options.k), "project": project} for each in others]
            worker.call("search", asked[0])
            # Within the seconds for which the last write's lease is good.
            for query in asked[1 : 1 + _WHILE_LEASED]:
                warm.call("search", query)
        return {
            "first_commit": first.cost(),
            "commit": further.cost(),
            "warm_writer": warm.cost(),
        }

    def _questions(self) -> tuple[list[BenchQuery], list[BenchQuery]]:
        """Return a question for each project, and others."""
        corpus = Corpus(seed=self.options.seed, scopes=self.options.projects)
        return corpus.cold_and_warm(self.options.queries, rows=self.options.n)


# The report for people.


def cluster_table(report: ClusterBenchReport) -> ReportTable:
    """Show what each kind of call costs."""
    return records_table(
        f"{report.options['n']:,} memories in {report.options['projects']} projects",
        (
            {"": name.replace("_", " ")} | asdict(getattr(report, name))
            for name in ("first_commit", "commit", "cold", "warm", "warm_writer")
        ),
    )


def cluster_findings(report: ClusterBenchReport) -> list[str]:
    """Say what a million memories and 1,000 searches cost, in lines."""
    million, write, search = report.a_million, report.cpu_write, report.cpu_search
    held = NOTHING if million["held"] is None else f"{million['held'] / 2**30:.2f} GiB"
    return [
        f"a million memories, extrapolated from {report.options['n']:,}: "
        f"{(million['stored'] or 0) / 2**30:.2f} GiB stored, {held} held in memory, "
        f"{write['all']:,.0f} CPU seconds to write ({write['embedder']:,.0f} of the embedder)",
        f"1,000 warm searches: {search['all']:.1f} CPU seconds "
        f"({search['embedder']:.1f} of the embedder)",
    ]
