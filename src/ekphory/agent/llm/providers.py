"""The providers that let a language model decide on the queries."""

from __future__ import annotations

from collections.abc import Sequence

from ekphory.agent.llm.anthropic_dialogue import AnthropicDialogue
from ekphory.agent.llm.bundle_directory import BundleDirectory, laid_out
from ekphory.agent.llm.model_turn import Dialogue
from ekphory.agent.llm.openai_dialogue import OpenAIDialogue
from ekphory.agent.llm.raw_output import RawOutput
from ekphory.agent.llm.session_loop import SessionLoop
from ekphory.agent.llm.spec import AgentSpec, load_spec
from ekphory.agent.llm.tool_calls import ToolCalls
from ekphory.agent.provider import Outcome
from ekphory.agent.search_tool import SearchTool
from ekphory.agent.settings import AgentSettings
from ekphory.agent_trace.event_log import EventLog
from ekphory.errors import InvalidInput

_BUNDLE = ("retrieve_agent", "coq")


class OpenAIProvider:
    """A session with a model behind OpenAI's Responses API."""

    def __init__(self, settings: AgentSettings) -> None:
        """Check the settings; nothing is sent yet.

        Raises:
            InvalidInput: No language model is configured, it has no key, or the bundle is broken.
        """
        if settings.llm_model is None:
            raise InvalidInput(
                "llm_model",
                None,
                "the provider openai needs a language model",
                "Name one of resources.language_models",
            )
        if not settings.llm_model.api_key:
            raise InvalidInput(
                "api_key",
                None,
                f"the language model {settings.llm_model.id!r} has none",
                "Give it in resources.language_models, as $OPENAI_API_KEY for example",
            )
        self._settings = settings
        self._model = settings.llm_model
        self._specs = _loaded()

    @property
    def name(self) -> str:
        """`openai`."""
        return "openai"

    def run(self, question: str, tool: SearchTool, log: EventLog) -> Outcome:
        """Hold the session.

        Raises:
            SessionFault: It cannot go on.
        """
        settings = self._settings
        raw = RawOutput(settings.agent_session_log_raw_output, self._model.api_key)
        with laid_out(self._specs, settings.agent_native_bundle_root) as bundle:
            dialogue = OpenAIDialogue(
                question,
                self._model,
                bundle=bundle,
                environment=settings.openai_native_agent_environment,
                raw=raw,
            )
            local = settings.openai_native_agent_environment == "local"
            calls = _calls(tool, self._specs, bundle if local else None)
            return _loop(dialogue, calls, log, settings, self._specs).run(question)


class AnthropicProvider:
    """A session with a model behind Anthropic's Messages API."""

    def __init__(self, settings: AgentSettings) -> None:
        """Check the settings; nothing is sent yet.

        Raises:
            InvalidInput: There is no key, or the bundle is broken.
        """
        if not settings.anthropic_api_key:
            raise InvalidInput(
                "anthropic_api_key",
                None,
                "the provider anthropic needs one",
                "Give it, as $ANTHROPIC_API_KEY for example",
            )
        self._settings = settings
        self._specs = _loaded()

    @property
    def name(self) -> str:
        """`anthropic`."""
        return "anthropic"

    def run(self, question: str, tool: SearchTool, log: EventLog) -> Outcome:
        """Hold the session.

        Raises:
            SessionFault: It cannot go on.
        """
        settings = self._settings
        raw = RawOutput(settings.agent_session_log_raw_output, settings.anthropic_api_key)
        dialogue = AnthropicDialogue(question, settings, specs=self._specs, raw=raw)
        calls = _calls(tool, self._specs)
        return _loop(dialogue, calls, log, settings, self._specs).run(question)


def _loaded() -> tuple[AgentSpec, ...]:
    return tuple(load_spec(name) for name in _BUNDLE)


def _calls(
    tool: SearchTool, specs: Sequence[AgentSpec], bundle: BundleDirectory | None = None
) -> ToolCalls:
    return ToolCalls(tool, specs[0].max_return_len, bundle)


def _loop(
    dialogue: Dialogue,
    calls: ToolCalls,
    log: EventLog,
    settings: AgentSettings,
    specs: Sequence[AgentSpec],
) -> SessionLoop:
    return SessionLoop(
        dialogue,
        calls,
        log,
        most_steps=specs[0].max_steps,
        longest_wait=settings.agent_session_max_retry_interval_seconds,
    )
