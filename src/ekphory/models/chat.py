"""What a chat model is: the protocol that every language model follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

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
        ...

    def complete(
        self, messages: Sequence[ChatMessage], *, options: ChatOptions = DEFAULT_CHAT_OPTIONS
    ) -> str:
        """Give the answer's text, never empty.

        Raises:
            ServiceError: The service failed after all repeats, refused, or answered nonsense.
        """
        ...

    def complete_json(
        self,
        messages: Sequence[ChatMessage],
        schema: Mapping[str, Any],
        *,
        options: ChatOptions = DEFAULT_CHAT_OPTIONS,
    ) -> dict[str, Any]:
        """Give an answer that follows the JSON schema.

        Raises:
            ServiceError: As `complete`, or the answer does not follow the schema.
        """
        ...
