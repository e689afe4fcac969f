"""The whole run: the model, the layouts, and the report."""

from __future__ import annotations

import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from platformdirs import user_cache_path

from ekphory.errors import InvalidInput
from ekphory_lab.bench.generate import BATCH, TURNS, BenchQuery, Corpus
from ekphory_lab.bench.measure import (
    BenchOptions,
    BenchReport,
    EmbeddingSpeed,
    Latency,
    Launcher,
    Setup,
    SizeReport,
    StoreOptions,
    SystemReport,
    Worker,
    WriteSpeed,
    in_child,
    machine,
    versions,
)
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


class Layout:
    """Stores with the same memories, one of each system, measured at growing sizes.

    Systems take turns within every phase, so that what else the machine does hits all alike. Each
    phase has fresh processes, so that their peak memory is that phase's.
    """

    def __init__(
        self,
        options: BenchOptions,
        *,
        setup: Setup,
        systems: Sequence[str],
        launch: Launcher,
        on_progress: Told,
    ) -> None:
        self._options = options
        self._setup = setup
        self._systems = tuple(systems)
        self._launch = launch
        self._on_progress = on_progress
        self._written = 0

    def measure(self, size: int) -> SizeReport:
        """Bring the stores to `size` memories (more only if they have them) and measure it all."""
        found: Found = {name: {"peak_bytes": {}} for name in self._systems}
        self._fill(size, found)
        rows = self._written
        self._search(found)
        self._compare_recall(found)
        self._add(found)
        systems = tuple(SystemReport(name=name, **figures) for name, figures in found.items())
        return SizeReport(rows, self._setup.scopes, systems)

    def _fill(self, size: int, found: Found) -> None:
        workers = self._workers()
        starts = range(self._written, size, _CHUNK)
        self._write("fill", [min(_CHUNK, size - start) for start in starts], workers, found)
        for name, worker in workers.items():
            self._tell(f"waiting for the indexes of {name}")
            answer = worker.call("index", {"rows": self._written})
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
        workers: Mapping[str, Worker],
        found: Found,
    ) -> None:
        answers: dict[str, list[dict[str, Any]]] = {name: [] for name in workers}
        for turn, rows in enumerate(sizes):
            stretch = {"start": self._written, "stop": self._written + rows}
            for name, worker in _in_turn(workers, turn):
                answers[name].append(worker.call(phase, stretch))
                _note_peak(found[name], phase, answers[name][-1])
            self._written = stretch["stop"]
            self._tell("written")
        for name, stretches in answers.items():
            found[name][phase] = WriteSpeed.of(stretches)

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
        for name in self._systems:
            self._tell(f"recall of {name}")
            worker = self._launch(name, self._at(name))
            answer = worker.call("recall", {"queries": queries})
            found[name] |= {"recall": answer["recall"], "short": answer["short"]}
            _end({name: worker})

    def _add(self, found: Found) -> None:
        workers = self._workers()
        _load_models(workers)
        self._tell("batches and single memories with the model")
        sizes = [part * BATCH for part in _halves(self._options.batches)]
        self._write("write", sizes, workers, found)
        taken: dict[str, list[float]] = {name: [] for name in workers}
        for turn in range(self._options.single_adds):
            stretch = {"start": self._written, "stop": self._written + 1}
            for name, worker in _in_turn(workers, turn):
                taken[name] += worker.call("add", stretch)["milliseconds"]
            self._written += 1
        for name, milliseconds in taken.items():
            found[name]["add"] = Latency.of(milliseconds)
        _end(workers)

    def _queries(self) -> tuple[list[BenchQuery], list[BenchQuery]]:
        """One question for each scope that holds something, and as many others as asked for."""
        scopes = min(self._setup.scopes, max(1, self._written // TURNS))
        wanted = scopes * _SPARE_QUERIES + self._options.queries
        first: dict[str, BenchQuery] = {}
        others: list[BenchQuery] = []
        for query in self._setup.corpus.queries(wanted, rows=self._written):
            if query.project in first:
                others.append(query)
            else:
                first[query.project] = query
        return list(first.values()), others[: self._options.queries]

    def _asked(self, query: BenchQuery) -> dict[str, str | int]:
        return {"text": query.text, "project": query.project, "k": self._options.k}

    def _workers(self) -> dict[str, Worker]:
        return {name: self._launch(name, self._at(name)) for name in self._systems}

    def _at(self, name: str) -> Setup:
        return replace(self._setup, directory=f"{self._setup.directory}-{name}")

    def _tell(self, what: str) -> None:
        scopes = "one scope" if self._setup.scopes == 1 else f"{self._setup.scopes} scopes"
        self._on_progress(f"{scopes}, {self._written:,} memories: {what}")


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


def _in_turn(workers: Mapping[str, Worker], turn: int) -> Iterator[tuple[str, Worker]]:
    names = list(workers)
    for place in range(len(names)):
        name = names[(place + turn) % len(names)]
        yield name, workers[name]


def _load_models(workers: Mapping[str, Worker]) -> None:
    for worker in workers.values():
        worker.call("load_model", {"text": "a question about nothing"})


def _end(workers: Mapping[str, Worker]) -> None:
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


def model_setup(options: StoreOptions, directory: Path) -> Setup:
    """Return the setup of the process that embeds."""
    cache = options.cache or user_cache_path("ekphory") / "bench"
    cache.mkdir(parents=True, exist_ok=True)
    return Setup(
        directory=str(directory / "model"),
        pool=str(cache),
        embedder=options.embedder,
        seed=options.seed,
        scopes=options.scopes[0],
    )


def filled_pool(model: Worker, options: StoreOptions, on_progress: Told) -> str:
    """Embed as many memories as the stores need; gives the directory of their vectors."""
    size = min(options.n, options.embedded)
    while True:
        answer = model.call("pool", {"size": size, "stretch": _STRETCH})
        on_progress(f"embedding ahead: {answer['size']:,} of {size:,} memories")
        if answer["size"] >= size:
            return str(answer["directory"])


def placed(setup: Setup, name: str, *, scopes: int) -> Setup:
    """Return the setup of another store beside it."""
    return replace(setup, directory=str(Path(setup.directory).parent / name), scopes=scopes)


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


def _figure(system: SystemReport, place: str) -> float | None:
    value: Any = system
    for name in place.split("."):
        value = value.get(name) if isinstance(value, Mapping) else getattr(value, name)
    if value is None:
        return None
    number: float = value
    return number / _MEBIBYTE if "bytes" in place else number


def report_tables(report: BenchReport) -> list[ReportTable]:
    """Show every size with its stages."""
    return [table for size in report.sizes for table in (size_table(size), stage_table(size))]


def size_table(size: SizeReport) -> ReportTable:
    """Show all systems with the same memories, a column each."""
    scopes = "one scope" if size.scopes == 1 else f"{size.scopes} scopes"
    rows = [
        (label, *(_format(_figure(system, place), form) for system in size.systems))
        for label, (form, place) in _ROWS.items()
    ]
    return ReportTable(
        title=f"{size.rows:,} memories in {scopes}",
        header=("", *(system.name for system in size.systems)),
        rows=tuple(row for row in rows if set(row[1:]) != {_NOTHING}),
    )


def stage_table(size: SizeReport) -> ReportTable:
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


def conditions(report: BenchReport) -> list[str]:
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


def describe_machine(machine: Mapping[str, str | int | float]) -> str:
    """Say on what machine something was measured."""
    return (
        f"{machine['processor']}, {machine['usable_cores']} cores usable, {machine['system']}, "
        f"Python {machine['python']}, load {machine.get('load', _NOTHING)} at the start"
    )


def _format(value: float | None, form: str) -> str:
    return _NOTHING if value is None else format(value, form)


# The whole run.


def run_bench(
    options: BenchOptions, *, on_progress: Told, launch: Launcher = in_child
) -> BenchReport:
    """Measure everything that the options ask for.

    Args:
        options: What to measure.
        on_progress: Told in words what is being done.
        launch: How measuring processes are started.

    Raises:
        InvalidInput: The directory to keep is in use.
        BenchError: A measuring process failed.
    """
    began, described = time.perf_counter(), machine()
    with workspace(options.keep) as directory:
        setup = model_setup(options, directory)
        model = launch("model", setup)
        embedding = _measured_model(model, options, on_progress)
        setup = replace(setup, pool=filled_pool(model, options, on_progress))
        model.end()
        sizes = _layouts(options, setup, launch, on_progress)
    return BenchReport(
        machine=described,
        versions=versions(),
        options=plain(options),
        embedding=embedding,
        sizes=sizes,
        seconds=round(time.perf_counter() - began, 1),
    )


def _measured_model(model: Worker, options: BenchOptions, on_progress: Told) -> EmbeddingSpeed:
    on_progress("measuring the model alone")
    # Memories beyond all stores, and other questions, so that no cache can know them.
    first = 2 * options.n
    passages = model.call("measure", {"start": first, "stop": first + options.batches * BATCH})
    asked = Corpus(seed=options.seed + 1).queries(options.queries, rows=first)
    queries = model.call("queries", {"texts": [query.text for query in asked]})
    return EmbeddingSpeed(
        embedder=passages["embedder"],
        texts_per_second=round(passages["texts_per_second"], 1),
        query=Latency.of(queries["milliseconds"]),
        peak_bytes=passages["peak_bytes"],
    )


def _layouts(
    options: BenchOptions, setup: Setup, launch: Launcher, on_progress: Told
) -> tuple[SizeReport, ...]:
    reports: list[SizeReport] = []
    for scopes in options.scopes:
        store = placed(setup, f"{scopes}-scopes", scopes=scopes)
        systems = SYSTEMS if options.beside == "lancedb" else (PRODUCT,)
        layout = Layout(
            options, setup=store, systems=systems, launch=launch, on_progress=on_progress
        )
        reports += [layout.measure(size) for size in options.sizes()]
    return tuple(reports)
