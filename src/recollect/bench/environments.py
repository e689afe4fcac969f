"""Virtual environments for other products: made once, kept in the cache."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from recollect.bench.child import BenchError
from recollect.bench.options import PeerName

_CPU_TORCH = "https://download.pytorch.org/whl/cpu"
# Each entry is the arguments of one `pip install`; the first of txtai spares gigabytes of CUDA.
REQUIREMENTS: Mapping[PeerName, Sequence[Sequence[str]]] = {
    "txtai": [["torch", "--index-url", _CPU_TORCH], ["txtai"]],
    "chromadb": [["chromadb"]],
    "mem0": [["mem0ai"]],
}
PACKAGES: Mapping[PeerName, str] = {"txtai": "txtai", "chromadb": "chromadb", "mem0": "mem0ai"}
_READY = "ready.txt"
_INSTALL_SECONDS = 1800.0
_LOG_CHARACTERS = 400


def python_of(peer: PeerName, *, cache: Path) -> tuple[Path, str]:
    """Give the interpreter of a peer's environment, which is made if need be, and its version.

    Raises:
        BenchError: The environment cannot be made, or the peer not installed.
    """
    home = cache / "environments" / peer
    interpreter = home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    ready = home / _READY
    if not ready.is_file():
        _run([sys.executable, "-m", "venv", "--clear", str(home)])
        for arguments in REQUIREMENTS[peer]:
            _run([str(interpreter), "-m", "pip", "install", "--quiet", *arguments])
        program = f"import importlib.metadata as m; print(m.version({PACKAGES[peer]!r}))"
        ready.write_text(_run([str(interpreter), "-c", program]).strip(), encoding="utf-8")
    return interpreter, ready.read_text(encoding="utf-8")


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
