"""Dialogues with OpenAI and Anthropic, through their official SDKs."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ekphory.agent.llm_dialogue import (
    DESCRIPTION,
    PARAMETERS,
    SHELL,
    AgentSpec,
    BundleDirectory,
    ModelFault,
    ModelTurn,
    RawOutput,
    ToolAnswer,
    ToolCall,
    translate_errors,
    zip_skill,
)
from ekphory.agent.provider import NAME, AgentSettings
from ekphory.errors import MissingExtra
from ekphory.models.embedder import replace_lone_surrogates

if TYPE_CHECKING:
    from anthropic.types import Message
    from openai.types.responses import Response, ResponseFunctionShellToolCall

    from ekphory.memmachine_config import LanguageModel


_log = logging.getLogger("ekphory.agent")
_UNFINISHED = "the stream broke off before the message was complete"


class OpenAIDialogue:
    """Keeps the conversation on this side: nothing is stored at the service.

    The guidance of `coq` is attached as a skill of a shell. Where the service refuses the shell for
    the model, the guidance goes into the instructions instead.
    """

    def __init__(
        self, question: str, model: LanguageModel, settings: AgentSettings, bundle: BundleDirectory
    ) -> None:
        """Prepare the dialogue; nothing is sent yet.

        Args:
            question: What is to be answered.
            model: Which model, where, and its key.
            settings: Where the model finds the guidance, and whether payloads are logged.
            bundle: The guidance; the first of it is the agent's own.

        Raises:
            MissingExtra: The SDK is not installed.
        """
        try:
            from openai import AsyncOpenAI
        except ImportError as error:
            raise MissingExtra("agent", "The agent's provider openai") from error
        self._client = AsyncOpenAI(api_key=model.api_key, base_url=model.base_url, max_retries=0)
        self._model = model.model
        self._bundle = bundle
        self._environment = settings.openai_native_agent_environment
        self._raw = RawOutput(settings.agent_session_log_raw_output, model.api_key)
        self._has_shell = True
        self._items: list[dict[str, Any]] = [{"role": "user", "content": question}]
        self._answered: Sequence[ToolAnswer] = ()

    async def answer(self, answers: Sequence[ToolAnswer], *, must_search: bool) -> ModelTurn:
        """Hand over the answers of tools and return the model's next message.

        Args:
            answers: To the calls of the message before; empty at the beginning.
            must_search: Whether the model has to call the search tool.

        Raises:
            ModelFault: There is no message.
        """
        if answers and answers is not self._answered:
            self._items += [_format_output(answer) for answer in answers]
            self._answered = answers
        request = self._request(must_search=must_search)
        self._raw.tell("openai request", request)
        response = await self._response(request)
        self._raw.tell("openai response", response.to_dict())
        self._items += _repeat_items(response)
        return _read_response(response)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _request(self, *, must_search: bool) -> dict[str, Any]:
        agent, *guidance = self._bundle.specs
        search = {"name": NAME, "description": DESCRIPTION, "parameters": PARAMETERS}
        tools: list[dict[str, Any]] = [{"type": "function", **search, "strict": True}]
        texts = [agent.body]
        if self._has_shell:
            tools.append({"type": SHELL, "environment": self._shell()})
        else:
            texts += [spec.body for spec in guidance]
        return {
            "model": self._model,
            "instructions": "\n".join(texts),
            "input": self._items,
            "tools": tools,
            "tool_choice": {"type": "function", "name": NAME} if must_search else "auto",
            "store": False,
        }

    def _shell(self) -> dict[str, Any]:
        skills = []
        for spec in self._bundle.specs[1:]:
            skill: dict[str, Any] = {"name": spec.name, "description": spec.description}
            if self._environment == "local":
                skill["path"] = str(self._bundle.path(spec))
            else:
                zipped = {"media_type": "application/zip", "data": zip_skill(spec)}
                skill |= {"type": "inline", "source": {"type": "base64", **zipped}}
            skills.append(skill)
        return {"type": self._environment, "skills": skills}

    async def _response(self, request: dict[str, Any]) -> Response:
        import openai

        try:
            with translate_errors(openai, openai.OpenAIError, self._raw):
                return await self._stream(request)
        except ModelFault as fault:
            refused = fault.__cause__
            if not (isinstance(refused, openai.BadRequestError) and self._has_shell):
                raise
            if SHELL not in str(refused).lower():
                raise
            _log.info("model %s takes no shell; the guidance is in the instructions", self._model)
            self._has_shell = False
            must_search = request["tool_choice"] != "auto"
            return await self._response(self._request(must_search=must_search))

    async def _stream(self, request: dict[str, Any]) -> Response:
        stream = await self._client.responses.create(**request, stream=True)
        async with stream:
            async for event in stream:
                if event.type in ("response.completed", "response.incomplete"):
                    response: Response = event.response
                    return response
                if event.type == "response.failed":
                    raise ModelFault(f"the response failed: {event.response.error}", may_pass=True)
                if event.type == "error":
                    raise ModelFault(f"the stream told an error: {event.message}", may_pass=True)
        raise ModelFault(_UNFINISHED, may_pass=True)


def _read_response(response: Response) -> ModelTurn:
    """Read the model's message out of the response's items."""
    texts: list[str] = []
    calls: list[ToolCall] = []
    refusal: str | None = None
    for item in response.output:
        if item.type == "function_call":
            calls.append(_read_call(item.call_id, item.name, item.arguments))
        elif item.type == "shell_call" and _is_ours(item):
            commands = json.dumps({"commands": item.action.commands})
            calls.append(_read_call(item.call_id, SHELL, commands))
        elif item.type == "message":
            texts += [part.text for part in item.content if part.type != "refusal"]
            refusals = [part.refusal for part in item.content if part.type == "refusal"]
            refusal = refusals[-1] if refusals else refusal
    if response.incomplete_details is not None:
        refusal = f"cut off: {response.incomplete_details.reason}"
    usage = response.usage
    return ModelTurn(
        text=replace_lone_surrogates("\n".join(texts)),
        calls=tuple(calls),
        refusal=None if refusal is None else replace_lone_surrogates(refusal),
        input_tokens=_read_count(usage.input_tokens) if usage else 0,
        output_tokens=_read_count(usage.output_tokens) if usage else 0,
    )


def _read_call(call_id: object, name: object, arguments: object) -> ToolCall:
    """Return a call of a tool; an SDK lets through whatever the service sent.

    Raises:
        ModelFault: A part of it is not a text.
    """
    if isinstance(call_id, str) and isinstance(name, str) and isinstance(arguments, str):
        return ToolCall(call_id, name, arguments)
    raise ModelFault("unreadable: a call of a tool lacks its id, name or arguments", may_pass=True)


def _read_count(given: object) -> int:
    """Return a count of tokens; 0 where the service tells none."""
    return given if isinstance(given, int) else 0


def _is_ours(item: ResponseFunctionShellToolCall) -> bool:
    """Whether the shell is on this side; a container's commands are run at the service."""
    return item.environment is None or item.environment.type == "local"


def _repeat_items(response: Response) -> list[dict[str, Any]]:
    """Return the items that the next request repeats, as nothing is stored at the service.

    Without their ids: with them the service would ask for the reasoning items that stood before.
    """
    items: list[dict[str, Any]] = []
    for item in response.output:
        if item.type == "function_call":
            call = {"call_id": item.call_id, "name": item.name, "arguments": item.arguments}
            items.append({"type": "function_call", **call})
        elif item.type == "shell_call" and _is_ours(item):
            action = {"commands": list(item.action.commands)}
            items.append({"type": "shell_call", "call_id": item.call_id, "action": action})
        elif item.type == "message":
            said = "".join(part.text for part in item.content if part.type == "output_text")
            items.append({"role": "assistant", "content": said})
    return items


def _format_output(answer: ToolAnswer) -> dict[str, Any]:
    if answer.call.name == SHELL:
        outcome = {"stdout": answer.text, "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
        return {"type": "shell_call_output", "call_id": answer.call.id, "output": [outcome]}
    return {"type": "function_call_output", "call_id": answer.call.id, "output": answer.text}


_ENDINGS = {
    "refusal": "the model declined",
    "max_tokens": "cut off: its longest message was reached",
    "model_context_window_exceeded": "cut off: the model's window is full",
}


class AnthropicDialogue:
    """Keeps the conversation on this side, as the protocol wants it."""

    def __init__(self, question: str, settings: AgentSettings, specs: Sequence[AgentSpec]) -> None:
        """Prepare the dialogue; nothing is sent yet.

        Args:
            question: What is to be answered.
            settings: Which model, where, and its key.
            specs: The guidance, which goes into the system prompt.

        Raises:
            MissingExtra: The SDK is not installed.
        """
        try:
            from anthropic import AsyncAnthropic
        except ImportError as error:
            raise MissingExtra("agent", "The agent's provider anthropic") from error
        self._client = AsyncAnthropic(
            api_key=settings.anthropic_api_key, base_url=settings.anthropic_base_url, max_retries=0
        )
        self._settings = settings
        self._system = "\n".join(spec.body for spec in specs)
        self._raw = RawOutput(settings.agent_session_log_raw_output, settings.anthropic_api_key)
        self._messages: list[dict[str, Any]] = [{"role": "user", "content": question}]
        self._answered: Sequence[ToolAnswer] = ()

    async def answer(self, answers: Sequence[ToolAnswer], *, must_search: bool) -> ModelTurn:
        """Hand over the answers of tools and return the model's next message.

        Args:
            answers: To the calls of the message before; empty at the beginning.
            must_search: Whether the model has to call the search tool.

        Raises:
            ModelFault: There is no message.
        """
        if answers and answers is not self._answered:
            content = [_format_result(answer) for answer in answers]
            self._messages.append({"role": "user", "content": content})
            self._answered = answers
        request = self._request(must_search=must_search)
        self._raw.tell("anthropic request", request)
        message = await self._message(request)
        self._raw.tell("anthropic response", message.to_dict())
        self._messages.append({"role": "assistant", "content": _repeat_blocks(message)})
        return _read_message(message)

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
            raise ModelFault(_UNFINISHED, may_pass=True)
        return message


def _read_message(message: Message) -> ModelTurn:
    texts = [block.text for block in message.content if block.type == "text"]
    calls = tuple(
        _read_call(block.id, block.name, json.dumps(block.input))
        for block in message.content
        if block.type == "tool_use"
    )
    return ModelTurn(
        text=replace_lone_surrogates("\n".join(texts)),
        calls=calls,
        refusal=_ENDINGS.get(message.stop_reason or ""),
        input_tokens=_read_count(message.usage.input_tokens),
        output_tokens=_read_count(message.usage.output_tokens),
    )


def _repeat_blocks(message: Message) -> list[dict[str, Any]]:
    """Return the blocks that the next request repeats."""
    blocks: list[dict[str, Any]] = []
    for block in message.content:
        if block.type == "text" and block.text:
            blocks.append({"type": "text", "text": block.text})
        elif block.type == "tool_use":
            call = {"id": block.id, "name": block.name, "input": block.input}
            blocks.append({"type": "tool_use", **call})
    return blocks


def _format_result(answer: ToolAnswer) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": answer.call.id, "content": answer.text}
