"""Measures one fresh process: import, open, first search. Run as a program; prints JSON."""

import sys
import time

_BEGUN = time.perf_counter()

import ekphory  # noqa: E402  this import is what is measured

_IMPORTED = time.perf_counter()


def main() -> None:
    """Open the store, search once, and print how many milliseconds each step took."""
    import json

    from ekphory_lab.bench.measure import load

    path, embedder, project, query = sys.argv[1:]
    began = time.perf_counter()
    memory = ekphory.Memory(path, project=project, embedder=load(embedder))
    opened = time.perf_counter()
    memory.search(query)
    searched = time.perf_counter()
    memory.close()
    taken = {
        "import": _IMPORTED - _BEGUN,
        "open": opened - began,
        "first search": searched - opened,
    }
    json.dump({name: round(seconds * 1000, 2) for name, seconds in taken.items()}, sys.stdout)


if __name__ == "__main__":
    main()
