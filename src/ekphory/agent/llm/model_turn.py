"""One message of a language model, whichever service it comes from, and what can go wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ekphory.errors import EkphoryError


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool that a model asks for.

    Attributes:
        id: The service's name for it.
        name: The tool.
        arguments: As the model wrote them: JSON.
    """

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What is answered to a call."""

    call: ToolCall
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTurn:
    """One message of the model.

    Attributes:
        text: What it says.
        calls: The tools that it calls.
        refusal: What it says in refusing; None where it does not.
        input_tokens, output_tokens: As the service counted them.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    refusal: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0


class ModelFault(EkphoryError):
    """The service did not give a message.

    Attributes:
        problem: What went wrong, in words, without a secret.
        may_pass: Whether the same request may succeed later.
        retry_after: Seconds that the service asks to wait, as it sent them.
    """

    def __init__(
        self, problem: str, *, may_pass: bool = False, retry_after: str | None = None
    ) -> None:
        self.problem = problem
        self.may_pass = may_pass
        self.retry_after = retry_after
        super().__init__(problem)


class Dialogue(Protocol):
    """A conversation with a model at a service, which keeps what was said."""

    async def answer(self, answers: Sequence[ToolAnswer], *, must_search: bool) -> ModelTurn:
        """Hand over the answers of tools and give the model's next message.

        Asking again after a fault gives the same answers.

        Args:
            answers: To the calls of the message before; empty at the beginning.
            must_search: Whether the model has to call the search tool.

        Raises:
            ModelFault: There is no message.
        """
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...
