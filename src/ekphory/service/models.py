"""The models that a service holds, loaded once and shared by all scopes."""

from __future__ import annotations

from dataclasses import dataclass

from ekphory.config import Settings
from ekphory.errors import InvalidInput
from ekphory.models.bundled_reranker import bundled_reranker
from ekphory.models.chat import Chat
from ekphory.models.embedder import EmbeddingModel
from ekphory.models.loading import load_embedder
from ekphory.models.reranker import RerankingModel
from ekphory.retrieval.pipeline import Pipeline
from ekphory.retrieval.presets import BALANCED, preset

DEFAULT_NAMES = ("", "default")
"""Names by which a caller asks for whatever the service has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceModels:
    """The models of one service.

    Attributes:
        embedder: Embeds memories and queries.
        reranker, chat: Used by the presets that want one; None where there is none.
        preset: The pipeline of searches that name none.
    """

    embedder: EmbeddingModel
    reranker: RerankingModel | None = None
    chat: Chat | None = None
    preset: Pipeline = BALANCED

    @property
    def embedder_name(self) -> str:
        """What the embedder is called."""
        return self.embedder.identity.name

    @property
    def reranker_name(self) -> str:
        """What the reranker is called; empty where there is none."""
        return "" if self.reranker is None else self.reranker.name

    def check_names(self, *, embedder: str = "", reranker: str = "", llm: str = "") -> None:
        """Check that a caller asks for models that are there.

        Raises:
            InvalidInput: There is none of that name.
        """
        self._check("embedder", embedder, self.embedder_name)
        self._check("reranker", reranker, self.reranker_name)
        self._check("llm", llm, "" if self.chat is None else self.chat.name)

    def _check(self, field: str, asked: str, there: str) -> None:
        if asked not in (*DEFAULT_NAMES, there):
            known = f"{there!r} or leave it empty" if there else "nothing: none is configured"
            raise InvalidInput(field, asked, "no such model here", f"Give {known}")


def load_models(settings: Settings) -> ServiceModels:
    """Load what the settings name.

    Raises:
        InvalidInput: A model or the preset cannot be what is named.
        ModelError: A model cannot be loaded.
    """
    pipeline = preset(settings.preset)
    embedder = load_embedder(
        settings.embedder, model=settings.embedder_model, api_key=settings.embedder_api_key
    )
    if settings.reranker is None and settings.chat_url is None:
        return ServiceModels(embedder=embedder, reranker=bundled_reranker(), preset=pipeline)
    # Slow to load, and needed only where a service is named.
    from ekphory.models.configured import configured_chat, configured_reranker

    return ServiceModels(
        embedder=embedder,
        reranker=configured_reranker(settings),
        chat=configured_chat(settings),
        preset=pipeline,
    )
