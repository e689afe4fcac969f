"""On what machine, and with what versions, something was measured."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ekphory.models.cores import usable_cores

PACKAGES = ("ekphory", "lancedb", "numpy", "onnxruntime", "pyarrow", "tokenizers")


def machine() -> dict[str, str | int | float]:
    """Describe the machine: cores, processor, memory, system."""
    described: dict[str, str | int | float] = {
        "cpu_count": os.cpu_count() or 1,
        "usable_cores": usable_cores(),
        "processor": _processor(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }
    memory = _field(Path("/proc/meminfo"), "MemTotal")
    if memory is not None:
        described["memory_gib"] = round(int(memory.split()[0]) / 2**20, 1)
    if hasattr(os, "getloadavg"):
        # What else ran when the measuring began; above zero, compare ratios rather than figures.
        described["load"] = round(os.getloadavg()[0], 2)
    return described


def versions(packages: Sequence[str] = PACKAGES) -> dict[str, str]:
    """Give the installed versions of packages; one that is not installed is left out."""
    found: dict[str, str] = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _processor() -> str:
    named = _field(Path("/proc/cpuinfo"), "model name")
    return named or platform.processor() or platform.machine()


def _field(path: Path, name: str) -> str | None:
    if not path.is_file():
        return None
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None
