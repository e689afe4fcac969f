"""Measure how long a command and a session over stdio take, from the start of the program.

`python -m scripts.measure_start` prints one JSON document: milliseconds with the resident process
and without it, on a store of its own with a thousand memories.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median, quantiles

from ekphory.memory import Memory

_MEMORIES = 1_000
_HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "measure", "version": "1"},
}
_NOTES = iter(range(10**9))


class Home:
    """A home with a store, a resident process, and nothing of the user's."""

    def __init__(self, path: Path) -> None:
        self.store = str(path / "store")
        kept = {name: value for name, value in os.environ.items() if name[:8] != "EKPHORY_"}
        self.environment = {**kept, "HOME": str(path), "XDG_DATA_HOME": str(path / "data")}
        with Memory(self.store) as memory:
            memory.add_many({"text": f"Shelf {n} holds box {n * 7}"} for n in range(_MEMORIES))

    def run(self, command: list[str], environment: Mapping[str, str]) -> None:
        """Run a command to its end."""
        words = [sys.executable, "-m", "ekphory", *command]
        subprocess.run(words, env=dict(environment), check=True, capture_output=True)

    def call(self, tool: str, arguments: Mapping[str, str], environment: Mapping[str, str]) -> None:
        """Start a session over stdio, and wait for the answer to its first call."""
        words = [sys.executable, "-m", "ekphory", "mcp", "--store", self.store]
        with subprocess.Popen(
            words,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            assert process.stdin is not None and process.stdout is not None
            for message in (
                {"id": 1, "method": "initialize", "params": _HELLO},
                {"method": "notifications/initialized"},
                {"id": 2, "method": "tools/call", "params": {"name": tool, "arguments": arguments}},
            ):
                process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
                process.stdin.flush()
                if "id" in message:
                    process.stdout.readline()
            process.stdin.close()


def _ways(home: Home) -> dict[str, Callable[[Mapping[str, str]], None]]:
    def note() -> str:
        return f"Note {next(_NOTES)} of {time.time()}"

    where = ["--store", home.store]
    return {
        "search": lambda env: home.run(["search", "what is on shelf 9?", *where], env),
        "add": lambda env: home.run(["add", note(), *where], env),
        "mcp recall": lambda env: home.call("recall", {"query": "what is on shelf 9?"}, env),
        "mcp remember": lambda env: home.call("remember", {"text": note()}, env),
    }


def _measure(way: Callable[[Mapping[str, str]], None], env: Mapping[str, str], runs: int) -> object:
    way(env)
    taken = []
    for _ in range(runs):
        started = time.perf_counter()
        way(env)
        taken.append((time.perf_counter() - started) * 1000)
    return {"p50_ms": round(median(taken)), "p95_ms": round(quantiles(taken, n=20)[-1])}


def main() -> None:
    """Measure, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=30, help="of each, with the resident process")
    runs = parser.parse_args().runs
    # A socket's path is short.
    folder = Path(tempfile.mkdtemp(prefix="ek"))
    home = Home(folder)
    alone = {**home.environment, "EKPHORY_DAEMON": "0"}
    try:
        home.run(["search", "shelf", "--store", home.store], home.environment)
        time.sleep(8)  # the resident process loads its models
        found = {
            name: {
                "resident": _measure(way, home.environment, runs),
                "alone": _measure(way, alone, max(2, runs // 10)),
            }
            for name, way in _ways(home).items()
        }
        print(json.dumps(found, indent=2))
    finally:
        home.run(["daemon", "stop"], home.environment)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
