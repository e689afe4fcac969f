"""A process that writes until it is killed, and starts quickly: forked before Lance is loaded.

It reads the path of a store and a seed from each line of its input, and forks a child that writes
there. The child says what it is about to write, as `{id: text}` in JSON, and `done` once that was
acknowledged.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import sys
from contextlib import suppress


def main() -> None:
    """Fork a writer for each line of the input, one at a time."""
    _load()
    print("ready", flush=True)
    for line in sys.stdin:
        path, seed = json.loads(line)
        child = os.fork()
        if child == 0:
            _write(path, random.Random(seed))
        _, status = os.waitpid(child, 0)
        # On a line of its own, also where the child was killed within one.
        print(f"\nended {os.waitstatus_to_exitcode(status)}", flush=True)


def _load() -> None:
    """Load what is slow and starts no thread."""
    for name in ("numpy", "pyarrow.dataset", "pydantic", "lance_namespace"):
        with suppress(ImportError):
            importlib.import_module(name)


def _write(path: str, drawn: random.Random) -> None:
    print(f"started {os.getpid()}", flush=True)
    from ekphory.memory import Memory
    from ekphory.testing import HashEmbedder

    with Memory(path, embedder=HashEmbedder()) as memory:
        mine: list[str] = []
        while True:
            changed = drawn.random() < 0.25 and mine
            ids = [drawn.choice(mine)] if changed else _new_ids(drawn)
            texts = {each: f"note {_hex(drawn, 'zq', 'qz')} of {each}" for each in ids}
            print(json.dumps(texts), flush=True)
            if changed:
                memory.update(ids[0], text=texts[ids[0]])
            else:
                memory.add_many({"id": each, "text": text} for each, text in texts.items())
                mine.extend(ids)
            print("done", flush=True)


def _new_ids(drawn: random.Random) -> list[str]:
    return [_hex(drawn, "id-", "") for _ in range(drawn.choice((1, 1, 3, 10)))]


def _hex(drawn: random.Random, before: str, after: str) -> str:
    return f"{before}{drawn.getrandbits(64):016x}{after}"


if __name__ == "__main__":
    main()
