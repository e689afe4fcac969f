"""Writes to one shard beside others, forgets some of it, and reports what was acknowledged."""

import sys
from itertools import count

from process import report, wait_for_go

from ekphory.cluster.objects import Objects
from ekphory.cluster.shards import ShardLease, hold_shard, open_shards
from ekphory.errors import StoreError
from ekphory.memory import Memory
from ekphory.testing import HashEmbedder

LEASE_SECONDS = 0.5


def main():
    root, name = sys.argv[1], sys.argv[2]
    embedder = HashEmbedder()
    shards = open_shards(root, embedder)
    lease = ShardLease(Objects(root), "leases/shard-00000", seconds=LEASE_SECONDS)
    wait_for_go()
    with (
        hold_shard(shards, 0, embedder, lease=lease) as engine,
        Memory(engine.uri, embedder=embedder) as memory,
    ):
        for number in count():
            step(memory, f"{name}-{number}", is_forgotten=number % 4 == 3)


def step(memory, name, *, is_forgotten):
    """Add a memory until it is acknowledged, as a client does that is refused; forget some."""
    if not until_acknowledged(lambda: memory.add(f"text of {name}", id=name)):
        return
    report(added=name)
    if is_forgotten and until_acknowledged(lambda: memory.forget(filter=f"id = '{name}'")):
        report(forgotten=name)


def until_acknowledged(do):
    for _ in range(100):
        try:
            do()
        except StoreError:
            continue
        return True
    return False


main()
