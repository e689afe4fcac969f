"""Writes batches for some seconds, some of them the same as another writer's, and reports."""

import sys
import time
from itertools import count

from process import report, wait_for_go

from ekphory.memory import Memory
from ekphory.testing import HashEmbedder

BATCH = 16


def main():
    path, name, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    wait_for_go()
    ends = time.monotonic() + seconds
    own = shared = single = 0
    with Memory(path, embedder=HashEmbedder()) as memory:
        for number in count():
            own += memory.add_many(batch(name, number)).added
            shared += memory.add_many(batch("shared", number)).added
            single += memory.add(f"single {number}", id=f"{name} {number}", session="single").added
            if time.monotonic() > ends:
                break
    report(own=own, shared=shared, single=single, rounds=number + 1)


def batch(session, number):
    return [
        {
            "id": f"{session} {number}-{place}",
            "text": f"turn {place} of {number}",
            "session": session,
        }
        for place in range(BATCH)
    ]


main()
