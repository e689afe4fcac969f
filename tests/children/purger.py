"""Purges and repairs in turn, one time after another, and reports when it is ready and done."""

import sys

from process import report, wait_for_go

from ekphory.memory import Memory
from ekphory.testing import HashEmbedder


def main():
    path = sys.argv[1]
    with Memory(path, embedder=HashEmbedder()) as memory:
        report(ready=True)
        wait_for_go()
        for number in range(6):
            if number % 2:
                memory.forget(f"{number}", purge=True)
            else:
                memory.forget(f"{number}")
                memory.repair()
    report(done=True)


main()
