"""The whole run: the model, the layouts, and the report."""

from __future__ import annotations

import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from platformdirs import user_cache_path

from ekphory.errors import InvalidInput
from ekphory_lab.bench import measure
from ekphory_lab.bench.generate import BATCH, TURNS, BenchQuery, Corpus
from ekphory_lab.evaluation.tables import ReportTable

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


# Measures systems side by side on stores that grow: fill, search, compare, add, then fill on.

Told = Callable[[str], None]
"""Told in words what is being done."""

Found = dict[str, dict[str, Any]]
"""What is known so far of each system at one size, as `SystemReport` has it."""

PRODUCT = "ekphory"
SYSTEMS = (PRODUCT, "lancedb")
_CHUNK = 10 * BATCH
_RECALL_QUERIES = 50
_SPARE_QUERIES = 8


@dataclass(slots=True, kw_only=True)
class Layout:
    """Stores with the same memories, one of each system, measured at growing sizes.

    Systems take turns within every phase, so that what else the machine does hits all alike. Each
    phase has fresh processes, so that their peak memory is that phase's.

    Attributes:
        options: What to measure.
        setup: Where the stores are, each with its system's name behind it.
        systems: Their names, ekphory first.
        launch: How measuring processes are started.
        on_progress: Told in words what is being done.
        written: How many memories each store has.
    """

    options: measure.BenchOptions
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
        self._compare_recall(found)
        self._add(found)
        systems = tuple(
            measure.SystemReport(name=name, **figures) for name, figures in found.items()
        )
        return measure.SizeReport(rows, self.setup.scopes, systems)

    def _fill(self, size: int, found: Found) -> None:
        workers = self._workers()
        starts = range(self.written, size, _CHUNK)
        self._write("fill", [min(_CHUNK, size - start) for start in starts], workers, found)
        for name, worker in workers.items():
            self._tell(f"waiting for the indexes of {name}")
            answer = worker.call("index", {"rows": self.written})
            _note_peak(found[name], "fill", answer)
            found[name] |= {
                "index_seconds": answer["seconds"],
                "index_rows": answer["rows"],
                "fragments": answer.get("fragments"),
                "versions": answer.get("versions"),
            }
        _end(workers)
        for name in workers:
            found[name]["bytes"] = bytes_below(Path(self._at(name).directory))

    def _write(
        self,
        phase: Literal["fill", "write"],
        sizes: Sequence[int],
        workers: Mapping[str, measure.Worker],
        found: Found,
    ) -> None:
        answers: dict[str, list[dict[str, Any]]] = {name: [] for name in workers}
        for turn, rows in enumerate(sizes):
            stretch = {"start": self.written, "stop": self.written + rows}
            for name, worker in _in_turn(workers, turn):
                answers[name].append(worker.call(phase, stretch))
                _note_peak(found[name], phase, answers[name][-1])
            self.written = stretch["stop"]
            self._tell("written")
        for name, stretches in answers.items():
            found[name][phase] = measure.WriteSpeed.of(stretches)

    def _search(self, found: Found) -> None:
        workers = self._workers()
        _load_models(workers)
        cold, warm = self._queries()
        for name, worker in workers.items():
            self._tell(f"{len(cold)} cold searches of {name}")
            first = [worker.call("search", self._asked(query)) for query in cold]
            found[name]["cold"] = _latency(first)
        self._tell(f"{len(warm)} warm searches of each system")
        answers: dict[str, list[dict[str, Any]]] = {name: [] for name in workers}
        for place, query in enumerate(warm):
            for name, worker in _in_turn(workers, place):
                answers[name].append(worker.call("search", self._asked(query)))
        for name, given in answers.items():
            _note_peak(found[name], "search", given[-1])
            found[name] |= {"warm": _latency(given), "stages": _stages(given)}
        _end(workers)

    def _compare_recall(self, found: Found) -> None:
        _, warm = self._queries()
        queries = [self._asked(query) for query in warm[:_RECALL_QUERIES]]
        for name in self.systems:
            self._tell(f"recall of {name}")
            worker = self.launch(name, self._at(name))
            answer = worker.call("recall", {"queries": queries})
            found[name] |= {"recall": answer["recall"], "short": answer["short"]}
            _end({name: worker})

    def _add(self, found: Found) -> None:
        workers = self._workers()
        _load_models(workers)
        self._tell("batches and single memories with the model")
        sizes = [part * BATCH for part in _halves(self.options.batches)]
        self._write("write", sizes, workers, found)
        taken: dict[str, list[float]] = {name: [] for name in workers}
        for turn in range(self.options.single_adds):
            stretch = {"start": self.written, "stop": self.written + 1}
            for name, worker in _in_turn(workers, turn):
                taken[name] += worker.call("add", stretch)["milliseconds"]
            self.written += 1
        for name, milliseconds in taken.items():
            found[name]["add"] = measure.Latency.of(milliseconds)
        _end(workers)

    def _queries(self) -> tuple[list[BenchQuery], list[BenchQuery]]:
        """One question for each scope that holds something, and as many others as asked for."""
        scopes = min(self.setup.scopes, max(1, self.written // TURNS))
        wanted = scopes * _SPARE_QUERIES + self.options.queries
        first: dict[str, BenchQuery] = {}
        others: list[BenchQuery] = []
        for query in self.setup.corpus.queries(wanted, rows=self.written):
            if query.project in first:
                others.append(query)
            else:
                first[query.project] = query
        return list(first.values()), others[: self.options.queries]

    def _asked(self, query: BenchQuery) -> dict[str, str | int]:
        return {"text": query.text, "project": query.project, "k": self.options.k}

    def _workers(self) -> dict[str, measure.Worker]:
        return {name: self.launch(name, self._at(name)) for name in self.systems}

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


def _latency(answers: Sequence[Mapping[str, Any]]) -> measure.Latency:
    return measure.Latency.of([answer["milliseconds"] for answer in answers])


def _stages(answers: Sequence[Mapping[str, Any]]) -> dict[str, measure.Latency]:
    taken: dict[str, list[float]] = {}
    for answer in answers:
        for stage, milliseconds in answer["stages"].items():
            taken.setdefault(stage, []).append(milliseconds)
    return {stage: measure.Latency.of(each) for stage, each in taken.items()}


def _in_turn(
    workers: Mapping[str, measure.Worker], turn: int
) -> Iterator[tuple[str, measure.Worker]]:
    names = list(workers)
    for place in range(len(names)):
        name = names[(place + turn) % len(names)]
        yield name, workers[name]


def _load_models(workers: Mapping[str, measure.Worker]) -> None:
    for worker in workers.values():
        worker.call("load_model", {"text": "a question about nothing"})


def _end(workers: Mapping[str, measure.Worker]) -> None:
    for worker in workers.values():
        worker.call("close", {})
        worker.end()


def _halves(count: int) -> list[int]:
    return [part for part in (count - count // 2, count // 2) if part]


# What every measurement begins with: a place to write, vectors to fill stores with.

_STRETCH = 8 * BATCH


@contextmanager
def workspace(keep: Path | None) -> Iterator[Path]:
    """Return the directory for the stores; None for one that is gone afterwards.

    Raises:
        InvalidInput: The directory to keep is in use.
    """
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="ekphory-bench-") as directory:
            yield Path(directory)
        return
    if keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise InvalidInput("keep", str(keep), "is in use", "Give a new or an empty directory")
    keep.mkdir(parents=True, exist_ok=True)
    yield keep


@contextmanager
def model_worker(
    options: measure.StoreOptions, launch: measure.Launcher, *, org: str | None = None
) -> Iterator[tuple[measure.Worker, measure.Setup]]:
    """Start the process that embeds, in the directory where the stores are to be.

    Raises:
        InvalidInput: The directory to keep is in use.
    """
    cache = options.cache or user_cache_path("ekphory") / "bench"
    cache.mkdir(parents=True, exist_ok=True)
    with workspace(options.keep) as directory:
        setup = measure.Setup(
            directory=str(directory / "model"),
            pool=str(cache),
            embedder=options.embedder,
            seed=options.seed,
            scopes=options.scopes[0],
            org=org,
        )
        yield launch("model", setup), setup


def stores_with_vectors(
    model: measure.Worker, setup: measure.Setup, options: measure.StoreOptions, on_progress: Told
) -> list[measure.Setup]:
    """Embed what the stores need, end the model, and return the setup of each layout."""
    size = min(options.n, options.embedded)
    answer: dict[str, Any] = {"size": -1}
    while answer["size"] < size:
        answer = model.call("pool", {"size": size, "stretch": _STRETCH})
        on_progress(f"embedding ahead: {answer['size']:,} of {size:,} memories")
    model.end()
    return [
        replace(
            setup,
            directory=str(Path(setup.directory).with_name(f"{scopes}-scopes")),
            pool=answer["directory"],
            scopes=scopes,
        )
        for scopes in options.scopes
    ]


def plain(options: DataclassInstance) -> dict[str, Any]:
    """Return options as values that JSON can hold."""
    given = asdict(options)
    return {name: str(value) if isinstance(value, Path) else value for name, value in given.items()}


# The report for people, as text in tables: what was measured, and the conditions.

_MEBIBYTE = 2**20
_NOTHING = "-"

_ROWS: Mapping[str, tuple[str, str]] = tomllib.loads(
    files("ekphory_lab.bench").joinpath("rows.toml").read_text(encoding="utf-8")
)
"""By label: how a figure is written, and where it stands in a report; of sizes the mebibytes."""


def _figure(system: measure.SystemReport, place: str) -> float | None:
    value: Any = system
    for name in place.split("."):
        value = value.get(name) if isinstance(value, Mapping) else getattr(value, name)
    if value is None:
        return None
    number: float = value
    return number / _MEBIBYTE if "bytes" in place else number


def report_tables(report: measure.BenchReport) -> list[ReportTable]:
    """Show every size with its stages."""
    return [table for size in report.sizes for table in (size_table(size), stage_table(size))]


def size_table(size: measure.SizeReport) -> ReportTable:
    """Show all systems with the same memories, a column each."""
    rows = [
        (label, *(_format(_figure(system, place), form) for system in size.systems))
        for label, (form, place) in _ROWS.items()
    ]
    return ReportTable(
        title=f"{size.rows:,} memories in {name_scopes(size.scopes)}",
        header=("", *(system.name for system in size.systems)),
        rows=tuple(row for row in rows if set(row[1:]) != {_NOTHING}),
    )


def stage_table(size: measure.SizeReport) -> ReportTable:
    """Show where the first system's warm searches spend their time."""
    first = size.systems[0]
    return ReportTable(
        title=f"stages at {size.rows:,} memories",
        header=("stage", "p50 ms", "p95 ms"),
        rows=tuple(
            (stage, f"{latency.p50:.2f}", f"{latency.p95:.2f}")
            for stage, latency in first.stages.items()
        ),
    )


def conditions(report: measure.BenchReport) -> list[str]:
    """Say on what machine, with what versions and options, what the model alone does, in lines."""
    model = report.embedding
    memory = None if model.peak_bytes is None else model.peak_bytes / _MEBIBYTE
    return [
        describe_machine(report.machine),
        ", ".join(f"{name} {version}" for name, version in report.versions.items()),
        f"seed {report.options['seed']}, k {report.options['k']}, "
        f"{report.options['queries']} queries, {report.seconds:.0f} s",
        f"{model.embedder}: {model.texts_per_second:.0f} passages/s in batches of 256, a query "
        f"p50 {model.query.p50:.1f} ms, p95 {model.query.p95:.1f} ms, "
        f"peak memory {_format(memory, ',.0f')} MiB",
    ]


def describe_machine(described: Mapping[str, str | int | float]) -> str:
    """Say on what machine something was measured."""
    load = described.get("load", _NOTHING)
    return (
        f"{described['processor']}, {described['usable_cores']} cores usable, "
        f"{described['system']}, Python {described['python']}, load {load} at the start"
    )


def _format(value: float | None, form: str) -> str:
    return _NOTHING if value is None else format(value, form)


# The whole run.


def run_bench(
    options: measure.BenchOptions, *, on_progress: Told, launch: measure.Launcher = measure.in_child
) -> measure.BenchReport:
    """Measure everything that the options ask for.

    Args:
        options: What to measure.
        on_progress: Told in words what is being done.
        launch: How measuring processes are started.

    Raises:
        InvalidInput: The directory to keep is in use.
        BenchError: A measuring process failed.
    """
    began, described = time.perf_counter(), measure.machine()
    systems = SYSTEMS if options.beside == "lancedb" else (PRODUCT,)
    sizes: list[measure.SizeReport] = []
    with model_worker(options, launch) as (model, setup):
        embedding = _measured_model(model, options, on_progress)
        for store in stores_with_vectors(model, setup, options, on_progress):
            layout = Layout(
                options=options,
                setup=store,
                systems=systems,
                launch=launch,
                on_progress=on_progress,
            )
            sizes += [layout.measure_size(size) for size in options.sizes()]
    return measure.BenchReport(
        machine=described,
        versions=measure.versions(),
        options=plain(options),
        embedding=embedding,
        sizes=tuple(sizes),
        seconds=round(time.perf_counter() - began, 1),
    )


def _measured_model(
    model: measure.Worker, options: measure.BenchOptions, on_progress: Told
) -> measure.EmbeddingSpeed:
    on_progress("measuring the model alone")
    # Memories beyond all stores, and other questions, so that no cache can know them.
    first = 2 * options.n
    passages = model.call("measure", {"start": first, "stop": first + options.batches * BATCH})
    asked = Corpus(seed=options.seed + 1).queries(options.queries, rows=first)
    queries = model.call("queries", {"texts": [query.text for query in asked]})
    return measure.EmbeddingSpeed(
        embedder=passages["embedder"],
        texts_per_second=round(passages["texts_per_second"], 1),
        query=measure.Latency.of(queries["milliseconds"]),
        peak_bytes=passages["peak_bytes"],
    )
