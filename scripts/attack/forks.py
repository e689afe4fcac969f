"""Fork processes from one that is writing, and have each use the same store in its own handle."""

from __future__ import annotations

import multiprocessing
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from ekphory.errors import StoreClosed
from ekphory.memory import Memory
from ekphory.testing import HashEmbedder

_LONGEST_S = 60
_WORKERS = 4


def run(*, rounds: int) -> dict[str, float]:
    """Fork amid the parent's writes; what either acknowledged must be there once."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="ekphory-forks-") as folder:
        for number in range(rounds):
            _round(Path(folder) / str(number), counts)
    counts["rounds"] = rounds
    names = ("rounds", "forks", "hung_violations", "died_violations")
    names += ("inherited_violations", "lost_violations")
    return {f"forks.{name}": float(counts[name]) for name in names}


def _round(store: Path, counts: Counter[str]) -> None:
    context = multiprocessing.get_context("fork")
    ended = threading.Event()
    with Memory(store, embedder=HashEmbedder()) as memory:
        memory.add("by the parent", id="first")
        written = ["first"]

        def write() -> None:
            while not ended.is_set():
                written.append(memory.add(f"by the parent {len(written)}").ids[0])

        writer = threading.Thread(target=write)
        writer.start()
        children = []
        for number in range(_WORKERS):
            children.append(context.Process(target=_use, args=(memory, store, number)))
            children[-1].start()
        for child in children:
            counts[_outcome(child)] += 1
        ended.set()
        writer.join()
        counts["forks"] += _WORKERS
        wanted = {*written, *(f"child-{number}" for number in range(_WORKERS))}
        found = [record.id for record in memory.list(order="oldest")]
        counts["lost_violations"] += len(wanted ^ set(found)) + len(found) - len(set(found))


def _outcome(child: multiprocessing.process.BaseProcess) -> str:
    child.join(_LONGEST_S)
    if child.is_alive():
        child.kill()
        return "hung_violations"
    return {0: "fine", 3: "inherited_violations"}.get(child.exitcode or 0, "died_violations")


def _use(inherited: Memory, store: Path, number: int) -> None:
    if not _is_refused(inherited.count):
        raise SystemExit(3)
    with Memory(store, embedder=HashEmbedder()) as memory:
        memory.add(f"by child {number}", id=f"child-{number}")
        memory.search("child")


def _is_refused(use: Callable[[], object]) -> bool:
    try:
        use()
    except StoreClosed:
        return True
    return False
