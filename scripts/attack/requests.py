"""Send oversized and half-sent requests to a server, and watch whether it still answers others."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_LONGEST_ANSWER = 16 * 1024
"""Bytes of a refusal."""
_LONGEST_WAIT = 0.5
"""Seconds that another's /health may take meanwhile, on a machine with two cores."""
_HALF_SENT = 300
_NUMBERS = 1_000_000
_BODIES = {
    "documents": ("/rerank", {"query": "x", "documents": [0] * _NUMBERS}),
    "types": ("/api/v2/memories/search", {"query": "x", "types": ["x"] * (_NUMBERS // 4)}),
    "input": ("/v1/embeddings", {"model": "x", "input": ["x"] * (_NUMBERS // 4)}),
    "ids": ("/api/v2/memories/episodic/delete", {"episodic_ids": ["x"] * (_NUMBERS // 4)}),
    "depth": ("/rerank", b'{"query":' + b"[" * 500_000),
    "long agent query": (
        "/api/v2/memories/search",
        {"org_id": "o", "project_id": "p", "query": "tulip " * 2_000, "agent_mode": True},
    ),
}


def run(*, rounds: int) -> dict[str, float]:
    """Send each body once in every round; then many that never end."""
    figures = {"requests.sent": 0.0, "requests.server_error_violations": 0.0}
    largest, slowest = 0, 0.0
    with _server() as port, _watched(port) as waits:
        for _ in range(rounds):
            for path, body in _BODIES.values():
                status, size = _sent(port, path, body)
                figures["requests.sent"] += 1
                figures["requests.server_error_violations"] += status >= 500
                if status >= 400:
                    largest = max(largest, size)
        left = [_half_sent(port) for _ in range(_HALF_SENT)]
        slowest = max(waits)
        status, _ = _sent(port, "/rerank", {"query": "tea", "documents": ["tea", "coffee"]})
        figures["requests.shut_out_violations"] = float(status != 200)
        for connection in left:
            connection.close()
    return figures | {
        "requests.largest_refusal_bytes": float(largest),
        "requests.large_refusal_violations": float(largest > _LONGEST_ANSWER),
        "requests.slowest_health_seconds": round(slowest, 3),
        "requests.frozen_violations": float(slowest > _LONGEST_WAIT),
    }


def _sent(port: int, path: str, body: object) -> tuple[int, int]:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", path, content, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, len(answer.read())
    except (BrokenPipeError, ConnectionResetError):
        # It was refused before it was sent whole.
        return 413, 0
    finally:
        connection.close()


def _half_sent(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=10)
    connection.sendall(
        b"POST /rerank HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Authorization: Bearer nobody\r\nContent-Length: 1000\r\n\r\n{"
    )
    return connection


@contextmanager
def _watched(port: int) -> Iterator[list[float]]:
    """Ask for /health all the time, and return the seconds that it took."""
    ended = threading.Event()
    waits = [0.0]

    def watch() -> None:
        while not ended.wait(0.02):
            began = time.perf_counter()
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", "/health")
            connection.getresponse().read()
            connection.close()
            waits.append(time.perf_counter() - began)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield waits
    finally:
        ended.set()
        thread.join()


@contextmanager
def _server() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    with tempfile.TemporaryDirectory(prefix="ekphory-requests-") as folder:
        command = [sys.executable, "-m", "ekphory", "serve", "--store", folder]
        server = subprocess.Popen(
            [*command, "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            _wait_for(port)
            # The first use loads the reranker.
            _sent(port, "/rerank", {"query": "tea", "documents": ["tea"]})
            yield port
        finally:
            server.terminate()
            server.wait(60)


def _wait_for(port: int) -> None:
    until = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
