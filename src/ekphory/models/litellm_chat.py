"""Chat models of the many services that the library LiteLLM speaks to."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ekphory import http_service as http
from ekphory.errors import MissingExtra, ServiceError
from ekphory.models.chat import (
    CHAT_SERVICE,
    ChatCompletions,
    ChatDialect,
    ChatSettings,
    name_refused_field,
)

_IMPORTED_WITH = {
    # Else it asks another host for its prices.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    # Else it takes variables from a file `.env` of the working directory or above.
    "LITELLM_MODE": "PRODUCTION",
}

_OF_LITELLM = 500
"""The status that it gives what failed before there was an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiteLlmSettings:
    """Which model is asked, and where.

    Attributes:
        model: The provider and its model, such as `anthropic/claude-sonnet-4-6`.
        api_key: The service's key, never shown; None leaves it to LiteLLM, which reads the
            provider's own variable.
        api_base: Another address than the provider's own.
        api_version: The version of an API that has several, as Azure's has.
        extra_kwargs: What else LiteLLM is told with every request, such as a provider's own
            credentials; never shown.
        service: How long and how often it is asked.
    """

    model: str
    api_key: str | None = field(default=None, repr=False)
    api_base: str | None = None
    api_version: str | None = None
    extra_kwargs: Mapping[str, Any] = field(default_factory=dict, repr=False)
    service: http.ServiceSettings = CHAT_SERVICE


class LiteLlmChat(ChatCompletions):
    """A chat model that LiteLLM reaches."""

    def __init__(self, settings: LiteLlmSettings) -> None:
        """Load LiteLLM; nothing is sent before the first question.

        Raises:
            MissingExtra: It needs the `[litellm]` extra.
        """
        service = http.Service(
            kind="chat service of LiteLLM",
            url=settings.api_base or "",
            model=settings.model,
            api_key=settings.api_key,
        )
        super().__init__(
            service,
            _LiteLlm(service, settings),
            settings=ChatSettings(model=settings.model, api_key=settings.api_key),
            # LiteLLM leaves out a schema that a provider does not understand, without a word.
            dialect=ChatDialect(json_format="text"),
        )


class _LiteLlm:
    """Carries a chat completion through LiteLLM."""

    def __init__(self, service: http.Service, settings: LiteLlmSettings) -> None:
        for name, value in _IMPORTED_WITH.items():
            os.environ.setdefault(name, value)
        try:
            import litellm
        except ImportError as error:
            raise MissingExtra("litellm", "A model of LiteLLM") from error
        litellm.suppress_debug_info = True
        litellm.telemetry = False
        self._complete = litellm.completion
        self._service = service
        self._settings = settings

    def post(self, body: Mapping[str, Any], /) -> dict[str, Any]:
        """Return the answer's fields."""
        settings = self._settings
        named = {
            name: value
            for name in ("api_key", "api_base", "api_version")
            if (value := getattr(settings, name)) is not None
        }
        asked = {
            "timeout": settings.service.timeout,
            **settings.extra_kwargs,
            **json.loads(http.as_json(body)),
            **named,
            "drop_params": True,
            "stream": False,
            # Its own repeats wait for nothing, and need a package that it does not require.
            "num_retries": 0,
            "max_retries": 0,
        }
        return http.repeat(lambda: self._ask(asked), settings=settings.service)

    def _ask(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        from openai import OpenAIError

        try:
            answer = self._complete(**asked)
        except OpenAIError as error:
            raise self._refuse(error) from error
        return dict(answer.model_dump())

    def _refuse(self, error: Exception) -> ServiceError:
        status, said = getattr(error, "status_code", None), str(error)
        if status in (None, _OF_LITELLM):
            message = self._service.message(f"could not be asked: {self._service.quote(said)}")
            return http.ServiceUnavailable(message)
        return self._service.refusal(status, said, body=name_refused_field(said))

    def close(self) -> None:
        """LiteLLM keeps its connections itself."""
