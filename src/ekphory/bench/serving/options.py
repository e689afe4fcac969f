"""What to measure of a server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ekphory.bench.options import BenchOptions
from ekphory.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingOptions:
    """What to measure.

    Attributes:
        n: Memories in the store.
        scopes: Layouts, each by its number of projects.
        clients: How many ask at once.
        writers: How many of them write, while the load is mixed.
        seconds: How long they ask.
        k: Hits asked for.
        questions: How many different ones; the model remembers the vectors of some.
        seed: Decides every memory and every question.
        embedder: What `ekphory serve --embedder` takes; `bundled` for the bundled model.
        embedded: Memories that are really embedded; beyond, their vectors are reused with noise.
        threads: Searches worked on at once, by the server and in process.
        workers: Processes of the server.
        cache: Where vectors are kept; None for the user's cache.
        keep: Where the stores are written and kept; None for a temporary directory.
    """

    n: int = 100_000
    scopes: tuple[int, ...] = (50, 1)
    clients: int = 50
    writers: int = 10
    seconds: float = 60.0
    k: int = 10
    questions: int = 10_000
    seed: int = 7
    embedder: str = "bundled"
    embedded: int = 100_000
    threads: int = 4
    workers: int = 1
    cache: Path | None = None
    keep: Path | None = None

    def __post_init__(self) -> None:
        for name in ("clients", "seconds", "questions", "threads", "workers"):
            value = getattr(self, name)
            if value <= 0:
                raise InvalidInput(name, value, "measures nothing", "Give more than 0")
        if not 0 < self.writers < self.clients:
            remedy = f"Give 1 to {self.clients - 1}"
            raise InvalidInput("writers", self.writers, "must be some of the clients", remedy)
        # The others are checked there.
        self.filling()

    def filling(self) -> BenchOptions:
        """Give what says how the stores are filled."""
        return BenchOptions(
            n=self.n,
            scopes=self.scopes,
            k=self.k,
            seed=self.seed,
            embedder=self.embedder,
            embedded=self.embedded,
            cache=self.cache,
            keep=self.keep,
        )
