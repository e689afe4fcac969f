"""Imports records of one session until it is killed, and reports what was acknowledged."""

import sys

from process import report, wait_for_go

from ekphory.memory import Memory
from ekphory.testing import HashEmbedder


def records(session):
    for number in range(1_000_000):
        yield {"id": f"{session} {number}", "text": f"turn {number % 50}", "session": session}


def main():
    path, session = sys.argv[1:]
    wait_for_go()
    memory = Memory(path, embedder=HashEmbedder())
    memory.add_many(records(session), on_progress=lambda done: report(added=done.added))


main()
