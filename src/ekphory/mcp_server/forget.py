"""The tool `forget`: one memory by its id, or all that fulfil a condition."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ekphory.errors import InvalidInput
from ekphory.mcp_server.asking import FILTER
from ekphory.mcp_server.tool import Answer, Answered, Arguments, Tool
from ekphory.memory import Memory


class Forget(Arguments):
    """What to forget."""

    id: Annotated[str | None, Field(description="The memory's id.")] = None
    filter: Annotated[str | None, Field(description=FILTER)] = None
    expected_count: Annotated[
        int | None,
        Field(
            description="With a filter: how many memories it should match, as the total of list "
            "says. If it matches another number, nothing is forgotten."
        ),
    ] = None
    purge: Annotated[
        bool, Field(description="Leave no byte of the text on disk; takes longer.")
    ] = False


class Forgotten(Answer):
    """What is gone."""

    forgotten: int
    purged: bool


def _run(memory: Memory, given: Forget) -> Answered:
    if given.filter is not None and given.id is None:
        _check_expected(memory.count(filter=given.filter), given.expected_count)
    count = memory.forget(given.id, filter=given.filter, purge=given.purge)
    noun = "memory" if count == 1 else "memories"
    wiped = ", and the text is wiped from the disk" if given.purge else ""
    return Answered(
        Forgotten(forgotten=count, purged=given.purge), (f"{count:,} {noun} forgotten{wiped}.",)
    )


def _check_expected(count: int, expected: int | None) -> None:
    if count != expected:
        raise InvalidInput(
            "expected_count",
            expected,
            f"this filter matches {count:,}",
            "Look at them with list, and give their number if all are to be forgotten",
        )


FORGET = Tool(
    name="forget",
    title="Forget",
    use="Forget a memory with its history. Use it only when the user asks for that, or when a "
    "memory is wrong and nothing replaces it; to correct one, use update. Find the id with "
    "recall or list first. With purge no byte of the text is left on disk: use it when the user "
    "wants private data gone.",
    effect="forgets",
    arguments=Forget,
    answer=Forgotten,
    run=_run,
)
