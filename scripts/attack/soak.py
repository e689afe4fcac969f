"""Commit again and again to a store that stays open, and measure how much memory that takes."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import numpy as np

from ekphory.memory import Memory
from ekphory.testing import HashEmbedder

_MOST_GROWTH = 10.0
"""MB that the process may grow by in 10,000 commits."""
_WARM_SHARE = 0.2
_SAMPLES = 100
_SEARCH_EVERY = 20

_PAGE = os.sysconf("SC_PAGE_SIZE")


def run(*, rounds: int) -> dict[str, float]:
    """Add, change, forget and search by turns; the slope is fitted to what follows a warm-up."""
    warm = int(rounds * _WARM_SHARE)
    every = max(1, rounds // _SAMPLES)
    samples: list[tuple[int, float]] = []
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="ekphory-soak-") as folder,
        Memory(Path(folder) / "store", embedder=HashEmbedder()) as memory,
    ):
        for number in range(warm + rounds):
            _commit(memory, number)
            if number >= warm and number % every == 0:
                samples.append((number, _resident_megabytes()))
                _tell(samples, total=warm + rounds, began=began)
    numbers, megabytes = zip(*samples, strict=True)
    slope = float(np.polyfit(numbers, megabytes, 1)[0]) * 10_000
    return {
        "soak.commits": float(rounds),
        "soak.first_megabytes": round(megabytes[0], 1),
        "soak.last_megabytes": round(megabytes[-1], 1),
        "soak.megabytes_per_10000_commits": round(slope, 2),
        "soak.growth_violations": float(slope > _MOST_GROWTH),
    }


def _commit(memory: Memory, number: int) -> None:
    """Make one commit; of four, one leaves a memory more."""
    name = f"note-{number // 4}"
    match number % 4:
        case 0:
            memory.add(f"the note with number {number}", id=name)
        case 1:
            memory.update(name, text=f"another note with number {number}")
        case 2:
            memory.add(f"a note without a name, {number}")
            if number % _SEARCH_EVERY == 2:
                memory.search(f"note {number}")
        case _:
            memory.forget(name)


def _resident_megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * _PAGE / 2**20


def _tell(samples: list[tuple[int, float]], *, total: int, began: float) -> None:
    if len(samples) % 10 == 0:
        number, megabytes = samples[-1]
        left = (time.monotonic() - began) / number * (total - number)
        print(f"  {number:,} commits: {megabytes:.1f} MB, {left:.0f} s left", flush=True)
