"""Set the clock of a process back or forth, and purge: what was purged is in no file."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from scripts.attack.leftovers import files_too_many, require, tokens_in, tokens_left

from ekphory.memory import Memory
from ekphory.testing import HashEmbedder

_DAY = 86_400
_SHIFTS = (-400 * _DAY, -_DAY, -3600, -30, -1, 1, 30, 3600, _DAY, 400 * _DAY)
_WRITES = 8
_PURGE = """
import sys
from ekphory import Memory
from ekphory.testing import HashEmbedder
with Memory(sys.argv[1], embedder=HashEmbedder()) as memory:
    memory.add(sys.argv[2], id="last")
    memory.update("note-0", text=sys.argv[3])
    for number in range(0, int(sys.argv[4]), 2):
        memory.forget(f"note-{number}")
    print(memory.forget("last", purge=True))
"""


def run(*, rounds: int) -> dict[str, float]:
    """Write by the clock as it is, then change and purge by one that was set to another time."""
    require("faketime")
    counts: Counter[str] = Counter()
    drawn = random.Random(0)
    with tempfile.TemporaryDirectory(prefix="ekphory-clock-") as folder:
        for number in range(rounds):
            shift = _SHIFTS[number % len(_SHIFTS)]
            _round(Path(folder) / str(number), shift, drawn, counts)
    counts["rounds"] = rounds
    names = ("rounds", "failed_violations", "lost_violations")
    names += ("purge_violations", "leftover_violations")
    return {f"clock.{name}": float(counts[name]) for name in names}


def _round(store: Path, shift: int, drawn: random.Random, counts: Counter[str]) -> None:
    texts = [f"note zq{drawn.getrandbits(64):016x}qz" for _ in range(_WRITES + 2)]
    with Memory(store, embedder=HashEmbedder()) as memory:
        for number, text in enumerate(texts[:_WRITES]):
            memory.add(text, id=f"note-{number}")
    purge = [sys.executable, "-c", _PURGE, str(store), *texts[_WRITES:], str(_WRITES)]
    done = subprocess.run(
        ["faketime", "-f", f"{shift:+d}s", *purge],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    counts["failed_violations"] += done.stdout != "1\n"
    kept = texts[1:_WRITES:2]
    with Memory(store, embedder=HashEmbedder()) as memory:
        found = [record.text for record in memory.list(order="oldest")]
    counts["lost_violations"] += len(set(found) ^ set(kept))
    counts["purge_violations"] += len(tokens_left(store) - tokens_in(kept))
    counts["leftover_violations"] += len(files_too_many(store))
