"""How many memories there are, in words."""

from __future__ import annotations


def counted_memories(memories: int, versions: int) -> str:
    """Give the number of memories and of their earlier versions."""
    return (
        f"{memories:,} {'memory' if memories == 1 else 'memories'} and "
        f"{versions:,} earlier {'version' if versions == 1 else 'versions'}"
    )
