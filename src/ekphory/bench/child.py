"""Measuring processes, as their parent sees them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from ekphory.bench.peer_workers.loop import Operation, answer
from ekphory.bench.setup import Setup
from ekphory.errors import EkphoryError

_END_SECONDS = 60.0
_LOG_CHARACTERS = 600


class BenchError(EkphoryError):
    """A measuring process failed."""


class Worker(Protocol):
    """Runs operations, wherever that is."""

    def call(self, operation: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Run one operation; gives its answer, which holds only what JSON can.

        Raises:
            BenchError: It failed.
        """
        ...

    def end(self) -> None:
        """End the process."""
        ...


Launcher = Callable[[str, Setup], Worker]
"""Starts the worker of a name (`ekphory`, `lancedb`, `model`) with its setup."""


class ChildWorker:
    """A worker in a process of its own, so that its memory is its own."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._log = log
        with log.open("ab") as stream:
            self._process = subprocess.Popen(  # noqa: S603  our own program
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stream,
                env=None if environment is None else dict(environment),
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
            raise BenchError(f"{operation}: the measuring process ended. {self._last_words()}")
        return _checked(operation, json.loads(line))

    def end(self) -> None:
        """Close its input and wait for its end."""
        try:
            self._process.communicate(timeout=_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def _last_words(self) -> str:
        written = self._log.read_text(encoding="utf-8", errors="replace").strip()
        return f"Its last words, from {self._log}: {written[-_LOG_CHARACTERS:]}"


class LocalWorker:
    """A worker in this process: for tests, where memory is not measured."""

    def __init__(self, operations: Mapping[str, Operation]) -> None:
        self._operations = operations

    def call(self, operation: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Run one operation here; what goes in and out is what JSON keeps of it."""
        asked = json.loads(json.dumps({"operation": operation, "payload": payload}))
        return _checked(operation, json.loads(json.dumps(answer(self._operations, asked))))

    def end(self) -> None:
        """Nothing to end."""


def in_child(name: str, setup: Setup) -> Worker:
    """Start a worker in a process of its own; what it prints goes to a log beside its store."""
    log = Path(f"{setup.directory}.{name}.log")
    module = f"ekphory.bench.{name}_worker"
    return ChildWorker([sys.executable, "-m", module, setup.to_json()], log=log)


def in_process(name: str, setup: Setup) -> Worker:
    """Make a worker in this process."""
    from ekphory.bench.ekphory_worker import EkphoryStore
    from ekphory.bench.lancedb_worker import LanceDbStore
    from ekphory.bench.model_worker import ModelWorker
    from ekphory.bench.store_worker import OpenStore, StoreWorker

    if name == "model":
        return LocalWorker(ModelWorker(setup).operations())
    stores: Mapping[str, OpenStore] = {"ekphory": EkphoryStore, "lancedb": LanceDbStore}
    return LocalWorker(StoreWorker(setup, stores[name]).operations())


def _checked(operation: str, given: dict[str, Any]) -> dict[str, Any]:
    if "error" in given:
        raise BenchError(f"{operation}: {given['error']}")
    return given
