"""The events of an agent session: typed, in order, and the only record of what it did.

The trace of a search, the lines of `ekphory ask` and the JSON Lines that the inspector reads are
all made from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Literal

from ekphory.agent_trace.plain import plain

Route = Literal["memmachine_search", "coq"]
"""One lookup, or the branch that resolves hop by hop."""
CallStatus = Literal["success", "refused", "failed"]
RunStatus = Literal["success", "failed"]

TOP_LEVEL = "top-level"
BRANCH = "coq"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStarted:
    """A session began.

    Attributes:
        session_id: Names the session.
        provider: Who decides on the next query: `local`, `openai` or `anthropic`.
        query: The question as asked.
        most_calls: How many searches it may make.
        timeout_seconds: How long it may take.
    """

    kind: ClassVar[str] = "session_started"
    session_id: str
    provider: str
    query: str
    most_calls: int
    timeout_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteChosen:
    """It was decided how the question is looked up.

    Attributes:
        route: The way.
        reason_code: Why, as a word: `single`, `parallel`, `chain`, `open chain`, `model`.
        reason_note: Why, in words.
        branches: How many threads the question has.
    """

    kind: ClassVar[str] = "route_chosen"
    route: Route
    reason_code: str
    reason_note: str
    branches: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReturned:
    """A call of the search tool ended.

    Attributes:
        call: Its number in the session, from 1.
        query: What was searched.
        status: `refused` for what may not be searched, as a query that was searched already.
        summary: What came of it, in words.
        memory_ids: Ids of the memories found, best first.
        milliseconds: How long it took.
    """

    kind: ClassVar[str] = "memmachine_search_completed"
    call: int
    query: str
    status: CallStatus
    summary: str
    memory_ids: tuple[str, ...] = ()
    milliseconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HopResolved:
    """A hop of the chain was resolved.

    Attributes:
        branch: Number of the thread, from 1.
        hop: Its number in the thread, from 1.
        query: What was looked for.
        answer: What was found; empty where only evidence was found.
        confidence: Probability in [0, 1] that it is right.
        reason: What speaks for it.
        memory_ids: The memories that state it.
    """

    kind: ClassVar[str] = "hop_resolved"
    branch: int
    hop: int
    query: str
    answer: str
    confidence: float
    reason: str
    memory_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchStarted:
    """A thread of the question was taken up."""

    kind: ClassVar[str] = "sub_agent_started"
    branch: int
    query: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchEnded:
    """A thread of the question was ended.

    Attributes:
        branch: Its number.
        query: As it was started.
        status: Whether it was resolved.
        memories: How many memories it found.
        retries: How often it went back to another lead.
    """

    kind: ClassVar[str] = "sub_agent_completed"
    branch: int
    query: str
    status: RunStatus
    memories: int
    retries: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswered:
    """A language model gave its next message.

    Attributes:
        turn: Number of the message in the session, from 1.
        attempts: How often it was asked for it.
        input_tokens, output_tokens: As the service counted them.
        milliseconds: How long it took, repeats included.
    """

    kind: ClassVar[str] = "model_answered"
    turn: int
    attempts: int
    input_tokens: int
    output_tokens: int
    milliseconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRetried:
    """A language model is asked again after a fault.

    Attributes:
        turn: Number of the message.
        attempt: Number of the attempt that failed, from 1.
        wait_seconds: How long is waited before the next.
        problem: What went wrong.
    """

    kind: ClassVar[str] = "model_retried"
    turn: int
    attempt: int
    wait_seconds: float
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FellBack:
    """The session could not go on; plain search and the evidence so far are the result.

    Attributes:
        reason: MemMachine's name for it, such as `global_timeout`.
        problem: What went wrong, in words.
    """

    kind: ClassVar[str] = "fallback_applied"
    reason: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnded:
    """A session ended.

    Attributes:
        completed: Whether it ended as it should, without falling back.
        response: The closing words; of a language model, its answer.
        sufficient: Whether the evidence is held to be enough.
        confidence: Probability in [0, 1] that the chain is right; None where nobody said.
        memories: How many memories the result holds.
        rerank_applied: Whether a reranker ordered them for the question.
    """

    kind: ClassVar[str] = "orchestration_completed"
    completed: bool
    response: str
    sufficient: bool
    confidence: float | None
    memories: int
    rerank_applied: bool


EventBody = (
    SessionStarted
    | RouteChosen
    | ToolReturned
    | HopResolved
    | BranchStarted
    | BranchEnded
    | ModelAnswered
    | ModelRetried
    | FellBack
    | SessionEnded
)


@dataclass(frozen=True, slots=True)
class AgentEvent:
    """One event in its place.

    Attributes:
        step: How many searches had been asked for when it happened.
        milliseconds: Time since the session began.
        actor: `top-level` or `coq`.
        body: What happened.
    """

    step: int
    milliseconds: float
    actor: str
    body: EventBody

    def to_dict(self) -> dict[str, Any]:
        """Give the event as plain data: MemMachine's four fields, and those of its kind."""
        return {
            "step": self.step,
            "actor": self.actor,
            "event_type": self.body.kind,
            "detail": _detail(self.body),
            "milliseconds": round(self.milliseconds, 3),
            "data": plain(asdict(self.body)),
        }


_BODIES: Mapping[str, type[EventBody]] = {
    body.kind: body
    for body in (
        SessionStarted,
        RouteChosen,
        ToolReturned,
        HopResolved,
        BranchStarted,
        BranchEnded,
        ModelAnswered,
        ModelRetried,
        FellBack,
        SessionEnded,
    )
}


def event_from_dict(row: Mapping[str, Any]) -> AgentEvent:
    """Read what `to_dict` gave.

    Raises:
        KeyError: A field is missing, or the kind is not known.
    """
    body: Any = _BODIES[row["event_type"]]
    given = {name: _frozen(value) for name, value in row["data"].items()}
    return AgentEvent(row["step"], row["milliseconds"], row["actor"], body(**given))


def _frozen(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _detail(body: EventBody) -> str:
    """Give the fields in words that are short: `name=value; name=value`."""
    shown = ((entry.name, getattr(body, entry.name)) for entry in fields(body))
    return "; ".join(f"{name}={_short(value)}" for name, value in shown)


def _short(value: object) -> str:
    if isinstance(value, tuple):
        return str(len(value))
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    return text if len(text) <= 200 else f"{text[:199]}…"
