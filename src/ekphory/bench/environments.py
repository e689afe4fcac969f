"""Virtual environments for other products: made once, kept in the cache."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from ekphory.bench.child import BenchError
from ekphory.bench.options import PeerName

PACKAGES: Mapping[PeerName, str] = {"txtai": "txtai", "chromadb": "chromadb", "mem0": "mem0ai"}
NEED_TORCH: frozenset[PeerName] = frozenset({"txtai"})
_READY = "ready.txt"
_INSTALL_SECONDS = 1800.0
_LOG_CHARACTERS = 400


def python_of(peer: PeerName, *, cache: Path, torch_index: str | None = None) -> tuple[Path, str]:
    """Give the interpreter of a peer's environment, which is made if need be, and its version.

    Args:
        peer: Whose environment.
        cache: The folder that holds them all.
        torch_index: As for `installs_of`.

    Raises:
        BenchError: The environment cannot be made, or the peer not installed.
    """
    home = cache / "environments" / peer
    interpreter = home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    ready = home / _READY
    if not ready.is_file():
        _run([sys.executable, "-m", "venv", "--clear", str(home)])
        for arguments in installs_of(peer, torch_index=torch_index):
            _run([str(interpreter), "-m", "pip", "install", "--quiet", *arguments])
        program = f"import importlib.metadata as m; print(m.version({PACKAGES[peer]!r}))"
        ready.write_text(_run([str(interpreter), "-c", program]).strip(), encoding="utf-8")
    return interpreter, ready.read_text(encoding="utf-8")


def installs_of(peer: PeerName, *, torch_index: str | None) -> list[list[str]]:
    """Give the arguments of each `pip install` that a peer's environment needs, in order.

    Args:
        peer: Whose environment.
        torch_index: URL of an index with torch's CPU build, which spares a peer that needs torch
            gigabytes of CUDA; None takes what pip's own index gives.
    """
    package = [[PACKAGES[peer]]]
    if peer in NEED_TORCH and torch_index is not None:
        return [["torch", "--index-url", torch_index], *package]
    return package


def quiet_environment(home: Path) -> dict[str, str]:
    """Give environment variables that turn telemetry off and keep what a peer writes in `home`."""
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
