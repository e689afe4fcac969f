"""A chat model that says what it was told to say."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ekphory.errors import ServiceError
from ekphory.models.chat import DEFAULT_CHAT_OPTIONS, ChatMessage, ChatOptions


class ScriptedChat:
    """Gives its answers one after another, and fails as a service does where one is an error.

    Follows the `Chat` protocol; `asked` holds what it was asked so far.
    """

    def __init__(self, answers: Iterable[str | ServiceError]) -> None:
        self._answers = iter(answers)
        self.asked: list[tuple[ChatMessage, ...]] = []

    @property
    def name(self) -> str:
        """Always the same."""
        return "scripted-chat"

    def complete(
        self, messages: Sequence[ChatMessage], *, options: ChatOptions = DEFAULT_CHAT_OPTIONS
    ) -> str:
        """Give the next answer.

        Raises:
            ServiceError: The next answer is one, or there is none left.
        """
        del options
        self.asked.append(tuple(messages))
        answer = next(self._answers, ServiceError("scripted-chat: no answer is left"))
        if isinstance(answer, ServiceError):
            raise answer
        return answer

    def complete_json(
        self,
        messages: Sequence[ChatMessage],
        schema: Mapping[str, Any],
        *,
        options: ChatOptions = DEFAULT_CHAT_OPTIONS,
    ) -> dict[str, Any]:
        """Give the next answer, which holds a JSON object; the schema is not looked at."""
        del schema
        answer: dict[str, Any] = json.loads(self.complete(messages, options=options))
        return answer
