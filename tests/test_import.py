"""What `import ekphory` costs and touches, seen from a fresh interpreter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

MOST_SECONDS = 0.3
HEAVY = {"torch", "sentence_transformers", "transformers", "lancedb", "pyarrow", "onnxruntime"}
# What LanceDB does at import is local: a pair of sockets to wake an event loop, a test for IPv6.
NETWORK = {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"}

PROBE = """
import json, logging, sys, time

sockets, touched = [], []

def watch(event, arguments):
    if event.startswith("socket."):
        sockets.append(event)
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        touched.append(str(arguments[0]))
    if event in ("os.mkdir", "os.rename", "os.remove", "subprocess.Popen"):
        touched.append(f"{event} {arguments[0]}")

sys.addaudithook(watch)
started = time.perf_counter()
STATEMENT
seconds = time.perf_counter() - started
print(json.dumps({
    "seconds": seconds,
    "modules": sorted(sys.modules),
    "sockets": sockets,
    "touched": touched,
    "handlers": len(logging.getLogger().handlers),
}))
"""


def probe(statement: str, home: Path) -> dict[str, Any]:
    code = PROBE.replace("STATEMENT", statement)
    environment = os.environ | {"HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=home,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_importing_the_package_takes_less_than_three_tenths_of_a_second(tmp_path):
    assert min(probe("import ekphory", tmp_path)["seconds"] for _ in range(5)) < MOST_SECONDS


def test_importing_the_package_touches_nothing_and_loads_nothing_heavy(tmp_path):
    seen = probe("import ekphory", tmp_path)
    assert HEAVY.isdisjoint(seen["modules"])
    assert (seen["sockets"], seen["touched"], seen["handlers"]) == ([], [], 0)
    assert list(tmp_path.iterdir()) == []


def test_importing_what_a_user_holds_connects_nowhere_writes_no_file_and_loads_no_torch(tmp_path):
    seen = probe("from ekphory import AsyncMemory, Memory, load_embedder", tmp_path)
    assert NETWORK.isdisjoint(seen["sockets"])
    assert {"torch", "sentence_transformers"}.isdisjoint(seen["modules"])
    assert seen["touched"] == []
    assert seen["handlers"] == 0
    assert list(tmp_path.iterdir()) == []
