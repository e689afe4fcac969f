"""Adds, updates, forgets and purges until it is killed, and reports each before and after."""

import sys
from itertools import count

from process import report, wait_for_go

from ekphory.memory import Memory
from ekphory.testing import HashEmbedder


def main():
    path, name = sys.argv[1:]
    wait_for_go()
    memory = Memory(path, embedder=HashEmbedder())
    for number in count():
        memory_id = f"{name} {number}"
        memory.add("first", id=memory_id)
        report(id=memory_id, state="added")
        memory.update(memory_id, text="second")
        report(id=memory_id, state="updated")
        if number % 2:
            report(id=memory_id, state="forgetting")
            memory.forget(memory_id, purge=number % 4 == 1)
            report(id=memory_id, state="forgotten")


main()
