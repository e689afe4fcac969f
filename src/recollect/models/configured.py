"""The models that the settings name."""

from __future__ import annotations

from recollect.config import Settings
from recollect.models.chat import Chat
from recollect.models.chat_loading import load_chat
from recollect.models.embedder import EmbeddingModel
from recollect.models.loading import load_embedder
from recollect.models.reranker import Reranker
from recollect.models.reranker_loading import load_reranker


def configured_embedder(settings: Settings) -> EmbeddingModel | None:
    """Load the embedder that is named; None where none is, which means the bundled one.

    Raises:
        InvalidInput: It cannot be what is named.
    """
    if settings.embedder is None:
        return None
    return load_embedder(
        settings.embedder, model=settings.embedder_model, api_key=settings.embedder_api_key
    )


def configured_reranker(settings: Settings) -> Reranker | None:
    """Load the reranker that is named; None where none is.

    Raises:
        InvalidInput: It cannot be what is named.
    """
    if settings.reranker is None:
        return None
    return load_reranker(
        settings.reranker,
        model=settings.reranker_model,
        protocol=settings.reranker_protocol,
        api_key=settings.reranker_api_key,
    )


def configured_chat(settings: Settings) -> Chat | None:
    """Load the language model that is named; None where none is.

    Raises:
        InvalidInput: It cannot be what is named.
    """
    if settings.chat_url is None:
        return None
    return load_chat(settings.chat_url, model=settings.chat_model, api_key=settings.chat_api_key)
