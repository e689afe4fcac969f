"""Which provider holds the sessions."""

from __future__ import annotations

from ekphory.agent.local.provider import LocalProvider
from ekphory.agent.provider import SessionProvider
from ekphory.agent.settings import AgentSettings
from ekphory.models.reranker import RerankingModel


def provider_for(
    settings: AgentSettings, *, reranker: RerankingModel | None = None
) -> SessionProvider:
    """Make the provider that the settings name.

    Args:
        settings: How sessions are held.
        reranker: That of the search, for where the settings have none of their own.

    Raises:
        InvalidInput: What the provider needs is not configured.
        MissingExtra: The provider's SDK is not installed.
    """
    if settings.provider == "local":
        return LocalProvider(settings.reranker or reranker)
    # Slow to load, and needed only where a language model is configured.
    from ekphory.agent.llm.providers import AnthropicProvider, OpenAIProvider

    return (
        OpenAIProvider(settings) if settings.provider == "openai" else AnthropicProvider(settings)
    )
