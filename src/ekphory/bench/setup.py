"""What a measuring process is told when it starts."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, replace
from importlib import import_module

from ekphory.bench.generate import Corpus
from ekphory.config import read_settings
from ekphory.errors import InvalidInput
from ekphory.models.embedder import EmbeddingModel
from ekphory.models.loading import load_embedder

_OBJECT = re.compile(r"[A-Za-z_]\w+(\.\w+)*:[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a measuring process works with.

    Attributes:
        directory: Where its store is, or is to be.
        pool: Directory of the vectors that are there already.
        embedder: As in `BenchOptions`.
        seed, scopes: Of the corpus.
        org: The organisation that the store's projects belong to; None for none.
    """

    directory: str
    pool: str
    embedder: str
    seed: int
    scopes: int
    org: str | None = None

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


def load(name: str) -> EmbeddingModel:
    """Load the embedder that an option names.

    Raises:
        InvalidInput: There is none of that name.
    """
    if not _OBJECT.fullmatch(name):
        settings = read_settings()
        return load_embedder(name, model=settings.embedder_model, api_key=settings.embedder_api_key)
    module, attribute = name.split(":")
    try:
        made: EmbeddingModel = getattr(import_module(module), attribute)()
    except (ImportError, AttributeError) as error:
        raise InvalidInput(
            "embedder", name, f"cannot be loaded ({error})", "Give package.module:name"
        ) from error
    return made
