"""Measuring processes, as their parent sees them: what they are told, and what they measured."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

from ekphory.config import read_settings
from ekphory.errors import EkphoryError, InvalidInput
from ekphory.models.embedder import EmbeddingModel
from ekphory.models.loading import load_configured_embedder, load_embedder
from ekphory.threads import count_usable_cores
from ekphory_lab.bench.generate import Corpus
from ekphory_lab.evaluation.metrics import Latency

# On what machine, and with what versions, something was measured.

PACKAGES = ("ekphory", "lancedb", "numpy", "onnxruntime", "pyarrow", "tokenizers")


def machine() -> dict[str, str | int | float]:
    """Describe the machine: cores, processor, memory, system."""
    described: dict[str, str | int | float] = {
        "cpu_count": os.cpu_count() or 1,
        "usable_cores": count_usable_cores(),
        "processor": read_field(Path("/proc/cpuinfo"), "model name")
        or platform.processor()
        or platform.machine(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }
    memory = read_field(Path("/proc/meminfo"), "MemTotal")
    if memory is not None:
        described["memory_gib"] = round(int(memory.split()[0]) / 2**20, 1)
    if hasattr(os, "getloadavg"):
        # What else ran when the measuring began; above zero, compare ratios rather than figures.
        described["load"] = round(os.getloadavg()[0], 2)
    return described


def versions(packages: Sequence[str] = PACKAGES) -> dict[str, str]:
    """Return the installed versions of packages; one that is not installed is left out."""
    found: dict[str, str] = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def read_field(path: Path, name: str) -> str | None:
    """Return the value of a field that the system tells; None where it does not."""
    if not path.is_file():
        return None
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None


# What a measuring process is told when it starts.

_OBJECT = re.compile(r"[A-Za-z_]\w+(\.\w+)*:[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a measuring process works with.

    Attributes:
        directory: Where its store is, or is to be.
        pool: Directory of the vectors that are there already.
        embedder: What `ekphory.models.loading.load_embedder` takes, or `package.module:name` of
            something that makes an `EmbeddingModel`.
        seed, scopes: Of the corpus.
        org: The organisation that the store's projects belong to; None for none.
    """

    directory: str
    pool: str
    embedder: str
    seed: int
    scopes: int
    org: str | None = None

    @property
    def corpus(self) -> Corpus:
        """The memories."""
        return Corpus(seed=self.seed, scopes=self.scopes)

    def to_json(self) -> str:
        """Write it as one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Setup:
        """Read what `to_json` wrote."""
        return cls(**json.loads(text))


def load(name: str) -> EmbeddingModel:
    """Load the embedder that an option names.

    Raises:
        InvalidInput: No embedder has that name.
    """
    if not _OBJECT.fullmatch(name):
        settings = replace(read_settings(), embedder=name)
        return load_configured_embedder(settings) or load_embedder()
    module, attribute = name.split(":")
    try:
        made: EmbeddingModel = getattr(import_module(module), attribute)()
    except (ImportError, AttributeError) as error:
        raise InvalidInput(
            "embedder", name, f"cannot be loaded ({error})", "Give package.module:name"
        ) from error
    return made


# What was measured, as plain values that go to JSON as they are.


@dataclass(frozen=True, slots=True)
class WriteSpeed:
    """How fast batches of 256 became durable.

    Attributes:
        rows: How many were written.
        per_second: With upkeep (merging files), without building the vector index.
    """

    rows: int
    per_second: float

    @classmethod
    def of(cls, stretches: Sequence[Mapping[str, Any]]) -> WriteSpeed:
        """Return the speed of all stretches together."""
        rows, seconds = (sum(each[name] for each in stretches) for name in ("rows", "seconds"))
        return cls(rows, round(rows / seconds, 1))


@dataclass(frozen=True, slots=True)
class SystemReport:
    """One system at one size.

    Attributes:
        name: `ekphory` or `lancedb`.
        write: Writing with the model.
        add: One memory a call, with the model.
        cold: First search of a scope in a fresh process whose model is loaded.
        warm: Distinct queries after that, with the query's embedding.
        stages: Warm time by stage.
        recall: Share of the exact nearest that the dense arm finds, by k.
        short: Searches that gave fewer hits than the scope could, for k of 10, 100 and 1,000.
        bytes: On disk.
        peak_bytes: Most memory of the process, by phase; empty where it cannot be read.
    """

    name: str
    write: WriteSpeed
    add: Latency
    cold: Latency
    warm: Latency
    stages: Mapping[str, Latency]
    recall: Mapping[str, float]
    short: int | None
    bytes: int
    peak_bytes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SizeReport:
    """All systems with the same memories.

    Attributes:
        rows: Memories in each store.
        scopes: Projects that they are spread over.
        systems: ekphory first.
    """

    rows: int
    scopes: int
    systems: tuple[SystemReport, ...]


@dataclass(frozen=True, slots=True)
class BenchReport:
    """Everything that one run measured.

    Attributes:
        machine, versions, options: Under what conditions.
        sizes: By layout, ascending.
        seconds: How long it all took.
    """

    machine: Mapping[str, str | int | float]
    versions: Mapping[str, str]
    options: Mapping[str, Any]
    sizes: tuple[SizeReport, ...]
    seconds: float


# Measuring processes, as their parent sees them.

_END_SECONDS = 60.0
_LOG_CHARACTERS = 600


class BenchError(EkphoryError):
    """A measuring process failed."""


class Worker(Protocol):
    """Runs operations, wherever that is."""

    def call(self, operation: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Run one operation, and return its answer, which holds only what JSON can.

        Raises:
            BenchError: It failed.
        """

    def end(self) -> None:
        """End the process."""


Launcher = Callable[[str, Setup], Worker]
"""Starts the worker of a name (`ekphory`, `lancedb`, `model`) with its setup."""


class ChildWorker:
    """A worker in a process of its own, so that its memory is its own."""

    def __init__(self, command: Sequence[str], *, log: Path) -> None:
        self._log = log
        with log.open("ab") as stream:
            self._process = subprocess.Popen(  # noqa: S603  our own program
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stream,
                encoding="utf-8",
            )

    def call(self, operation: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Run one operation there."""
        asked = json.dumps({"operation": operation, "payload": payload})
        if self._process.stdin is None or self._process.stdout is None:
            raise BenchError("a measuring process without pipes")
        try:
            self._process.stdin.write(asked + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            log = self._log.read_text(encoding="utf-8", errors="replace").strip()
            words = f"Its last words, from {self._log}: {log[-_LOG_CHARACTERS:]}"
            raise BenchError(f"{operation}: the measuring process ended. {words}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise BenchError(f"{operation}: {answer['error']}")
        return answer

    def end(self) -> None:
        """Close its input and wait for its end."""
        try:
            self._process.communicate(timeout=_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()


def in_child(name: str, setup: Setup) -> Worker:
    """Start a worker in a process of its own; what it prints goes to a log beside its store."""
    log = Path(f"{setup.directory}.{name}.log")
    module = f"ekphory_lab.bench.{name}_worker"
    return ChildWorker([sys.executable, "-m", module, setup.to_json()], log=log)
