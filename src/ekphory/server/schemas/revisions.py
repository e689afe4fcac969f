"""Revisions, states and profiles on the wire."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Self

from pydantic import BaseModel, Field, model_validator

from ekphory.revise import ProfileEntry, State
from ekphory.server.schemas.memories import MOST_RESULTS
from ekphory.server.schemas.names import IdOrEmpty, InProject, Moment
from ekphory.service.episodes import Uids
from ekphory.service.handles import Place
from ekphory.types import Revision, RevisionKind

_LONGEST_TOPIC = 10_000
_LONGEST_WAIT = 60.0
Limit = Annotated[int, Field(ge=1, le=MOST_RESULTS)]


class Supersede(InProject):
    """Which memory takes the place of which."""

    old: Annotated[IdOrEmpty, Field(description="The memory that holds no more.", min_length=1)]
    by: Annotated[IdOrEmpty, Field(description="The one that takes its place.", min_length=1)]
    kind: RevisionKind = "replaces"
    at: Annotated[
        Moment | None, Field(description="Since when; null for when the newer one happened.")
    ] = None


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

    scan: Annotated[bool, Field(description="Compare all memories of the project first.")] = False
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

    timeout: Annotated[float, Field(ge=0, le=_LONGEST_WAIT, description="Seconds.")] = 30.0


class ConflictsAnswer(BaseModel):
    """Decisions, the newest first."""

    conflicts: list[Revision]


class Undone(BaseModel):
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


def show_states(states: Sequence[State], place: Place, uids: Uids) -> list[StateAnswer]:
    """Return states likewise."""
    shown = uids.shown(place, [state.memory.id for state in states])
    return [
        StateAnswer(
            uid=uid,
            text=state.memory.text,
            since=state.since,
            until=state.until,
            revision=state.revision,
        )
        for state, uid in zip(states, shown, strict=True)
    ]


def show_profile(entries: Sequence[ProfileEntry], place: Place, uids: Uids) -> list[ProfileEntry]:
    """Return lasting facts likewise."""
    return [replace(entry, evidence=tuple(uids.shown(place, entry.evidence))) for entry in entries]
