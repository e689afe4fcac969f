"""How the agent works: the section `retrieval_agent` of the configuration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from ekphory.agent_trace.event_log import Listener
from ekphory.agent_trace.retrieval_trace import StageResults
from ekphory.errors import InvalidInput

if TYPE_CHECKING:
    from ekphory.models.reranker import RerankingModel

ProviderName = Literal["local", "openai", "anthropic"]
OpenAIEnvironment = Literal["local", "container_auto"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageModel:
    """An entry of `resources.language_models`, as far as the agent needs it.

    Attributes:
        id: Its name in the configuration.
        provider: What it speaks: `openai-responses` and the like.
        model: The model's name at the service.
        api_key: The service's key; never shown.
        base_url: The service's address; None for the provider's own.
    """

    id: str
    provider: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """How sessions are held.

    Attributes:
        llm_model: The language model of the provider `openai`; None where none is configured.
        reranker: Orders evidence, given the chain; None takes that of the search, where it has one.
        agent_session_provider: Who decides on the queries; None takes `openai` where there is a
            language model with a key, and `local` otherwise.
        agent_session_timeout_seconds: How long one session may take.
        agent_session_max_combined_calls: How many searches, of top level and branch together.
        agent_session_log_raw_output: Whether payloads of the provider are logged for debugging,
            without keys; they hold memories.
        agent_native_bundle_root: Where the Markdown bundle is laid out for the provider; None for a
            temporary directory.
        agent_session_max_retry_interval_seconds: Longest wait before a repeat.
        openai_native_agent_environment: Where OpenAI's model finds the bundle.
        anthropic_model, anthropic_api_key, anthropic_base_url: The model of the provider
            `anthropic`, its key, and another address than Anthropic's own.
        anthropic_max_output_tokens: Longest message of that model.
    """

    llm_model: LanguageModel | None = None
    reranker: RerankingModel | None = None
    agent_session_provider: ProviderName | None = None
    agent_session_timeout_seconds: float = 180.0
    agent_session_max_combined_calls: int = 10
    agent_session_log_raw_output: bool = False
    agent_native_bundle_root: str | None = None
    agent_session_max_retry_interval_seconds: float = 120.0
    openai_native_agent_environment: OpenAIEnvironment = "local"
    anthropic_model: str = "claude-sonnet-4-5"
    anthropic_api_key: str | None = field(default=None, repr=False)
    anthropic_base_url: str | None = None
    anthropic_max_output_tokens: int = 2048

    def __post_init__(self) -> None:
        _one_of("agent_session_provider", self.agent_session_provider, get_args(ProviderName))
        _one_of(
            "openai_native_agent_environment",
            self.openai_native_agent_environment,
            get_args(OpenAIEnvironment),
        )
        for name in (
            "agent_session_timeout_seconds",
            "agent_session_max_combined_calls",
            "anthropic_max_output_tokens",
        ):
            _number(name, getattr(self, name), least="above 0")
        _whole("agent_session_max_combined_calls", self.agent_session_max_combined_calls)
        _whole("anthropic_max_output_tokens", self.anthropic_max_output_tokens)
        name = "agent_session_max_retry_interval_seconds"
        _number(name, getattr(self, name), least="0 or more")

    @property
    def provider(self) -> ProviderName:
        """Who decides on the queries."""
        if self.agent_session_provider is not None:
            return self.agent_session_provider
        return "openai" if self.llm_model is not None and self.llm_model.api_key else "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """How one search with the agent is done.

    Attributes:
        settings: How sessions are held; None reads the configuration.
        stage_results: `none` leaves the hops' summaries out of the trace's plain form, `trace`
            tells them there, `memory` gives confident ones as lines of the answer context too.
        on_event: Is told of every event when it happens.
    """

    settings: AgentSettings | None = None
    stage_results: StageResults = "none"
    on_event: Listener | None = None

    def __post_init__(self) -> None:
        _one_of("stage_results", self.stage_results, get_args(StageResults))


def _one_of(field_name: str, value: object, choices: tuple[str, ...]) -> None:
    if value is not None and value not in choices:
        raise InvalidInput(field_name, value, "no such choice", f"Choose {', '.join(choices)}")


def _number(field_name: str, value: object, *, least: Literal["above 0", "0 or more"]) -> None:
    fits = isinstance(value, int | float) and not isinstance(value, bool)
    if not fits or value < 0 or (value == 0 and least == "above 0"):  # type: ignore[operator]
        raise InvalidInput(field_name, value, "is out of range", f"Give a number {least}")


def _whole(field_name: str, value: object) -> None:
    if not isinstance(value, int):
        raise InvalidInput(field_name, value, "is no whole number", "Give one")
