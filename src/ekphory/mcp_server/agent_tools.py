"""The tools for agents beside the six: what changed, pools, and whole dialogues."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from ekphory.errors import InvalidInput
from ekphory.filters.tree import Comparison, In
from ekphory.filters.tree import Field as NamedField
from ekphory.mcp_server import tool
from ekphory.mcp_server.memory_tools import GivenMemory, find_taken_ids
from ekphory.memory import Memory
from ekphory.models.captures import MessageClass
from ekphory.retrieval.stages.rerank import GateStatus
from ekphory.revise import ProfileEntry
from ekphory.types import Revision, RevisionKind

_MOST_MESSAGES = 1_000
Most = Annotated[int, Field(ge=1, le=tool.MOST_SHOWN, description="How many at most.")]


def _in_words(revision: Revision) -> str:
    sure = f"{revision.probability:.2f}"
    return f"{revision.newer} {revision.kind} {revision.older} ({sure}, revision {revision.id})"


# The tool `supersede`.


class SupersedeArguments(tool.Arguments):
    """Which memory takes the place of which."""

    old: str
    """Id of the memory that holds no more."""

    by: str
    """Id of the one that takes its place."""

    kind: RevisionKind = "replaces"
    at: str | None = None
    """Since when, ISO 8601; since the newer memory where it is not given."""


class Superseded(tool.McpAnswer):
    """The decision."""

    revision: Revision


def _supersede(memory: Memory, given: SupersedeArguments) -> tool.Answered:
    made = memory.supersede(given.old, by=given.by, kind=given.kind, at=given.at)
    return tool.Answered(Superseded(revision=made), (_in_words(made),))


# The tool `unsupersede`.


class UnsupersedeArguments(tool.Arguments):
    """What to take back."""

    revision: str | None = None
    """Id of the decision."""

    batch: str | None = None
    """All of this batch instead."""


class TakenBack(tool.McpAnswer):
    """How many decisions."""

    undone: int


def _unsupersede(memory: Memory, given: UnsupersedeArguments) -> tool.Answered:
    undone = memory.unsupersede(revision=given.revision, batch=given.batch)
    return tool.Answered(TakenBack(undone=undone), (f"{undone:,} taken back.",))


# The tool `conflicts`.


class ConflictsArguments(tool.Arguments):
    """How many."""

    limit: Most = 20


class Conflicts(tool.McpAnswer):
    """Decisions that wait, the newest first."""

    conflicts: list[Revision]


def _conflicts(memory: Memory, given: ConflictsArguments) -> tool.Answered:
    found = memory.conflicts(limit=given.limit)
    lines = [_in_words(each) for each in found] or ["No conflicts."]
    return tool.Answered(Conflicts(conflicts=list(found)), tuple(lines))


# The tool `timeline`.


class TimelineArguments(tool.Arguments):
    """Which topic."""

    topic: str
    """Words that name it, such as: where the user lives."""

    k: Most = 20


class ToolState(tool.ToolMemory):
    """One state of the topic."""

    since: datetime
    until: datetime | None = None
    """Null where it holds still."""

    revision: str | None = None


class Timeline(tool.McpAnswer):
    """The states, the earliest first."""

    states: list[ToolState]


def _timeline(memory: Memory, given: TimelineArguments) -> tool.Answered:
    told = memory.timeline(given.topic, k=given.k)
    states = [each for each in told if not tool.is_steering(each.memory.text)]
    spans = [
        f"Index {place}: {state.since:%Y-%m-%d} to "
        + ("now" if state.until is None else f"{state.until:%Y-%m-%d}")
        for place, state in enumerate(states, start=1)
    ]
    shown = [
        ToolState(
            **tool.show_memory(state.memory).model_dump(),
            since=state.since,
            until=state.until,
            revision=state.revision,
        )
        for state in states
    ]
    return tool.Answered(
        Timeline(states=shown), (tool.format_records(state.memory for state in states), *spans)
    )


# The tool `profile`.


class ProfileArguments(tool.Arguments):
    """Whose."""

    user: str | None = None
    """Null for all that is seen here."""

    k: Most = 50


class Profile(tool.McpAnswer):
    """Lasting facts and preferences that hold, the most important first."""

    profile: list[ProfileEntry]


def _profile(memory: Memory, given: ProfileArguments) -> tool.Answered:
    found = memory.profile(user=given.user, k=given.k)
    facts = [each for each in found if not tool.is_steering(each.text)]
    latest = tuple(each.evidence[0] for each in facts)
    told = memory.list(filter=In(NamedField("id"), latest), limit=tool.MOST_SHOWN) if latest else []
    return tool.Answered(
        Profile(profile=facts), (tool.format_records(told), f"{len(facts):,} lasting facts.")
    )


class MadeMemory(tool.McpAnswer):
    """The memory that was made."""

    id: str


# The tool `learn_mistake`.


class MistakeArguments(tool.Arguments):
    """What went wrong, and what to do instead."""

    what: str
    """What went wrong, in one or two sentences."""

    fix: str
    """How it is put right, or avoided the next time."""

    shared: bool = False
    """Whether all agents of the project are to know it."""


def _learn_mistake(memory: Memory, given: MistakeArguments) -> tool.Answered:
    made = memory.learn_mistake(given.what, fix=given.fix, shared=given.shared)
    return tool.Answered(MadeMemory(id=made), (f"Remembered as {made}.",))


# The tool `promote`.


class PromoteArguments(tool.Arguments):
    """Which memory, and where it is to be seen."""

    id: str
    """Id of the memory; recall and list tell it."""

    # Rules enter every later prompt, and so only people add them.
    pool: Literal["shared_knowledge", "shared_mistakes"] = "shared_knowledge"


def _promote(memory: Memory, given: PromoteArguments) -> tool.Answered:
    made = memory.promote(given.id, pool=given.pool)
    return tool.Answered(MadeMemory(id=made), (f"All agents of the project find it as {made}.",))


# The tool `capture`.


class ToolMessage(tool.Arguments):
    """One message of a dialogue."""

    role: Literal["user", "assistant", "tool"] = "user"
    content: str
    at: str | None = None
    """ISO 8601."""


class CaptureArguments(tool.Arguments):
    """A dialogue."""

    messages: Annotated[list[ToolMessage], Field(min_length=1, max_length=_MOST_MESSAGES)]
    session: str | None = None
    labels: list[str] = Field(default_factory=list)
    """Topics; each memory gets those that fit it, also one that is there already."""


class CapturedMemory(tool.McpAnswer):
    """One memory that was made of messages."""

    id: str
    kind: MessageClass
    labels: list[str]
    evidence: list[int]


class CapturedMemories(tool.McpAnswer):
    """What was kept, and how many secrets were cut out."""

    kept: list[CapturedMemory]
    redactions: int


def _capture(memory: Memory, given: CaptureArguments) -> tool.Answered:
    messages = [each.model_dump(exclude_none=True) for each in given.messages]
    report = memory.capture(messages, session=given.session, labels=given.labels)
    kept = [
        CapturedMemory(
            id=each.id, kind=each.class_, labels=list(each.labels), evidence=list(each.evidence)
        )
        for each in report.kept
    ]
    told = f"{len(kept):,} memories of {len(messages):,} messages, {report.added:,} of them new."
    return tool.Answered(CapturedMemories(kept=kept, redactions=report.redactions), (told,))


# The tool `related`.


class RelatedArguments(tool.Arguments):
    """To which memory, or from which file."""

    id: str | None = None
    """Memories that are like this one."""

    path: str | None = None
    """Memories from this file instead."""

    k: Annotated[int, Field(ge=1, le=tool.MOST_SHOWN)] = 10


class Related(tool.McpAnswer):
    """Memories, the nearest or the newest first."""

    memories: list[tool.ToolMemory]


def _related(memory: Memory, given: RelatedArguments) -> tool.Answered:
    if given.path is not None and given.id is not None:
        raise InvalidInput("path", given.path, "stands beside an id", "Give an id or a path")
    if given.path is not None:
        found = memory.list(filter=Comparison(NamedField("path"), "eq", given.path), limit=given.k)
    elif given.id is not None:
        found = memory.related(given.id, k=given.k)
    else:
        raise InvalidInput("id", None, "names nothing", "Name a memory by id, or a file by path")
    kept = [record for record in found if not tool.is_steering(record.text)]
    return tool.Answered(
        Related(memories=list(map(tool.show_memory, kept))), (tool.format_records(kept),)
    )


# The tool `gate_status`.


class GateStatusArguments(tool.Arguments):
    """Of which preset."""

    preset: str | None = None
    """Its name; null for the one that recall uses."""


class GateAnswer(tool.McpAnswer):
    """When the gate lets the reranker run, and what it decided."""

    status: GateStatus


def _gate_status(memory: Memory, given: GateStatusArguments) -> tool.Answered:
    status = memory.gate_status(preset=given.preset)
    return tool.Answered(GateAnswer(status=status), tuple(status.in_words()))


# The tool `remember_many`: keep up to a hundred at once.


class RememberMany(tool.Arguments):
    """Memories to keep."""

    memories: Annotated[list[GivenMemory], Field(min_length=1, max_length=100)]
    redact: tool.Redact = False


class RefusedMemory(tool.McpAnswer):
    """One that was not kept."""

    index: int
    """Its place among those given, from 0."""

    problem: str


class RememberedMany(tool.McpAnswer):
    """What became of them."""

    added: int
    already_there: int
    refused: list[RefusedMemory]


def _remember_many(memory: Memory, given: RememberMany) -> tool.Answered:
    records = [each.model_dump(exclude_none=True) for each in given.memories]
    report = memory.add_many(records, redact=given.redact)
    problems = {each.index: each.message for each in report.failed}
    if report.skipped:
        taken = find_taken_ids(memory, given.memories, redact=given.redact)
        problems = {place: str(error) for place, error in taken.items()} | problems
    refused = [RefusedMemory(index=place, problem=problems[place]) for place in sorted(problems)]
    there = len(records) - report.added - len(refused)
    data = RememberedMany(added=report.added, already_there=there, refused=refused)
    told = f"{report.added} remembered, {there} already there, {len(refused)} refused."
    return tool.Answered(data, (told,))


AGENT_TOOLS: tuple[tool.AnyTool, ...] = (
    tool.make_tool("supersede", SupersedeArguments, _supersede, Superseded, effect="changes"),
    tool.make_tool("unsupersede", UnsupersedeArguments, _unsupersede, TakenBack, effect="changes"),
    tool.make_tool("conflicts", ConflictsArguments, _conflicts, Conflicts),
    tool.make_tool("timeline", TimelineArguments, _timeline, Timeline),
    tool.make_tool("profile", ProfileArguments, _profile, Profile),
    tool.make_tool("learn_mistake", MistakeArguments, _learn_mistake, MadeMemory, effect="adds"),
    tool.make_tool("promote", PromoteArguments, _promote, MadeMemory, effect="adds"),
    tool.make_tool("capture", CaptureArguments, _capture, CapturedMemories, effect="adds"),
    tool.make_tool("related", RelatedArguments, _related, Related),
    tool.make_tool("gate_status", GateStatusArguments, _gate_status, GateAnswer),
    tool.make_tool("remember_many", RememberMany, _remember_many, RememberedMany, effect="adds"),
)
