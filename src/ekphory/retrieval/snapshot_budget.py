"""How much memory the snapshots of all scopes together may take."""

from __future__ import annotations

import os
from pathlib import Path

LEAST_BYTES = 384 * 2**20
_SHARE = 1 / 8
_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


def snapshot_budget(*, limit_file: Path = _CGROUP_LIMIT) -> int:
    """Give an eighth of the memory that this process may use, in bytes, at least `LEAST_BYTES`.

    A scope whose snapshot was dropped is read from disk again, which takes a hundred times as long
    as a search; so a machine with much memory keeps more of them.

    Args:
        limit_file: Where Linux tells a container's limit.
    """
    return max(LEAST_BYTES, int(min(_physical_bytes(), _container_bytes(limit_file)) * _SHARE))


def _physical_bytes() -> float:
    if not hasattr(os, "sysconf"):  # Windows
        return 0.0
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def _container_bytes(limit_file: Path) -> float:
    try:
        return float(limit_file.read_text())
    except (OSError, ValueError):  # no such file, or "max": no limit
        return float("inf")
