"""The tool `update`: replace fields of one memory."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ekphory.mcp_server.tool import Answer, Answered, Arguments, Tool
from ekphory.memory import Memory
from ekphory.types import MemoryType, Scalar


class Update(Arguments):
    """What to change; fields that are not given stay."""

    id: Annotated[str, Field(description="The memory's id, as recall or list gave it.")]
    text: Annotated[str | None, Field(description="The whole new text.")] = None
    type: MemoryType | None = None
    importance: Annotated[float | None, Field(description="0 to 1.")] = None
    at: Annotated[str | None, Field(description="When it happened, ISO 8601.")] = None
    expires_at: Annotated[
        str | None, Field(description="From then on it is not recalled, ISO 8601.")
    ] = None
    metadata: Annotated[
        dict[str, Scalar] | None, Field(description="Replaces all of the metadata.")
    ] = None


class Updated(Answer):
    """Which memory has changed, and under which id its earlier version is kept."""

    id: str
    supersedes: str | None = None


def _run(memory: Memory, given: Update) -> Answered:
    record = memory.update(
        given.id,
        text=given.text,
        at=given.at,
        type=given.type,
        importance=given.importance,
        expires_at=given.expires_at,
        metadata=given.metadata,
    )
    return Answered(
        Updated(id=record.id, supersedes=record.supersedes),
        ("Updated; the earlier version is kept as history.",),
    )


UPDATE = Tool(
    name="update",
    title="Update",
    use="Correct or bring up to date one memory. Use it when something that is remembered has "
    "changed or was wrong, such as a new address, rather than remembering a second version. Find "
    "the id with recall or list first. The earlier version is kept; explain shows it.",
    effect="changes",
    arguments=Update,
    answer=Updated,
    run=_run,
)
