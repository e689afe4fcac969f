"""What is kept of a dialogue; what supersedes what; timelines and profiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter
from pydantic import BaseModel, Field, model_validator

from ekphory.models.captures import EntityKind, MessageClass
from ekphory.revise import ProfileEntry
from ekphory.server.routes.context import NOT_THERE, REFUSALS, ToRead, ToWrite
from ekphory.server.routes.memories import MOST_RESULTS
from ekphory.server.schemas.names import IdOrEmpty, InProject, Moment, Wire
from ekphory.service.episodes import Uids
from ekphory.service.handles import Place
from ekphory.types import MemoryType, Revision, RevisionKind

# What is captured, on the wire.

_MOST_MESSAGES = 10_000


class SaidMessage(BaseModel):
    """One message of a dialogue."""

    role: Literal["user", "assistant", "tool", "system"] = "user"
    content: str | list[dict[str, Any]]
    name: str | None = None
    at: Moment | None = None


class Capture(InProject):
    """A dialogue, of which what is worth remembering is kept."""

    messages: Annotated[
        list[SaidMessage], Field(min_length=1, max_length=_MOST_MESSAGES, fail_fast=True)
    ]
    session: str | None = None
    source: str | None = None
    labels: Annotated[tuple[str, ...], Field(max_length=100)] = ()
    redact: bool = True
    since: Annotated[int, Field(ge=0)] = 0
    """So many messages were captured before; they are context."""


class ShownEntity(BaseModel):
    """A named thing."""

    text: str
    kind: EntityKind


class ShownCaptured(Wire):
    """One memory that was made of messages."""

    uid: str
    text: str
    class_: MessageClass
    type: MemoryType
    importance: float
    entities: list[ShownEntity]
    labels: list[str]
    evidence: list[int]
    """The messages that it is made of, from 0."""


class CaptureAnswer(BaseModel):
    """What became of messages, each named by its place from 0."""

    kept: list[ShownCaptured]
    dropped: list[int]
    redactions: int
    steering: list[int]
    added: int
    """How many of the memories are new."""


# Revisions, states and profiles on the wire.

_LONGEST_TOPIC = 10_000
_LONGEST_WAIT = 60.0
Limit = Annotated[int, Field(ge=1, le=MOST_RESULTS)]


class Supersede(InProject):
    """Which memory takes the place of which."""

    old: Annotated[IdOrEmpty, Field(min_length=1)]
    """The memory that holds no more."""

    by: Annotated[IdOrEmpty, Field(min_length=1)]
    """The one that takes its place."""

    kind: RevisionKind = "replaces"
    at: Moment | None = None
    """Since when; null for when the newer one happened."""


class Unsupersede(InProject):
    """A decision, or all of a batch."""

    revision: str | None = None
    batch: str | None = None

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if (self.revision is None) == (self.batch is None):
            raise ValueError("give revision or batch, and not both")
        return self


class ListConflicts(InProject):
    """Decisions that wait for somebody to look."""

    scan: bool = False
    """Compare all memories of the project first."""

    limit: Limit = 100


class AskTimeline(InProject):
    """A topic whose states are wanted."""

    topic: Annotated[str, Field(max_length=_LONGEST_TOPIC, examples=["where I live"])]
    k: Limit = 20
    now: Moment | None = None


class AskProfile(InProject):
    """Whose lasting facts are wanted."""

    user: str | None = None
    k: Limit = 50
    now: Moment | None = None


class Settle(InProject):
    """How long to wait."""

    timeout: Annotated[float, Field(ge=0, le=_LONGEST_WAIT)] = 30.0
    """Seconds."""


class ConflictsAnswer(BaseModel):
    """Decisions, the newest first."""

    conflicts: list[Revision]


class UndoneAnswer(BaseModel):
    """How many decisions were taken back."""

    undone: int


class Settled(BaseModel):
    """Whether all that was written is compared with earlier memories."""

    settled: bool


class StateAnswer(BaseModel):
    """One state of a topic."""

    uid: str
    text: str
    since: datetime
    until: datetime | None
    revision: str | None


class TimelineAnswer(BaseModel):
    """The states of a topic, the earliest first."""

    states: list[StateAnswer]


class ProfileAnswer(BaseModel):
    """Lasting facts and preferences, the most important first."""

    profile: list[ProfileEntry]


def show_revisions(revisions: Sequence[Revision], place: Place, uids: Uids) -> list[Revision]:
    """Return decisions with the memories' ids as the project shows them."""
    shown = uids.shown(place, [each for pair in revisions for each in (pair.older, pair.newer)])
    return [
        replace(each, older=older, newer=newer)
        for each, older, newer in zip(revisions, shown[::2], shown[1::2], strict=True)
    ]


# The endpoints.

capture_router = APIRouter(prefix="/api/v2/memories", tags=["Capture"], responses=REFUSALS)


@capture_router.post("/capture")
def capture(request: Capture, session: ToWrite) -> CaptureAnswer:
    """Keep what is worth remembering of messages, without their secrets.

    No language model is asked. Repeating the same request adds nothing.
    """
    place = session.place(request)
    session.service.ensure_project(place)
    with session.service.memory(place) as memory:
        report = memory.capture(
            [each.model_dump(exclude_none=True) for each in request.messages],
            **request.model_dump(include={"session", "source", "labels", "redact", "since"}),
        )
    shown = session.service.uids.shown(place, [each.id for each in report.kept])
    kept = zip(report.kept, shown, strict=True)
    return CaptureAnswer(
        kept=[ShownCaptured(uid=uid, **asdict(each)) for each, uid in kept],
        dropped=list(report.dropped),
        redactions=report.redactions,
        steering=list(report.steering),
        added=report.added,
    )


revisions_router = APIRouter(
    prefix="/api/v2/memories", tags=["Revisions"], responses=REFUSALS | NOT_THERE
)


@revisions_router.post("/supersede")
def supersede(request: Supersede, session: ToWrite) -> Revision:
    """Say that one memory takes the place of another; both are kept, and it can be taken back."""
    place = session.place(request)
    old, by = session.service.uids.stored(place, [request.old, request.by])
    with session.service.memory(place) as memory:
        made = memory.supersede(old, by=by, kind=request.kind, at=request.at)
    return show_revisions([made], place, session.service.uids)[0]


@revisions_router.post("/unsupersede")
def unsupersede(request: Unsupersede, session: ToWrite) -> UndoneAnswer:
    """Take back a decision, or all of a batch; or set a conflict aside."""
    with session.memory(request) as memory:
        undone = memory.unsupersede(revision=request.revision, batch=request.batch)
    return UndoneAnswer(undone=undone)


@revisions_router.post("/conflicts")
def list_conflicts(request: ListConflicts, session: ToRead) -> ConflictsAnswer:
    """List what may contradict other memories, where it is not sure enough to act.

    A scan may decide, and so needs the right to write.
    """
    if request.scan:
        session.caller.check_rights("write")
    place = session.place(request)
    with session.service.memory(place) as memory:
        found = memory.conflicts(scan=request.scan, limit=request.limit)
    return ConflictsAnswer(conflicts=show_revisions(found, place, session.service.uids))


@revisions_router.post("/timeline")
def get_timeline(request: AskTimeline, session: ToRead) -> TimelineAnswer:
    """Read the states of a topic in the order in which they held."""
    place = session.place(request)
    with session.service.memory(place) as memory:
        states = memory.timeline(request.topic, k=request.k, now=request.now)
    shown = session.service.uids.shown(place, [state.memory.id for state in states])
    return TimelineAnswer(
        states=[
            StateAnswer(
                uid=uid,
                text=state.memory.text,
                since=state.since,
                until=state.until,
                revision=state.revision,
            )
            for state, uid in zip(states, shown, strict=True)
        ]
    )


@revisions_router.post("/profile")
def get_profile(request: AskProfile, session: ToRead) -> ProfileAnswer:
    """Read the lasting facts and preferences that hold now, each with its evidence."""
    place = session.place(request)
    with session.service.memory(place) as memory:
        entries = memory.profile(user=request.user, k=request.k, now=request.now)
    shown = session.service.uids.shown
    return ProfileAnswer(
        profile=[replace(each, evidence=tuple(shown(place, each.evidence))) for each in entries]
    )


@revisions_router.post("/settle")
def settle(request: Settle, session: ToRead) -> Settled:
    """Wait until all that was written is compared with earlier memories; false if it takes longer.

    A waiting request keeps one of the server's threads.
    """
    place = session.place(request)
    with session.service.memory(place) as memory:
        try:
            memory.settle(request.timeout)
        except TimeoutError:
            return Settled(settled=False)
    return Settled(settled=True)
