"""Reading a file while its digest is taken, and telling how far that is."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

from ekphory.backup.places import Reads

Progress = Callable[[int, int], None]
"""Is told how many bytes are copied, and of how many."""


@dataclass(slots=True)
class Meter:
    """Counts the bytes of all files.

    Attributes:
        total: How many there will be.
        tell: Is told after every piece.
        done: How many there were.
    """

    total: int
    tell: Progress
    done: int = 0

    def add(self, count: int) -> None:
        """Count some bytes."""
        self.done += count
        self.tell(self.done, self.total)


@dataclass(slots=True)
class Digesting:
    """A stream whose digest is taken as it is read."""

    stream: Reads
    meter: Meter
    length: int = 0
    _hash: hashlib._Hash = field(default_factory=hashlib.sha256)

    def read(self, size: int = -1, /) -> bytes:
        """Read up to so many bytes; none at the end."""
        piece = self.stream.read(size)
        self._hash.update(piece)
        self.length += len(piece)
        self.meter.add(len(piece))
        return piece

    @property
    def sha256(self) -> str:
        """Digest of what was read so far."""
        return self._hash.hexdigest()


def tell_nobody(done: int, total: int) -> None:
    """Take progress that nobody asked for."""
    del done, total
