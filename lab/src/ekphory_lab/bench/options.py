"""What the benchmarks measure, as the command line names it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ekphory.cli.options import EmbedderOption
from ekphory.config import read_settings
from ekphory.errors import InvalidInput

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

TURNS = 25
"""Memories in a session of the generated ones."""
_STEPS = (1_000, 10_000, 100_000, 1_000_000)
_FEWEST_ROWS = 100


def name_embedder(chosen: str | None) -> str:
    """Return the embedder that is measured with: this one, else the one that is configured."""
    return chosen or read_settings().embedder or "bundled"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    """Which memories, in which stores, with what.

    Attributes:
        n (--n): Memories in the largest store.
        scopes: Projects they are spread over; repeatable, 50 and 1 by default.
        k (--k -k): Hits asked for.
        seed: Decides every memory and question.
        embedded: Really embedded memories; more reuse their vectors with noise.
        cache (DIR): Where vectors are kept between runs.
    """

    n: int = 100_000
    scopes: list[int] | None = None
    k: int = 10
    seed: int = 7
    embedder: EmbedderOption = None
    embedded: int = 100_000
    cache: Path | None = None

    def check(self) -> None:
        """Refuse numbers that nothing can be measured with."""
        for name in ("n", "embedded"):
            if getattr(self, name) < _FEWEST_ROWS:
                raise InvalidInput(
                    name, getattr(self, name), "tells nothing", f"Give {_FEWEST_ROWS} or more"
                )
        refuse_nothing(self)
        if min(self.layouts) < 1:
            raise InvalidInput("scopes", self.layouts, "no layout", "Give 1, or 50, or both")

    @property
    def layouts(self) -> tuple[int, ...]:
        """The numbers of projects."""
        return tuple(self.scopes or (50, 1))

    def sizes(self) -> list[int]:
        """Return the sizes at which each layout is measured, ascending."""
        return [step for step in _STEPS if step < self.n] + [self.n]

    def describe(self, asked: BenchOptions | ServingOptions) -> dict[str, Any]:
        """Return these options and the others, for a report."""
        chosen = {
            "scopes": self.layouts,
            "embedder": name_embedder(self.embedder),
            "cache": None if self.cache is None else str(self.cache),
        }
        return asdict(self) | asdict(asked) | chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOptions:
    """How much is measured.

    Attributes:
        queries: Warm searches of each store.
        beside: A plain LanceDB loop on the same memories, in turn, or nothing.
    """

    queries: int = 200
    beside: Literal["lancedb", "nothing"] = "lancedb"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingOptions:
    """How much is asked.

    Attributes:
        clients: How many ask at once.
        seconds: How long they ask.
        threads: Searches worked on at once, by the server and in process.
        workers: Processes of the server.
    """

    clients: int = 50
    seconds: float = 60.0
    threads: int = 4
    workers: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """What is stored and asked.

    Attributes:
        n (--n): Memories in the store.
        projects: Projects that they are spread over.
        shards: Of the store.
        queries: Warm searches.
        commits: Memories written one by one.
        delay: Milliseconds that each request to the object storage takes longer.
        k (--k -k): Hits asked for.
        seed: Decides every memory and question.
    """

    n: int = 20_000
    projects: int = 20
    shards: int = 4
    queries: int = 100
    commits: int = 50
    delay: float = 30.0
    k: int = 10
    seed: int = 7
    embedder: EmbedderOption = None

    def check(self) -> None:
        """Refuse numbers that nothing can be measured with."""
        if self.n < TURNS * self.projects or self.projects < 2:
            remedy = f"Give 2 projects or more, and {TURNS} memories for each"
            raise InvalidInput("n", self.n, f"is little for {self.projects} projects", remedy)
        refuse_nothing(self)


def refuse_nothing(options: DataclassInstance) -> None:
    """Refuse numbers that nothing can be measured with."""
    for name, value in asdict(options).items():
        if isinstance(value, int | float) and name not in ("seed", "delay") and value <= 0:
            raise InvalidInput(name, value, "measures nothing", "Give 1 or more")
