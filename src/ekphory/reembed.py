"""Embedding a whole store anew, with another model, while it is searched and written to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ekphory.engine import Engine
from ekphory.errors import StoreError, StoreLocked
from ekphory.filters.tree import EVERYTHING
from ekphory.models.embedder import EmbeddingModel, FloatMatrix
from ekphory.store.protocol import IntArray
from ekphory.store.writer import DirectoryLock
from ekphory.types import Progress, ignore_progress
from ekphory.write import BATCH, embed_records

LOCK_FILE = ".ekphory.reembed.lock"
"""Held while one process embeds a store anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReembedReport:
    """What was done to the vectors of a store.

    Attributes:
        embedder: The model that made the vectors which serve now.
        previous: The model whose vectors are kept for the way back; None where none are.
        memories: How many memories the store holds, earlier versions included.
        embedded: How many of them were embedded now; others had been before.
        unembedded: How many have no vector, so that words alone find them.
    """

    embedder: str
    previous: str | None
    memories: int
    embedded: int
    unembedded: int


def reembed(
    engine: Engine, embedder: EmbeddingModel, *, on_progress: Progress = ignore_progress
) -> ReembedReport:
    """Make vectors of all memories beside the present ones, then switch to them in one commit.

    What was made is kept when it breaks off, and is not made again.

    Raises:
        StoreLocked: Another process is at it.
    """
    with _alone(engine.uri):
        engine.embedders.setdefault(embedder.identity, embedder)
        embedded = 0
        lacking = _find_lacking(engine, embedder)
        while len(lacking) > BATCH:
            embedded += _fill(engine, embedder, lacking, on_progress)
            # What was written meanwhile.
            lacking = _find_lacking(engine, embedder)
        embedded += engine.writer.submit(partial(_finish, engine, embedder)).result()
    report = _report(engine, embedded)
    on_progress(report.memories, report.memories)
    return report


def undo_reembed(engine: Engine, *, on_progress: Progress = ignore_progress) -> ReembedReport:
    """Switch back to the vectors of the model before, and keep the present ones.

    What was written since is embedded if that model is at hand, and else found by words alone.

    Raises:
        StoreError: There are no earlier vectors.
        StoreLocked: Another process is embedding the store.
    """
    health = engine.store.health()
    previous = engine.store.identity.previous
    if previous is None or health.previous_embedder is None:
        raise StoreError(
            f"{engine.uri}: no earlier vectors are kept. To go back to a model, embed the store "
            "with it: `ekphory reembed --embedder MODEL`."
        )
    model = engine.embedders.get(previous)
    if model is not None:
        return reembed(engine, model, on_progress=on_progress)
    with _alone(engine.uri):
        engine.writer.submit(partial(engine.store.switch_vectors, previous)).result()
    return _report(engine, 0)


def drop_previous_vectors(engine: Engine) -> ReembedReport:
    """Remove the vectors that are kept for the way back."""
    with _alone(engine.uri):
        engine.writer.submit(engine.store.drop_previous_vectors).result()
    return _report(engine, 0)


@contextmanager
def _alone(uri: str) -> Iterator[None]:
    """Keep other processes from the same; on object storage the writer's lease does."""
    with ExitStack() as held:
        if "://" not in uri:
            try:
                held.enter_context(DirectoryLock(Path(uri), name=LOCK_FILE).held(seconds=0))
            except StoreLocked as error:
                raise StoreLocked(
                    f"{uri}: its vectors are being made anew already. Wait until that is done."
                ) from error
        yield


def _find_lacking(engine: Engine, embedder: EmbeddingModel) -> IntArray:
    engine.store.version()
    return engine.store.lacking(embedder.identity)


def _fill(
    engine: Engine, embedder: EmbeddingModel, lacking: IntArray, on_progress: Progress
) -> int:
    total, embedded = engine.store.count(EVERYTHING), 0
    done = total - len(lacking)
    for start in range(0, len(lacking), BATCH):
        on_progress(done + start, total)
        made = _embed(engine, embedder, lacking[start : start + BATCH])
        engine.writer.submit(partial(_keep, engine, embedder, made)).result()
        embedded += len(made)
    return embedded


def _embed(engine: Engine, embedder: EmbeddingModel, keys: IntArray) -> Mapping[int, FloatMatrix]:
    records = engine.store.fetch(keys.tolist())
    read = embed_records(embedder, list(records.values()))
    return {key: vectors for key, (vectors, _) in zip(records, read, strict=True)}


def _keep(engine: Engine, embedder: EmbeddingModel, made: Mapping[int, FloatMatrix]) -> None:
    engine.store.version()
    engine.store.keep_vectors(embedder.identity, made)


def _finish(engine: Engine, embedder: EmbeddingModel) -> int:
    """Embed the rest and switch; the caller holds the writer's lock, so that nothing is added."""
    made = _embed(engine, embedder, _find_lacking(engine, embedder))
    engine.store.keep_vectors(embedder.identity, made)
    engine.store.switch_vectors(embedder.identity)
    return len(made)


def _report(engine: Engine, embedded: int) -> ReembedReport:
    health = engine.store.health()
    return ReembedReport(
        embedder=health.embedder,
        previous=health.previous_embedder,
        memories=health.memories + health.history,
        embedded=embedded,
        unembedded=health.unembedded,
    )
