"""The tool `remember`: keep one text."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ekphory.mcp_server.tool import Answer, Answered, Arguments, Tool
from ekphory.memory import Memory
from ekphory.types import MemoryType, Scalar


class Remember(Arguments):
    """A memory to keep."""

    text: Annotated[
        str,
        Field(description="One fact or event, in a sentence that is understood by itself later."),
    ]
    type: Annotated[
        MemoryType | None,
        Field(
            description="episodic: it happened. semantic: it is so. procedural: how it is done. "
            "Predicted where it is not given."
        ),
    ] = None
    importance: Annotated[
        float | None, Field(description="0 to 1; predicted where it is not given.")
    ] = None
    at: Annotated[
        str | None, Field(description="When it happened, ISO 8601; now where it is not given.")
    ] = None
    expires_at: Annotated[
        str | None, Field(description="From then on it is not recalled, ISO 8601.")
    ] = None
    producer: Annotated[str | None, Field(description="Who said it.")] = None
    source: Annotated[str | None, Field(description="Where it comes from, such as a URL.")] = None
    id: Annotated[
        str | None, Field(description="An id of your own; one is made where it is not given.")
    ] = None
    metadata: Annotated[
        dict[str, Scalar] | None,
        Field(description="Values that a filter can ask for, as metadata.key."),
    ] = None


class Remembered(Answer):
    """What became of it."""

    status: Literal["added", "already there", "nothing new"]
    id: str | None = None


def _run(memory: Memory, given: Remember) -> Answered:
    report = memory.add(
        given.text,
        id=given.id,
        at=given.at,
        producer=given.producer,
        type=given.type,
        importance=given.importance,
        expires_at=given.expires_at,
        source=given.source,
        metadata=given.metadata,
    )
    if not report.ids:
        text = "Nothing new: the text holds only what was recalled."
        return Answered(Remembered(status="nothing new"), (text,))
    status: Literal["added", "already there"] = "added" if report.added else "already there"
    said = "Remembered" if report.added else "Already remembered"
    return Answered(Remembered(status=status, id=report.ids[0]), (f"{said}.",))


REMEMBER = Tool(
    name="remember",
    title="Remember",
    use="Keep something for later conversations. Use it as soon as the user states a preference, "
    "a fact about themselves or their work, a decision, a plan, a correction or a result that "
    "will matter again, and whenever they ask you to remember. One fact a call. Not for what "
    "matters only in this conversation, and never for passwords or keys. It is on disk when the "
    "call returns; the same text is not kept twice. If it replaces an older memory, use update.",
    effect="adds",
    arguments=Remember,
    answer=Remembered,
    run=_run,
)
