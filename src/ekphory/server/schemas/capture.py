"""What is captured, on the wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ekphory.capture import CaptureReport
from ekphory.models.captures import EntityKind, MessageClass
from ekphory.server.schemas.names import InProject, Moment
from ekphory.service.episodes import Uids
from ekphory.service.handles import Place
from ekphory.types import MemoryType

_MOST_MESSAGES = 10_000


class SaidMessage(BaseModel):
    """One message of a dialogue."""

    role: Literal["user", "assistant", "tool", "system"] = "user"
    content: str | list[dict[str, Any]]
    name: str | None = None
    at: Moment | None = None


class Capture(InProject):
    """A dialogue, of which what is worth remembering is kept."""

    messages: Annotated[list[SaidMessage], Field(max_length=_MOST_MESSAGES, fail_fast=True)]
    session: str | None = None
    source: str | None = None
    labels: Annotated[tuple[str, ...], Field(max_length=100)] = ()
    redact: bool = True
    since: Annotated[
        int, Field(ge=0, description="So many messages were captured before; they are context.")
    ] = 0


class ShownEntity(BaseModel):
    """A named thing."""

    model_config = ConfigDict(from_attributes=True)

    text: str
    kind: EntityKind


class ShownCaptured(BaseModel):
    """One memory that was made of messages."""

    uid: str
    text: str
    class_: MessageClass
    type: MemoryType
    importance: float
    entities: list[ShownEntity]
    labels: list[str]
    evidence: list[int] = Field(description="The messages that it is made of, from 0.")


class CaptureAnswer(BaseModel):
    """What became of messages, each named by its place from 0."""

    kept: list[ShownCaptured]
    dropped: list[int]
    redactions: int
    steering: list[int]


def show_capture(report: CaptureReport, place: Place, uids: Uids) -> CaptureAnswer:
    """Return what was captured with the memories' ids as the project shows them."""
    shown = uids.shown(place, [each.id for each in report.kept])
    return CaptureAnswer(
        kept=[
            ShownCaptured(
                uid=uid,
                text=each.text,
                class_=each.class_,
                type=each.type,
                importance=each.importance,
                entities=[ShownEntity.model_validate(entity) for entity in each.entities],
                labels=list(each.labels),
                evidence=list(each.evidence),
            )
            for each, uid in zip(report.kept, shown, strict=True)
        ],
        dropped=list(report.dropped),
        redactions=report.redactions,
        steering=list(report.steering),
    )


def read_said(messages: Sequence[SaidMessage]) -> list[dict[str, Any]]:
    """Return messages in the form that a capture takes."""
    return [each.model_dump(exclude_none=True) for each in messages]
