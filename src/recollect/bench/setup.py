"""What a measuring process is told when it starts."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

from recollect.bench.generate import Corpus
from recollect.bench.options import HASH_EMBEDDER
from recollect.models.embedder import Embedder
from recollect.models.loading import load_embedder
from recollect.testing import HashEmbedder

HASH_DIMENSION = 384


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a measuring process works with.

    Attributes:
        directory: Where its store is, or is to be.
        pool: Directory of the vectors that are there already.
        embedder: As in `BenchOptions`.
        seed, scopes: Of the corpus.
    """

    directory: str
    pool: str
    embedder: str
    seed: int
    scopes: int

    @property
    def corpus(self) -> Corpus:
        """The memories."""
        return Corpus(seed=self.seed, scopes=self.scopes)

    def at(self, directory: str) -> Setup:
        """Give the same with another store."""
        return replace(self, directory=directory)

    def to_json(self) -> str:
        """Write it as one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Setup:
        """Read what `to_json` wrote."""
        return cls(**json.loads(text))


def load(name: str) -> Embedder:
    """Load the embedder that an option names."""
    if name == HASH_EMBEDDER:
        return HashEmbedder(dimension=HASH_DIMENSION)
    return load_embedder(name)
