"""What to measure."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ekphory.errors import InvalidInput

PeerName = Literal["txtai", "chromadb", "mem0"]
Beside = Literal["lancedb", "nothing"]
PEERS: tuple[PeerName, ...] = ("txtai", "chromadb", "mem0")
_STEPS = (1_000, 10_000, 100_000, 1_000_000)
_FEWEST_ROWS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOptions:
    """What to measure.

    Attributes:
        n: Memories in the largest store; the smaller ones on the way are 1,000, 10,000, ….
        scopes: Layouts, each by its number of projects.
        queries: Warm searches measured for each store.
        k: Hits asked for.
        seed: Decides every memory and every question.
        embedder: What `ekphory.models.loading.load_embedder` takes, or `package.module:name` of
            something that makes an `EmbeddingModel`.
        embedded: Memories that are really embedded; beyond, their vectors are reused with noise.
        batches: Batches of 256 written with the model, into each store.
        single_adds: Memories added one by one, into each store.
        start_ups: Fresh processes that open each store and search once.
        beside: What is measured in turn with ekphory, on the same memories.
        peers: Which other products to measure beside.
        peer_n: Memories that each of them gets.
        torch_index: URL of a package index with torch's CPU build, for the peers that need torch;
            None takes what pip's own index gives.
        cache: Where vectors and the peers' environments are kept; None for the user's cache.
        keep: Where the stores are written and kept; None for a temporary directory.
    """

    n: int = 100_000
    scopes: tuple[int, ...] = (50, 1)
    queries: int = 200
    k: int = 10
    seed: int = 7
    embedder: str = "bundled"
    embedded: int = 100_000
    batches: int = 10
    single_adds: int = 100
    start_ups: int = 3
    beside: Beside = "lancedb"
    peers: tuple[PeerName, ...] = field(default=())
    peer_n: int = 10_000
    torch_index: str | None = None
    cache: Path | None = None
    keep: Path | None = None

    def __post_init__(self) -> None:
        for name in ("n", "peer_n", "embedded"):
            if getattr(self, name) < _FEWEST_ROWS:
                raise InvalidInput(
                    name, getattr(self, name), "tells nothing", f"Give {_FEWEST_ROWS} or more"
                )
        for name in ("queries", "k", "batches", "single_adds"):
            if getattr(self, name) < 1:
                raise InvalidInput(name, getattr(self, name), "measures nothing", "Give 1 or more")
        if not self.scopes or min(self.scopes) < 1:
            raise InvalidInput("scopes", self.scopes, "no layout", "Give 1, or 50, or both")
        for peer in self.peers:
            if peer not in PEERS:
                raise InvalidInput("peers", peer, "unknown", f"Choose from {', '.join(PEERS)}")

    def sizes(self) -> list[int]:
        """Give the sizes at which each layout is measured, ascending."""
        return [step for step in _STEPS if step < self.n] + [self.n]
