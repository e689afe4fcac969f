"""What a chat model is, and one behind an OpenAI-compatible service."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Literal, Protocol

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match

from ekphory import http_service
from ekphory.errors import InvalidInput, ServiceError

# The schema of an answer.


def find_breach(answer: object, schema: Mapping[str, Any]) -> str | None:
    """Say where an answer breaks its schema and how; None where it follows it."""
    error = best_match(Draft202012Validator(schema).iter_errors(answer))
    return None if error is None else f"{error.json_path}: {error.message}"


# The protocol.

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a conversation with a model."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    """How an answer is made.

    Attributes:
        max_tokens: Longest answer.
        temperature: 0 gives the likeliest words, more gives more variety.
    """

    max_tokens: int = 150
    temperature: float = 0.3


DEFAULT_CHAT_OPTIONS = ChatOptions()


class Chat(Protocol):
    """Answers messages with text. Safe to call from several threads."""

    @property
    def name(self) -> str:
        """What the trace and error messages call it."""

    def complete(
        self, messages: Sequence[ChatMessage], *, options: ChatOptions = DEFAULT_CHAT_OPTIONS
    ) -> str:
        """Return the answer's text, never empty.

        Raises:
            ServiceError: The service failed after all repeats, refused, or answered nonsense.
        """

    def complete_json(
        self,
        messages: Sequence[ChatMessage],
        schema: Mapping[str, Any],
        *,
        options: ChatOptions = DEFAULT_CHAT_OPTIONS,
    ) -> dict[str, Any]:
        """Return an answer that follows the JSON schema.

        Raises:
            ServiceError: As `complete`, or the answer does not follow the schema.
        """


# A request to an OpenAI-compatible chat service, worded as far as the service understands.

JsonFormat = Literal["json_schema", "json_object", "text"]

_SIMPLER: dict[JsonFormat, JsonFormat] = {"json_schema": "json_object", "json_object": "text"}
_NOT_UNDERSTOOD = frozenset({400, 422})


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """What is asked.

    Attributes:
        messages: The conversation so far.
        options: How the answer is made.
        schema: What a JSON answer has to follow; None for an answer in words.
    """

    messages: Sequence[ChatMessage]
    options: ChatOptions
    schema: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatDialect:
    """What of the protocol a service understands; learnt from its refusals.

    Attributes:
        json_format: How JSON is asked for: by its schema, as an object, or in words only.
        length_field: Name of the field with the longest answer.
        temperature: Whether a temperature may be named.
    """

    json_format: JsonFormat = "json_schema"
    length_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: Literal["sent", "left out"] = "sent"

    def body(self, request: ChatRequest) -> dict[str, Any]:
        """Return the request's fields, without the model's name."""
        messages = [{"role": each.role, "content": each.content} for each in request.messages]
        body: dict[str, Any] = {"messages": messages, self.length_field: request.options.max_tokens}
        if self.temperature == "sent":
            body["temperature"] = request.options.temperature
        if request.schema is None:
            return body
        if self.json_format == "json_schema":
            described = {"name": "answer", "schema": request.schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": described}
            return body
        if self.json_format == "json_object":
            body["response_format"] = {"type": "json_object"}
        return body | {"messages": _with_schema(messages, request.schema)}

    def after(
        self, refusal: http_service.ServiceRefusal, request: ChatRequest
    ) -> ChatDialect | None:
        """Return what to try after a refusal; None where the refusal is about something else."""
        if refusal.status not in _NOT_UNDERSTOOD:
            return None
        field = _refused_field(refusal)
        if field == "max_tokens" and self.length_field == "max_tokens":
            return replace(self, length_field="max_completion_tokens")
        if field == "temperature" and self.temperature == "sent":
            return replace(self, temperature="left out")
        may_be_the_format = field is None or field.startswith("response_format")
        if request.schema is None or not may_be_the_format or self.json_format not in _SIMPLER:
            return None
        return replace(self, json_format=_SIMPLER[self.json_format])


_WHOLE_PROTOCOL = ChatDialect()


def _with_schema(messages: list[dict[str, str]], schema: dict[str, Any]) -> list[dict[str, str]]:
    """Put the schema into the system message, apart from what users and memories say."""
    rule = "Answer with one JSON object that follows this JSON schema, and with nothing else:\n"
    rule += json.dumps(schema, ensure_ascii=False)
    if messages and messages[0]["role"] == "system":
        system = {"role": "system", "content": f"{messages[0]['content']}\n\n{rule}"}
        return [system, *messages[1:]]
    return [{"role": "system", "content": rule}, *messages]


def _refused_field(refusal: http_service.ServiceRefusal) -> str | None:
    """Return the field that an error in OpenAI's form names: `{"error": {"param": …}}`."""
    try:
        field = json.loads(refusal.body)["error"]["param"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return None
    return field if isinstance(field, str) else None


def name_refused_field(said: str) -> bytes:
    """Return a refusal as OpenAI's services word it: some models take no temperature."""
    if "temperature" in said:
        return json.dumps({"error": {"param": "temperature"}}).encode()
    return said.encode("utf-8", "replace")


# Reads what a chat service answered: the text, and the JSON object in it.

_THINKING = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_THINKING_END = "</think>"
_MOST_STARTS = 50
"""How many braces are tried as the start of the object, so that no answer takes long to read."""


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} cannot stand in JSON")


# Models write line breaks into strings as they are: not strict about those.
_decoder = json.JSONDecoder(strict=False, parse_constant=_refuse_constant)


def strip_thinking(text: str) -> str:
    """Leave out what a model thought aloud: `<think>…</think>`, also where an end is missing.

    Some chat templates open the block themselves; then only its end is in the answer.
    """
    return _THINKING.sub("", text).rpartition(_THINKING_END)[2].strip()


def find_json_object(text: str) -> dict[str, Any] | None:
    """Return the first JSON object in a text, which may stand between words or in a code fence."""
    for brace in islice(re.finditer(r"\{", text), _MOST_STARTS):
        try:
            found, _ = _decoder.raw_decode(text, brace.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            return found
    return None


# The service.

CHAT_SERVICE = http_service.ServiceSettings(retries=1)
_OPERATION = "/chat/completions"
_CHECK_SECONDS = 5.0
_KEY_REFUSED = frozenset({401, 403})
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
    service: http_service.ServiceSettings = CHAT_SERVICE


@dataclass(frozen=True, slots=True)
class ChatUsage:
    """What a chat model was asked, and the tokens that its service says it read and wrote."""

    answers: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def after(self, answer: Mapping[str, Any]) -> ChatUsage:
        """Return it with one more answer; a service that names no tokens adds none."""
        told = answer.get("usage")
        said = told if isinstance(told, dict) else {}
        counts = (said.get(f"{each}_tokens") for each in ("prompt", "completion"))
        read, written = (each if isinstance(each, int) else 0 for each in counts)
        tokens = self.prompt_tokens + read, self.completion_tokens + written
        return ChatUsage(self.answers + 1, *tokens)


class CompletionTransport(Protocol):
    """Carries what OpenAI's chat completions are sent, and what they answer."""

    def post(self, body: Mapping[str, Any], /) -> Any:  # noqa: ANN401  whatever JSON holds
        """Return the answer to a request's fields; raises ServiceError."""

    def close(self) -> None:
        """Close the connections."""


class ChatCompletions:
    """A chat model that answers as OpenAI's chat completions do. Safe to call from several threads.

    What the service does not understand of the protocol is left out after its first refusal
    (status 400 or 422), and not tried again: a JSON schema, then the JSON mode, which are replaced
    by words in the system message; the name `max_tokens`; a temperature.

    Attributes:
        name: The model's name.
        usage: What it was asked until now.
    """

    def __init__(
        self,
        service: http_service.Service,
        transport: CompletionTransport,
        *,
        settings: ChatSettings,
        dialect: ChatDialect = _WHOLE_PROTOCOL,
    ) -> None:
        """Take what carries the questions; nothing is sent before the first one.

        Args:
            service: Words the errors.
            transport: Carries the questions.
            settings: What the service is asked for.
            dialect: What it is known to understand.
        """
        self.name = settings.model
        self.usage = ChatUsage()
        self._counting = threading.Lock()
        self._settings = settings
        self._service = service
        self._transport = transport
        self._dialect = dialect

    def __repr__(self) -> str:
        shown = http_service.shown(self._service.url)
        return f"{type(self).__name__}({shown!r}, {self._settings!r})"

    def complete(
        self, messages: Sequence[ChatMessage], *, options: ChatOptions = DEFAULT_CHAT_OPTIONS
    ) -> str:
        """Return the answer's text, never empty, without what the model thought aloud.

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
        """Return an answer that follows the JSON schema (draft 2020-12).

        Raises:
            InvalidInput: The schema cannot be one.
            ServiceError: As `complete`, or the answer does not follow the schema.
        """
        wanted = dict(schema)
        try:
            Draft202012Validator.check_schema(wanted)
        except SchemaError as error:
            problem = f"must be a JSON schema ({error.message})"
            raise InvalidInput("schema", wanted, problem, "Correct it") from error
        text = self._answer(ChatRequest(messages=messages, options=options, schema=wanted))
        found = find_json_object(text)
        if found is None:
            raise self._refuse_answer("answered no JSON object", text)
        if breach := find_breach(found, wanted):
            raise self._refuse_answer("broke the schema of its answer", breach)
        return found

    def _refuse_answer(self, problem: str, said: str) -> ServiceError:
        return self._service.error(f"{problem}: {self._service.quote(said)}", _ASK_OTHERWISE)

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def _answer(self, request: ChatRequest) -> str:
        dialect = self._dialect
        while True:
            body = {"model": self._settings.model, **dialect.body(request)}
            try:
                answer = self._transport.post(body | dict(self._settings.extra_fields))
            except http_service.ServiceRefusal as refusal:
                simpler = dialect.after(refusal, request)
                if simpler is None:
                    raise
                dialect = simpler
            else:
                self._dialect = dialect
                self._count(answer)
                return self._text(answer, request.options)

    def _count(self, answer: object) -> None:
        if isinstance(answer, dict):
            with self._counting:
                self.usage = self.usage.after(answer)

    def _text(self, answer: Any, options: ChatOptions) -> str:  # noqa: ANN401  whatever JSON holds
        try:
            choice = answer["choices"][0]
            content, refusal = choice["message"].get("content"), choice["message"].get("refusal")
            ending = choice.get("finish_reason")
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            said = self._service.quote(str(answer))
            raise self._service.error(f"answered no message: {said}") from error
        if refusal:
            raise self._refuse_answer("refused to answer", str(refusal))
        if ending == "content_filter":
            raise self._service.error("filtered its answer", _ASK_OTHERWISE)
        if ending == "length":
            problem = f"was cut off after {options.max_tokens} tokens"
            raise self._service.error(problem, "Allow more max_tokens.")
        text = strip_thinking(content) if isinstance(content, str) else ""
        if not text:
            raise self._service.error(f"gave an empty answer (finish_reason {ending!r})")
        return text


class OpenAIChat(ChatCompletions):
    """A chat model behind a URL."""

    def __init__(self, url: str, *, settings: ChatSettings) -> None:
        """Prepare the connection; nothing is sent before the first question.

        Args:
            url: The endpoint (`…/v1/chat/completions`) or its base (`…/v1`).
            settings: What it is asked for, and how.

        Raises:
            InvalidInput: The URL is not one.
        """
        place = http_service.complete_url(url, prefix="/v1", operation=_OPERATION)
        service = http_service.Service(
            kind="chat service", url=place, model=settings.model, api_key=settings.api_key
        )
        transport = http_service.JsonTransport(service, settings=settings.service)
        super().__init__(service, transport, settings=settings)

    def check(self) -> None:
        """Ask the service for the list of its models, which costs nothing.

        One that has no such list, and says so, is there all the same.

        Raises:
            ServiceError: It was not reached, is busy, refuses the key, or answers no JSON.
        """
        url = self._service.url.replace(_OPERATION, "/models", 1)
        settings = replace(self._settings.service, timeout=_CHECK_SECONDS)
        asked = replace(self._service, url=url)
        with closing(http_service.JsonTransport(asked, settings=settings)) as transport:
            try:
                transport.get()
            except http_service.ServiceRefusal as refusal:
                if refusal.status in _KEY_REFUSED:
                    raise
