"""The whole run: the model, the layouts, and the report."""

from __future__ import annotations

import tempfile
import time
import tomllib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from platformdirs import user_cache_path

from ekphory_lab.bench import measure
from ekphory_lab.bench.generate import BATCH
from ekphory_lab.bench.options import BenchOptions, StoreOptions, name_embedder, refuse_nothing
from ekphory_lab.evaluation.metrics import Latency
from ekphory_lab.evaluation.tables import NOTHING, ReportTable, records_table

if TYPE_CHECKING:
    from ekphory_lab.bench.cluster import ClusterBenchReport
    from ekphory_lab.bench.serving import ServingReport

# Measures systems side by side on stores that grow: fill, search, compare, add, then fill on.

Told = Callable[[str], None]
"""Told in words what is being done."""

Found = dict[str, dict[str, Any]]
"""What is known so far of each system at one size, as `SystemReport` has it."""
Workers = Mapping[str, measure.Worker]
"""The measuring process of each system."""
Answers = dict[str, list[dict[str, Any]]]
"""What each system's process answered."""

PRODUCT = "ekphory"
SYSTEMS = (PRODUCT, "lancedb")
_CHUNK = 10 * BATCH
_RECALL_QUERIES = 50
_WRITTEN_WITH_MODEL = (5 * BATCH, 5 * BATCH)
"""Memories that each system writes with the model, turn by turn."""
_SINGLE_ADDS = 100


@dataclass(slots=True, kw_only=True)
class Layout:
    """Stores with the same memories, one of each system, measured at growing sizes.

    Systems take turns within every phase, so that what else the machine does hits all alike. Each
    phase has fresh processes, so that their peak memory is that phase's.

    Attributes:
        queries: Warm searches of each store.
        k: Hits asked for.
        setup: Where the stores are, each with its system's name behind it.
        systems: Their names, ekphory first.
        launch: How measuring processes are started.
        on_progress: Told in words what is being done.
        written: How many memories each store has.
    """

    queries: int
    k: int
    setup: measure.Setup
    systems: Sequence[str]
    launch: measure.Launcher
    on_progress: Told
    written: int = 0

    def measure_size(self, size: int) -> measure.SizeReport:
        """Bring the stores to `size` memories (more only if they have them) and measure it all."""
        found: Found = {name: {"peak_bytes": {}} for name in self.systems}
        self._fill(size, found)
        rows = self.written
        self._search(found)
        self._add(found)
        systems = tuple(
            measure.SystemReport(name=name, **figures) for name, figures in found.items()
        )
        return measure.SizeReport(rows, self.setup.scopes, systems)

    def _fill(self, size: int, found: Found) -> None:
        with self._workers() as workers:
            starts = range(self.written, size, _CHUNK)
            self._write("fill", [min(_CHUNK, size - start) for start in starts], workers, found)
            for name, worker in workers.items():
                self._tell(f"waiting for the indexes of {name}")
                _note_peak(found[name], "fill", worker.call("index", {"rows": self.written}))
        for name in workers:
            found[name]["bytes"] = bytes_below(Path(self._at(name).directory))

    def _write(
        self,
        phase: Literal["fill", "write"],
        sizes: Sequence[int],
        workers: Workers,
        found: Found,
    ) -> Answers:
        answers: Answers = {name: [] for name in workers}
        for turn, rows in enumerate(sizes):
            stretch = {"start": self.written, "stop": self.written + rows}
            for name, worker in _in_turn(workers, turn):
                answers[name].append(worker.call(phase, stretch))
                _note_peak(found[name], phase, answers[name][-1])
            self.written = stretch["stop"]
            self._tell("written")
        return answers

    def _search(self, found: Found) -> None:
        cold, warm = (
            [query.asked(self.k) for query in queries]
            for queries in self.setup.corpus.cold_and_warm(self.queries, rows=self.written)
        )
        with self._workers() as workers:
            _load_models(workers)
            for name, worker in workers.items():
                self._tell(f"{len(cold)} cold searches of {name}")
                found[name]["cold"] = _latency([worker.call("search", each) for each in cold])
            self._tell(f"{len(warm)} warm searches of each system")
            answers: Answers = {name: [] for name in workers}
            for place, query in enumerate(warm):
                for name, worker in _in_turn(workers, place):
                    answers[name].append(worker.call("search", query))
            for name, given in answers.items():
                _note_peak(found[name], "search", given[-1])
                found[name] |= {"warm": _latency(given), "stages": _stages(given)}
        for name in self.systems:
            self._tell(f"recall of {name}")
            with self._workers([name]) as workers:
                answer = workers[name].call("recall", {"queries": warm[:_RECALL_QUERIES]})
            found[name] |= {"recall": answer["recall"], "short": answer["short"]}

    def _add(self, found: Found) -> None:
        with self._workers() as workers:
            _load_models(workers)
            self._tell("batches and single memories with the model")
            written = self._write("write", _WRITTEN_WITH_MODEL, workers, found)
            taken: dict[str, list[float]] = {name: [] for name in workers}
            for turn in range(_SINGLE_ADDS):
                stretch = {"start": self.written, "stop": self.written + 1}
                for name, worker in _in_turn(workers, turn):
                    taken[name] += worker.call("add", stretch)["milliseconds"]
                self.written += 1
        for name in workers:
            found[name]["write"] = measure.WriteSpeed.of(written[name])
            found[name]["add"] = Latency.of(taken[name])

    @contextmanager
    def _workers(self, names: Sequence[str] = ()) -> Iterator[Workers]:
        workers = {name: self.launch(name, self._at(name)) for name in names or self.systems}
        yield workers
        for worker in workers.values():
            worker.call("close", {})
            worker.end()

    def _at(self, name: str) -> measure.Setup:
        return replace(self.setup, directory=f"{self.setup.directory}-{name}")

    def _tell(self, what: str) -> None:
        self.on_progress(f"{name_scopes(self.setup.scopes)}, {self.written:,} memories: {what}")


def name_scopes(count: int) -> str:
    """Return how many scopes there are, in words."""
    return "one scope" if count == 1 else f"{count} scopes"


def bytes_below(directory: Path) -> int:
    """Size of all files below a directory."""
    return sum(entry.stat().st_size for entry in directory.rglob("*") if entry.is_file())


def _note_peak(figures: dict[str, Any], phase: str, answer: Mapping[str, Any]) -> None:
    """Keep how much memory the process has held by now."""
    if answer["peak_bytes"] is not None:
        figures["peak_bytes"][phase] = answer["peak_bytes"]


def _latency(answers: Sequence[Mapping[str, Any]]) -> Latency:
    return Latency.of([answer["milliseconds"] for answer in answers])


def _stages(answers: Sequence[Mapping[str, Any]]) -> dict[str, Latency]:
    taken: dict[str, list[float]] = {}
    for answer in answers:
        for stage, milliseconds in answer["stages"].items():
            taken.setdefault(stage, []).append(milliseconds)
    return {stage: Latency.of(each) for stage, each in taken.items()}


def _in_turn(workers: Workers, turn: int) -> deque[tuple[str, measure.Worker]]:
    items = deque(workers.items())
    items.rotate(-turn)
    return items


def _load_models(workers: Workers) -> None:
    for worker in workers.values():
        worker.call("load_model", {"text": "a question about nothing"})


# What every measurement begins with: a place to write, vectors to fill stores with.

_STRETCH = 8 * BATCH


@contextmanager
def stores_with_vectors(
    options: StoreOptions, launch: measure.Launcher, on_progress: Told, *, org: str | None = None
) -> Iterator[list[measure.Setup]]:
    """Embed what the stores need, and yield the setup of each layout, in a temporary directory."""
    cache = options.cache or user_cache_path("ekphory") / "bench"
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ekphory-bench-") as directory:
        setup = measure.Setup(
            directory=f"{directory}/model",
            pool=str(cache),
            embedder=name_embedder(options.embedder),
            seed=options.seed,
            scopes=options.layouts[0],
            org=org,
        )
        model, size = launch("model", setup), min(options.n, options.embedded)
        answer: dict[str, Any] = {"size": -1}
        while answer["size"] < size:
            answer = model.call("pool", {"size": size, "stretch": _STRETCH})
            on_progress(f"embedding ahead: {answer['size']:,} of {size:,} memories")
        model.end()
        yield [
            replace(
                setup,
                directory=f"{directory}/{scopes}-scopes",
                pool=answer["directory"],
                scopes=scopes,
            )
            for scopes in options.layouts
        ]


# The report for people, as text in tables: what was measured, and the conditions.

_MEBIBYTE = 2**20

_ROWS: Mapping[str, tuple[str, str]] = tomllib.loads(
    files("ekphory_lab.bench").joinpath("rows.toml").read_text(encoding="utf-8")
)
"""By label: how a figure is written, and where it stands in a report; of sizes the mebibytes."""


def _figure(system: measure.SystemReport, place: str, form: str) -> str:
    value: Any = system
    for name in place.split("."):
        value = value.get(name) if isinstance(value, Mapping) else getattr(value, name)
    if value is None:
        return NOTHING
    return format(value / _MEBIBYTE if "bytes" in place else value, form)


def report_tables(report: measure.BenchReport) -> Iterator[ReportTable]:
    """Yield for each size all systems, a column each, and the stages of the first's searches."""
    for size in report.sizes:
        yield records_table(
            f"{size.rows:,} memories in {name_scopes(size.scopes)}",
            (
                {"": label} | {system.name: _figure(system, place, form) for system in size.systems}
                for label, (form, place) in _ROWS.items()
            ),
        )
        yield records_table(
            f"stages at {size.rows:,} memories",
            (
                {"stage": stage, "p50 / p95 ms": latency}
                for stage, latency in size.systems[0].stages.items()
            ),
        )


def conditions(
    report: measure.BenchReport | ServingReport | ClusterBenchReport,
) -> list[str]:
    """Say on what machine, with what versions and options, in lines."""
    machine, chosen = report.machine, report.options.items()
    return [
        f"{machine['processor']}, {machine['usable_cores']} cores usable, {machine['system']}, "
        f"Python {machine['python']}, load {machine.get('load', NOTHING)} at the start",
        ", ".join(f"{name} {version}" for name, version in report.versions.items()),
        ", ".join(f"{name} {value}" for name, value in chosen if value is not None),
        f"{report.seconds:.0f} s",
    ]


# The whole run.


def run_bench(
    stores: StoreOptions,
    asked: BenchOptions,
    *,
    on_progress: Told,
    launch: measure.Launcher = measure.in_child,
) -> measure.BenchReport:
    """Measure everything that the options ask for.

    Args:
        stores: Which memories, in which stores.
        asked: How much is measured.
        on_progress: Told in words what is being done.
        launch: How measuring processes are started.

    Raises:
        InvalidInput: Nothing would be measured.
        BenchError: A measuring process failed.
    """
    stores.check()
    refuse_nothing(asked)
    began, described = time.perf_counter(), measure.machine()
    sizes: list[measure.SizeReport] = []
    with stores_with_vectors(stores, launch, on_progress) as setups:
        for setup in setups:
            layout = Layout(
                queries=asked.queries,
                k=stores.k,
                setup=setup,
                systems=SYSTEMS if asked.beside == "lancedb" else (PRODUCT,),
                launch=launch,
                on_progress=on_progress,
            )
            sizes += [layout.measure_size(size) for size in stores.sizes()]
    return measure.BenchReport(
        machine=described,
        versions=measure.versions(),
        options=stores.describe(asked),
        sizes=tuple(sizes),
        seconds=round(time.perf_counter() - began, 1),
    )
