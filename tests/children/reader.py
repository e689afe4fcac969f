"""Reads for some seconds while others write; what it sees must always be consistent."""

import sys
import time

from process import report, wait_for_go

from ekphory.memory import Memory
from ekphory.testing import HashEmbedder

BATCH = 16


def main():
    path, seconds = sys.argv[1], float(sys.argv[2])
    wait_for_go()
    rounds = seen = 0
    with Memory(path, embedder=HashEmbedder()) as memory:
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            total = memory.count()
            assert total >= seen, "something was lost"
            seen = total
            for session in ("w0", "w1", "shared"):
                assert memory.count(filter=f"session = '{session}'") % BATCH == 0, "half a batch"
            listed = [entry.id for entry in memory.list(limit=200)]
            assert len(set(listed)) == len(listed) >= min(200, total), "doubled or lost"
            found = [hit.id for hit in memory.search("turn 3", k=50)]
            assert len(set(found)) == len(found) >= min(50, total), "doubled or lost"
            rounds += 1
    report(rounds=rounds, seen=seen)


main()
