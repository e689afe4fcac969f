"""How many threads pay off in this process."""

from __future__ import annotations

import math
import os
from pathlib import Path

MOST_THREADS = 8
_TOPOLOGY = Path("/sys/devices/system/cpu")
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def usable_cores(*, topology: Path = _TOPOLOGY, quota: Path = _QUOTA) -> int:
    """Count the physical cores this process may use, at most `MOST_THREADS`.

    Heeds the process's CPU affinity, a container's CPU quota (control groups, version 2), and that
    two hardware threads of one core do no more arithmetic than one. Where the system does not tell,
    the number of its CPUs.

    Args:
        topology: Where Linux describes its CPUs.
        quota: Where Linux tells a container's quota.
    """
    cpus = _allowed_cpus()
    cores = {_core_of(cpu, topology) for cpu in cpus}
    return max(1, min(len(cores), _quota_cores(quota), MOST_THREADS))


def _allowed_cpus() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return set(os.sched_getaffinity(0))
    return set(range(os.cpu_count() or 1))


def _core_of(cpu: int, topology: Path) -> str:
    try:
        return (topology / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text()
    except OSError:
        return str(cpu)


def _quota_cores(quota: Path) -> int:
    try:
        granted, period = quota.read_text().split()
        return math.ceil(int(granted) / int(period))
    except (OSError, ValueError, ZeroDivisionError):  # no quota file, or "max": no limit
        return MOST_THREADS
