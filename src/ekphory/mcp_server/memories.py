"""The memories that a server offers: one open store, and the scope that each caller acts in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ekphory.catalog.failures import NotPermitted
from ekphory.config import Settings
from ekphory.memory import Memory
from ekphory.models.bundled_reranker import bundled_reranker
from ekphory.scope import SCOPE_FIELDS, Scope
from ekphory.server.caller import Caller
from ekphory.service.extraction.settings import ExtractionSettings, read_learnt
from ekphory.service.memory_service import MemoryService
from ekphory.service.models import load_models


def configured_scope(settings: Settings) -> Scope:
    """Give the scope that command line and environment bind a server to."""
    return Scope(**{name: getattr(settings, name) for name in SCOPE_FIELDS})


def scope_for(caller: Caller | None, configured: Scope) -> Scope:
    """Give the configured scope, narrowed to what the caller's key is bound to.

    Raises:
        NotPermitted: The key is bound to another organisation or project than the server.
    """
    if caller is None:
        return configured
    bound = {"org": caller.org, "project": caller.project}
    for name, value in bound.items():
        if value is not None and getattr(configured, name) not in (None, value):
            raise NotPermitted("The key is bound to another organisation or project.")
    return replace(
        configured, **{name: value for name, value in bound.items() if value is not None}
    )


class Memories:
    """An open store; its models are loaded once and shared by all scopes."""

    def __init__(self, settings: Settings, *, catalog: Path | None = None) -> None:
        """Open the store, and make it where there is none.

        Args:
            settings: The store, its models, and what is learnt from what is added.
            catalog: File of the catalog; None for one in the store's directory.

        Raises:
            EkphoryError: The store or a model cannot be used.
        """
        self._store = settings.store
        self._catalog = catalog
        self._learnt = read_learnt(settings.extraction)
        self._service: MemoryService | None = None
        self._models = load_models(settings)
        # To a handle, no reranker means the bundled one.
        self._reranker = self._models.reranker or (bundled_reranker() and "none")
        self._keeping_open = self.opened(Scope())

    def opened(self, scope: Scope) -> Memory:
        """Open a handle, which costs microseconds; to be closed after use."""
        return Memory(
            self._store,
            org=scope.org,
            project=scope.project,
            agent=scope.agent,
            user=scope.user,
            session=scope.session,
            embedder=self._models.embedder,
            reranker=self._reranker,
            chat=self._models.chat,
            preset=self._models.preset,
        )

    def service(self) -> MemoryService:
        """Give the service over the store, which knows its projects; opens the catalog.

        Raises:
            EkphoryError: There can be no catalog, or it cannot be opened.
        """
        if self._service is None:
            self._service = MemoryService(
                self._store,
                models=self._models,
                catalog=self._catalog,
                extraction=ExtractionSettings(learnt=self._learnt),
            )
        return self._service

    def close(self) -> None:
        """Let the store close, once every write has been finished."""
        if self._service is not None:
            self._service.close()
        self._keeping_open.close()
