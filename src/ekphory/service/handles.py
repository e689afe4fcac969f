"""Handles on one store, each bound to the scope that it is for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ekphory.engine import Engine, acquire, release
from ekphory.memory import Memory
from ekphory.models.bundled_reranker import bundled_reranker
from ekphory.service.models import ServiceModels
from ekphory.service.place import Place
from ekphory.store.store import StoreHealth

# No name of a project holds a slash, so these scopes are nobody's by accident.
_OF_PROJECT = "{project}/semantic"
_OF_ORG = "/semantic"


class Handles:
    """Opens handles on one store, which stays open as long as this does.

    A handle costs microseconds: all of them share the store, its writer and its snapshots.
    """

    def __init__(self, store: str | Path, models: ServiceModels) -> None:
        self._store = store
        self._models = models
        # To a handle, no reranker means the bundled one.
        self._reranker = models.reranker or (bundled_reranker() and "none")
        self._keeping_open = Memory(store, embedder=models.embedder)

    def episodes(self, place: Place) -> Memory:
        """Open a handle on what was said in a project."""
        return self._bound(place.org, place.project)

    def features(self, org: str, project: str | None) -> Memory:
        """Open a handle on the features of a project's sets, or of its organisation's own."""
        return self._bound(org, _OF_ORG if project is None else _OF_PROJECT.format(project=project))

    def health(self) -> StoreHealth:
        """Measure the whole store, all scopes together."""
        return self._keeping_open.health()

    def upkeep_fails(self) -> bool:
        """Whether upkeep has failed and not succeeded since."""
        with self.engine() as engine:
            return engine.writer.upkeep_failure is not None

    @contextmanager
    def engine(self) -> Iterator[Engine]:
        """Join the open store below its verbs; every read there takes a scope's predicate."""
        joined = acquire(self._store, self._models.embedder)
        try:
            yield joined
        finally:
            release(joined)

    def close(self) -> None:
        """Let the store close, once every write has been finished."""
        self._keeping_open.close()

    def _bound(self, org: str, project: str) -> Memory:
        models = self._models
        return Memory(
            self._store,
            org=org,
            project=project,
            embedder=models.embedder,
            reranker=self._reranker,
            chat=models.chat,
            preset=models.preset,
        )
