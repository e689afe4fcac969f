"""Chats through an OpenAI-compatible `/v1/chat/completions` service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ekphory.models.answer_schema import AnswerSchema
from ekphory.models.chat import DEFAULT_CHAT_OPTIONS, ChatMessage, ChatOptions
from ekphory.models.chat_answer import first_json_object, without_thinking
from ekphory.models.chat_request import ChatDialect, ChatRequest
from ekphory.services.endpoint import endpoint, shown
from ekphory.services.failures import ServiceRefusal
from ekphory.services.service import Service
from ekphory.services.settings import ServiceSettings
from ekphory.services.transport import JsonTransport

CHAT_SERVICE = ServiceSettings(retries=1)
_ASK_OTHERWISE = "Ask otherwise, or take another model."


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSettings:
    """What a chat service is asked for, and how.

    Attributes:
        model: The model's name.
        api_key: Sent as a bearer token; never shown.
        extra_fields: Further fields of every request, for what only some services know, such as
            `{"chat_template_kwargs": {"enable_thinking": False}}` for Qwen3 on vLLM.
        service: How the service is called.
    """

    model: str
    api_key: str | None = field(default=None, repr=False)
    extra_fields: Mapping[str, Any] = field(default_factory=dict)
    service: ServiceSettings = CHAT_SERVICE


class OpenAIChat:
    """A chat model behind a URL. Safe to call from several threads.

    What the service does not understand of the protocol is left out after its first refusal
    (status 400 or 422), and not tried again: a JSON schema, then the JSON mode, which are replaced
    by words in the system message; the name `max_tokens`; a temperature.
    """

    def __init__(self, url: str, *, settings: ChatSettings) -> None:
        """Prepare the connection; nothing is sent before the first question.

        Args:
            url: The endpoint (`…/v1/chat/completions`) or its base (`…/v1`).
            settings: What it is asked for, and how.

        Raises:
            InvalidInput: The URL is not one.
        """
        self._settings = settings
        self._service = Service(
            kind="chat service",
            url=endpoint(url, prefix="/v1", operation="/chat/completions"),
            model=settings.model,
            api_key=settings.api_key,
        )
        self._transport = JsonTransport(self._service, settings=settings.service)
        self._dialect = ChatDialect()

    def __repr__(self) -> str:
        return f"OpenAIChat({shown(self._service.url)!r}, {self._settings!r})"

    @property
    def name(self) -> str:
        """The model's name."""
        return self._settings.model

    def complete(
        self, messages: Sequence[ChatMessage], *, options: ChatOptions = DEFAULT_CHAT_OPTIONS
    ) -> str:
        """Give the answer's text, never empty, without what the model thought aloud.

        Raises:
            ServiceError: The service failed after all repeats, the model refused, or its answer is
                empty, cut off or filtered.
        """
        return self._answer(ChatRequest(messages=messages, options=options))

    def complete_json(
        self,
        messages: Sequence[ChatMessage],
        schema: Mapping[str, Any],
        *,
        options: ChatOptions = DEFAULT_CHAT_OPTIONS,
    ) -> dict[str, Any]:
        """Give an answer that follows the JSON schema (draft 2020-12).

        Raises:
            InvalidInput: The schema is none.
            ServiceError: As `complete`, or the answer does not follow the schema.
        """
        wanted = AnswerSchema(schema)
        text = self._answer(ChatRequest(messages=messages, options=options, schema=wanted))
        found = first_json_object(text)
        if found is None:
            raise self._service.error(
                f"answered no JSON object: {self._service.quote(text)}", _ASK_OTHERWISE
            )
        breach = wanted.breach(found)
        if breach is not None:
            raise self._service.error(
                f"broke the schema of its answer: {self._service.quote(breach)}", _ASK_OTHERWISE
            )
        return found

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def _answer(self, request: ChatRequest) -> str:
        dialect = self._dialect
        while True:
            body = {"model": self._settings.model, **dialect.body(request)}
            try:
                answer = self._transport.post(body | dict(self._settings.extra_fields))
            except ServiceRefusal as refusal:
                simpler = dialect.after(refusal, request)
                if simpler is None:
                    raise
                dialect = simpler
            else:
                self._dialect = dialect
                return self._text(answer, request.options)

    def _text(self, answer: Any, options: ChatOptions) -> str:  # noqa: ANN401  whatever JSON holds
        try:
            choice = answer["choices"][0]
            content, refusal = choice["message"].get("content"), choice["message"].get("refusal")
            ending = choice.get("finish_reason")
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            said = self._service.quote(str(answer))
            raise self._service.error(f"answered no message: {said}") from error
        if refusal:
            raise self._service.error(
                f"refused to answer: {self._service.quote(str(refusal))}", _ASK_OTHERWISE
            )
        if ending == "content_filter":
            raise self._service.error("filtered its answer", _ASK_OTHERWISE)
        if ending == "length":
            raise self._service.error(
                f"was cut off after {options.max_tokens} tokens", "Allow more max_tokens."
            )
        text = without_thinking(content) if isinstance(content, str) else ""
        if not text:
            raise self._service.error(f"gave an empty answer (finish_reason {ending!r})")
        return text
