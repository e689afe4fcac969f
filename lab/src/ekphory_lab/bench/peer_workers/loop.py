"""Runs operations that come as JSON lines, and answers each with one JSON line."""

from __future__ import annotations

import base64
import importlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Operation = Callable[[dict[str, Any]], dict[str, Any]]


class PeerStore:
    """A store of another product: what its process is asked for."""

    def operations(self) -> dict[str, Operation]:
        """Name what the parent may ask for."""
        return {"fill": self.fill, "search": self.search}

    def fill(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Write memories, in batches where the product has any."""
        vectors = decoded(payload["vectors"], payload["dimension"])
        records = payload["records"]
        self.prepare([record["text"] for record in records], vectors)
        size = payload["batch"]
        started = time.perf_counter()
        for first in range(0, len(records), size):
            self.write(records[first : first + size], vectors[first : first + size])
        self.save()
        return {"rows": len(records), "seconds": time.perf_counter() - started}

    def search(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Search one project."""
        self.prepare([payload["text"]], [payload["vector"]])
        started = time.perf_counter()
        hits = self.find(payload)
        return {"milliseconds": (time.perf_counter() - started) * 1000, "hits": hits}

    def prepare(self, texts: list[str], vectors: Any) -> None:  # noqa: ANN401  a matrix
        """Hear which vectors the texts to come have."""

    def write(self, records: list[dict[str, Any]], vectors: Any) -> None:  # noqa: ANN401  likewise
        """Write one batch."""
        raise NotImplementedError

    def save(self) -> None:
        """Make what was written durable."""

    def find(self, payload: dict[str, Any]) -> int:
        """Search, and return how many were found."""
        raise NotImplementedError


def serve(operations: Mapping[str, Operation]) -> None:
    """Answer `{"operation": name, "payload": {…}}` lines until the input ends.

    An answer holds what the operation gave and `peak_bytes`, or `error` with what was raised.
    What libraries print goes to the error stream, so that it cannot break the answers.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        answers.write(json.dumps(answer(operations, json.loads(line))) + "\n")
        answers.flush()


def answer(operations: Mapping[str, Operation], request: Mapping[str, Any]) -> dict[str, Any]:
    """Run one operation."""
    try:
        result = operations[request["operation"]](request["payload"])
    except Exception as error:  # noqa: BLE001  told to the parent, which decides
        traceback.print_exc(file=sys.stderr)
        return {"error": f"{type(error).__name__}: {error}"}
    return {**result, "peak_bytes": peak_bytes()}


def peak_bytes() -> int | None:
    """Most memory that this process has held at once; None where the system does not tell."""
    status = Path("/proc/self/status")
    if status.is_file():
        # Unlike getrusage, this does not count what the parent held before this program began.
        for line in status.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    if sys.platform == "win32":
        return None
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024


def encoded(vectors: Any) -> str:  # noqa: ANN401  numpy may be missing here
    """Write a matrix of 32-bit floats as text."""
    return base64.b64encode(vectors.tobytes()).decode("ascii")


def decoded(text: str, dimension: int) -> Any:  # noqa: ANN401  likewise
    """Read what `encoded` wrote; shape (rows, dimension)."""
    numpy: Any = importlib.import_module("numpy")
    return numpy.frombuffer(base64.b64decode(text), "float32").reshape(-1, dimension)
