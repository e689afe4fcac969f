"""A request to an OpenAI-compatible chat service, worded as far as the service understands."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ekphory.models.answer_schema import AnswerSchema
from ekphory.models.chat import ChatMessage, ChatOptions
from ekphory.services.failures import ServiceRefusal

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
    schema: AnswerSchema | None = None


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
        """Give the request's fields, without the model's name."""
        messages = [
            {"role": message.role, "content": message.content} for message in request.messages
        ]
        body: dict[str, Any] = {
            "messages": messages,
            self.length_field: request.options.max_tokens,
        }
        if self.temperature == "sent":
            body["temperature"] = request.options.temperature
        if request.schema is None:
            return body
        return body | self._asking_for_json(messages, request.schema.schema)

    def after(self, refusal: ServiceRefusal, request: ChatRequest) -> ChatDialect | None:
        """Give what to try after a refusal; None where the refusal is about something else."""
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

    def _asking_for_json(
        self, messages: list[dict[str, str]], schema: dict[str, Any]
    ) -> dict[str, Any]:
        if self.json_format == "json_schema":
            described = {"name": "answer", "schema": schema, "strict": True}
            return {"response_format": {"type": "json_schema", "json_schema": described}}
        asked = {"messages": _with_schema(messages, schema)}
        if self.json_format == "json_object":
            return asked | {"response_format": {"type": "json_object"}}
        return asked


def _with_schema(messages: list[dict[str, str]], schema: dict[str, Any]) -> list[dict[str, str]]:
    """Put the schema into the system message, apart from what users and memories say."""
    rule = (
        "Answer with one JSON object that follows this JSON schema, and with nothing else:\n"
        + json.dumps(schema, ensure_ascii=False)
    )
    if messages and messages[0]["role"] == "system":
        system = {"role": "system", "content": f"{messages[0]['content']}\n\n{rule}"}
        return [system, *messages[1:]]
    return [{"role": "system", "content": rule}, *messages]


def _refused_field(refusal: ServiceRefusal) -> str | None:
    """Give the field that an error in OpenAI's form names: `{"error": {"param": …}}`."""
    try:
        field = json.loads(refusal.body)["error"]["param"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return None
    return field if isinstance(field, str) else None
