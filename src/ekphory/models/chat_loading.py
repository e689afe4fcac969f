"""Finds the chat model that a URL means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ekphory.errors import InvalidInput
from ekphory.models.chat import Chat
from ekphory.models.openai_chat import ChatSettings, OpenAIChat


def load_chat(
    url: str,
    *,
    model: str | None,
    api_key: str | None = None,
    extra_fields: Mapping[str, Any] | None = None,
) -> Chat:
    """Load a chat model behind an OpenAI-compatible service.

    Args:
        url: The endpoint (`…/v1/chat/completions`) or its base (`…/v1`).
        model: Name of the model to ask for.
        api_key: The service's key.
        extra_fields: Further fields of every request, as in `ChatSettings`.

    Raises:
        InvalidInput: The URL is not one, or no model is named.
    """
    if not model:
        raise InvalidInput("model", model, "a chat service needs one", "Name a model")
    settings = ChatSettings(model=model, api_key=api_key, extra_fields=extra_fields or {})
    return OpenAIChat(url, settings=settings)
