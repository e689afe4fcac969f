"""What every measurement begins with: a place to write, vectors to fill stores with."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from platformdirs import user_cache_path

from ekphory.bench.child import Worker
from ekphory.bench.layout import Told
from ekphory.bench.options import BenchOptions
from ekphory.bench.setup import Setup
from ekphory.bench.vectors import BATCH
from ekphory.errors import InvalidInput

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_STRETCH = 8 * BATCH


@contextmanager
def workspace(keep: Path | None) -> Iterator[Path]:
    """Give the directory for the stores; None for one that is gone afterwards.

    Raises:
        InvalidInput: The directory to keep is in use.
    """
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="ekphory-bench-") as directory:
            yield Path(directory)
        return
    if keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise InvalidInput("keep", str(keep), "is in use", "Give a new or an empty directory")
    keep.mkdir(parents=True, exist_ok=True)
    yield keep


def model_setup(options: BenchOptions, directory: Path) -> Setup:
    """Give the setup of the process that embeds."""
    cache = options.cache or user_cache_path("ekphory") / "bench"
    cache.mkdir(parents=True, exist_ok=True)
    return Setup(
        directory=str(directory / "model"),
        pool=str(cache),
        embedder=options.embedder,
        seed=options.seed,
        scopes=options.scopes[0],
    )


def filled_pool(model: Worker, options: BenchOptions, on_progress: Told) -> str:
    """Embed as many memories as the stores need; gives the directory of their vectors."""
    wanted = options.peer_n if options.peers else 0
    size = max(min(options.n, options.embedded), wanted)
    while True:
        answer = model.call("pool", {"size": size, "stretch": _STRETCH})
        on_progress(f"embedding ahead: {answer['size']:,} of {size:,} memories")
        if answer["size"] >= size:
            return str(answer["directory"])


def placed(setup: Setup, name: str, *, scopes: int) -> Setup:
    """Give the setup of another store beside it."""
    return replace(setup, directory=str(Path(setup.directory).parent / name), scopes=scopes)


def plain(options: DataclassInstance) -> dict[str, Any]:
    """Give options as values that JSON can hold."""
    given = asdict(options)
    return {name: str(value) if isinstance(value, Path) else value for name, value in given.items()}
