"""What a tool is: a name, when to use it, what it takes and gives, and what it does to memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from ekphory.catalog.access_keys import Rights
from ekphory.memory import Memory

Effect = Literal["reads", "adds", "changes", "forgets"]
"""What a call does to the memories of a scope; `changes` keeps the earlier version."""

NEEDED: dict[Effect, Rights] = {
    "reads": "read",
    "adds": "write",
    "changes": "write",
    "forgets": "write",
}
"""The rights that a caller with a key needs."""


class Arguments(BaseModel):
    """What a model may give to a tool; anything else is refused, a scope above all."""

    model_config = ConfigDict(extra="forbid")


class Answer(BaseModel):
    """What a tool gives as data; fields without a value are left out."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a call.

    Attributes:
        data: For programs.
        texts: For the model; all that was stored is escaped in them.
    """

    data: Answer
    texts: tuple[str, ...]


A = TypeVar("A", bound=Arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool(Generic[A]):
    """One tool.

    Attributes:
        name: As a model calls it.
        title: As people see it.
        use: What it does, and when to use it.
        effect: What a call does to memory.
        arguments: What it takes.
        answer: What it gives.
        run: Does it, in the scope of the handle.
    """

    name: str
    title: str
    use: str
    effect: Effect
    arguments: type[A]
    answer: type[Answer]
    run: Callable[[Memory, A], Answered]


AnyTool = Tool[Any]
