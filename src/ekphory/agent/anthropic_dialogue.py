"""A dialogue through Anthropic's Messages API, with the official SDK."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ekphory.agent.llm_bundle import AgentSpec
from ekphory.agent.llm_dialogue import (
    DESCRIPTION,
    PARAMETERS,
    ModelFault,
    ModelTurn,
    RawOutput,
    ToolAnswer,
    ToolCall,
    translate_errors,
)
from ekphory.agent.provider import NAME, AgentSettings
from ekphory.errors import MissingExtra

if TYPE_CHECKING:
    from anthropic.types import Message

_ENDINGS = {
    "refusal": "the model declined",
    "max_tokens": "cut off: its longest message was reached",
    "model_context_window_exceeded": "cut off: the model's window is full",
}


class AnthropicDialogue:
    """Keeps the conversation on this side, as the protocol wants it."""

    def __init__(
        self,
        question: str,
        settings: AgentSettings,
        *,
        specs: Sequence[AgentSpec],
        raw: RawOutput,
    ) -> None:
        """Prepare the dialogue; nothing is sent yet.

        Args:
            question: What is to be answered.
            settings: Which model, where, and its key.
            specs: The guidance, which goes into the system prompt.
            raw: Where payloads are told.

        Raises:
            MissingExtra: The SDK is not installed.
        """
        try:
            from anthropic import AsyncAnthropic
        except ImportError as error:
            raise MissingExtra("agent", "The agent's provider anthropic") from error
        self._client = AsyncAnthropic(
            api_key=settings.anthropic_api_key,
            base_url=settings.anthropic_base_url,
            max_retries=0,
        )
        self._settings = settings
        self._system = "\n".join(spec.body for spec in specs)
        self._raw = raw
        self._messages: list[dict[str, Any]] = [{"role": "user", "content": question}]
        self._answered: Sequence[ToolAnswer] = ()

    async def answer(self, answers: Sequence[ToolAnswer], *, must_search: bool) -> ModelTurn:
        """Hand over the answers of tools and give the model's next message.

        Args:
            answers: To the calls of the message before; empty at the beginning.
            must_search: Whether the model has to call the search tool.

        Raises:
            ModelFault: There is no message.
        """
        if answers and answers is not self._answered:
            content = [_format_answer(answer) for answer in answers]
            self._messages.append({"role": "user", "content": content})
            self._answered = answers
        request = self._request(must_search=must_search)
        self._raw.tell("anthropic request", request)
        message = await self._message(request)
        self._raw.tell("anthropic response", message.to_dict())
        self._messages.append({"role": "assistant", "content": _repeat_blocks(message)})
        return _read_turn(message)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _request(self, *, must_search: bool) -> dict[str, Any]:
        return {
            "model": self._settings.anthropic_model,
            "max_tokens": self._settings.anthropic_max_output_tokens,
            "system": self._system,
            "messages": self._messages,
            "tools": [{"name": NAME, "description": DESCRIPTION, "input_schema": PARAMETERS}],
            "tool_choice": {"type": "tool", "name": NAME} if must_search else {"type": "auto"},
        }

    async def _message(self, request: dict[str, Any]) -> Message:
        import anthropic

        with translate_errors(anthropic, anthropic.AnthropicError, self._raw):
            async with self._client.messages.stream(**request) as stream:
                message = await stream.get_final_message()
        if message.stop_reason is None:
            raise ModelFault("the stream broke off before the message was complete", may_pass=True)
        return message


def _read_turn(message: Message) -> ModelTurn:
    texts = [block.text for block in message.content if block.type == "text"]
    calls = tuple(
        ToolCall(block.id, block.name, json.dumps(block.input))
        for block in message.content
        if block.type == "tool_use"
    )
    return ModelTurn(
        text="\n".join(texts),
        calls=calls,
        refusal=_ENDINGS.get(message.stop_reason or ""),
        input_tokens=message.usage.input_tokens,
        output_tokens=message.usage.output_tokens,
    )


def _repeat_blocks(message: Message) -> list[dict[str, Any]]:
    """Return the blocks that the next request repeats."""
    blocks: list[dict[str, Any]] = []
    for block in message.content:
        if block.type == "text" and block.text:
            blocks.append({"type": "text", "text": block.text})
        elif block.type == "tool_use":
            blocks.append(
                {"type": "tool_use", "id": block.id, "name": block.name, "input": block.input}
            )
    return blocks


def _format_answer(answer: ToolAnswer) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": answer.call.id, "content": answer.text}
