"""Other products beside ekphory: same memories, same vectors, environments of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ekphory_lab.bench.generate import BATCH, VectorPool, passage
from ekphory_lab.bench.layout import SYSTEMS, Layout, Told
from ekphory_lab.bench.measure import (
    BenchError,
    BenchOptions,
    ChildWorker,
    EmbeddingSpeed,
    Launcher,
    PeerName,
    Setup,
    SizeReport,
    SystemReport,
    Worker,
    ratios,
)
from ekphory_lab.bench.peer_workers.loop import encoded

# Virtual environments for other products: made once, kept in the cache.

PACKAGES: Mapping[PeerName, str] = {"txtai": "txtai", "chromadb": "chromadb", "mem0": "mem0ai"}
_READY = "ready.txt"
_INSTALL_SECONDS = 1800.0
_LOG_CHARACTERS = 400


def python_of(peer: PeerName, *, cache: Path) -> tuple[Path, str]:
    """Return the interpreter of a peer's environment, which is made if need be, and its version.

    Args:
        peer: Whose environment.
        cache: The folder that holds them all.

    Raises:
        BenchError: The environment cannot be made, or the peer not installed.
    """
    home = cache / "environments" / peer
    interpreter = home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    ready = home / _READY
    if not ready.is_file():
        _run([sys.executable, "-m", "venv", "--clear", str(home)])
        _run([str(interpreter), "-m", "pip", "install", "--quiet", PACKAGES[peer]])
        program = f"import importlib.metadata as m; print(m.version({PACKAGES[peer]!r}))"
        ready.write_text(_run([str(interpreter), "-c", program]).strip(), encoding="utf-8")
    return interpreter, ready.read_text(encoding="utf-8")


def quiet_environment(home: Path) -> dict[str, str]:
    """Return variables that turn telemetry off and keep what a peer writes in `home`."""
    return {
        **os.environ,
        "ANONYMIZED_TELEMETRY": "False",
        "MEM0_TELEMETRY": "False",
        "MEM0_DIR": str(home),
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }


def _run(command: list[str]) -> str:
    try:
        finished = subprocess.run(  # noqa: S603  our own programs
            command,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_INSTALL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BenchError(f"{command[1:]}: {error}") from error
    if finished.returncode:
        told = " ".join(command[1:])
        raise BenchError(f"{told} failed: {finished.stderr.strip()[-_LOG_CHARACTERS:]}")
    return finished.stdout


# Other products beside ekphory: same memories, same vectors, environments of their own.

_TRIAL_ROWS = 512
# The folder of the peers' programs joins the end of the path: it hides nothing of theirs.
_PROGRAM = (
    "import sys, runpy; sys.path.append(sys.argv[1]); name = sys.argv[2]; sys.argv[1:3] = []; "
    "runpy.run_module(name, run_name='__main__', alter_sys=True)"
)
_NOTHING: Mapping[str, Any] = {"seconds": None, "rows": None, "peak_bytes": None}


@dataclass(frozen=True, slots=True)
class PeerRun:
    """What came of measuring the peers.

    Attributes:
        report: All systems on the same memories; None when no peer could be measured.
        versions: Of the peers that were measured.
        skipped: Why the others were not.
    """

    report: SizeReport | None
    versions: Mapping[str, str]
    skipped: Mapping[str, str]

    def with_model(self, embedding: EmbeddingSpeed) -> SizeReport | None:
        """Return the report with each system's write speed when the model's time is added."""
        if self.report is None:
            return None
        systems = tuple(_with_model(system, embedding) for system in self.report.systems)
        return replace(self.report, systems=systems, ratios=ratios(systems))


class PeerWorker:
    """A peer in its environment; hands it texts with vectors, and counts the query's embedding."""

    def __init__(self, child: Worker, *, model: Worker, setup: Setup) -> None:
        self._child = child
        self._model = model
        self._corpus = setup.corpus
        self._pool = VectorPool(Path(setup.pool))

    def call(self, operation: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Run one operation; those that a peer has no part in do nothing."""
        if operation == "fill":
            return self._fill(payload["start"], payload["stop"])
        if operation == "search":
            return self._search(payload)
        return dict(_NOTHING)

    def end(self) -> None:
        """End the process."""
        self._child.end()

    def _fill(self, start: int, stop: int) -> dict[str, Any]:
        records = [
            {"id": record["id"], "text": passage(record), "project": record["project"]}
            for record in self._corpus.records(start, stop)
        ]
        payload = {
            "records": records,
            "vectors": encoded(self._pool.rows(start, stop)),
            "dimension": self._pool.identity.dimension,
            "batch": BATCH,
        }
        answer = self._child.call("fill", payload)
        return {**answer, "upkeep_seconds": 0.0, "index_seconds": 0.0}

    def _search(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        embedded = self._model.call("queries", {"texts": [payload["text"]]})
        answer = self._child.call("search", {**payload, "vector": embedded["vectors"][0]})
        stages = {"query embedding": embedded["milliseconds"][0], "rest": answer["milliseconds"]}
        return {**answer, "milliseconds": sum(stages.values()), "stages": stages}


def measure_peers(
    options: BenchOptions, *, setup: Setup, model: Worker, launch: Launcher, on_progress: Told
) -> PeerRun:
    """Fill and search ekphory, LanceDB and the peers in turn, with the same vectors.

    A peer that cannot be installed, or fails on its first memories, is left out with the reason.

    Args:
        options: What to measure.
        setup: Where; its cache of vectors must hold `peer_n` memories.
        model: Embeds the queries for the peers.
        launch: Starts the other systems.
        on_progress: Told in words what is being done.
    """
    cache = Path(setup.pool).parent
    pythons: dict[str, Path] = {}
    versions: dict[str, str] = {}
    skipped: dict[str, str] = {}

    def start(name: str, where: Setup) -> Worker:
        if name not in pythons:
            return launch(name, where)
        return _started(name, pythons[name], where, model=model)

    for peer in options.peers:
        on_progress(f"preparing {peer}")
        try:
            pythons[peer], versions[peer] = python_of(peer, cache=cache)
            _try_out(start(peer, replace(setup, directory=f"{setup.directory}-trial-{peer}")))
        except BenchError as error:
            pythons.pop(peer, None)
            versions.pop(peer, None)
            skipped[peer] = str(error)
            on_progress(f"{peer} is left out: {error}")
    if not pythons:
        return PeerRun(None, versions, skipped)
    systems = (*SYSTEMS, *pythons)
    layout = Layout(options, setup=setup, systems=systems, launch=start, on_progress=on_progress)
    return PeerRun(layout.measure_basics(options.peer_n), versions, skipped)


def _started(name: str, python: Path, setup: Setup, *, model: Worker) -> PeerWorker:
    home = Path(setup.directory)
    home.mkdir(parents=True, exist_ok=True)
    dimension = VectorPool(Path(setup.pool)).identity.dimension
    folder = str(Path(__file__).parent)
    module = f"peer_workers.{name}_worker"
    command = [str(python), "-c", _PROGRAM, folder, module, str(home), str(dimension)]
    child = ChildWorker(command, log=Path(f"{home}.log"), environment=quiet_environment(home))
    return PeerWorker(child, model=model, setup=setup)


def _try_out(worker: Worker) -> None:
    try:
        worker.call("fill", {"start": 0, "stop": _TRIAL_ROWS})
        worker.call("search", {"text": "the kitchen", "project": "project-00", "k": 10})
    finally:
        worker.end()


def _with_model(system: SystemReport, embedding: EmbeddingSpeed) -> SystemReport:
    seconds = 1 / system.fill.per_second + 1 / embedding.texts_per_second
    return replace(system, write=replace(system.fill, per_second=round(1 / seconds, 1)))
