"""The trace of an agent session: its events, and `retrieval_trace` as MemMachine names it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, TypeVar

from ekphory.types import to_plain_data

# The events of an agent session: typed, in order, and the only record of what it did.

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
        reason_code: Why, as a word: `single`, `answered`, `parallel`, `chain`, `several`, `model`.
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

    @property
    def memory_id(self) -> str:
        """The memory that the hop leads to: the first of those that state it; empty for none."""
        return next(iter(self.memory_ids), "")

    @property
    def probability(self) -> float:
        """The `confidence`, under the name that hits use."""
        return self.confidence

    @property
    def line(self) -> str:
        """The summary on one line, as MemMachine writes it."""
        return (
            f"[StageResult] Query: {self.query} | Answer: {self.answer} | "
            f"Confidence: {self.confidence:.2f} | Reason: {self.reason}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, under MemMachine's names."""
        return {
            "query": self.query,
            "stage_result": self.answer,
            "confidence_score": self.confidence,
            "reason_note": self.reason,
            "memory_ids": list(self.memory_ids),
        }


StageResult = HopResolved
"""What MemMachine calls it."""


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
        """Return the event as plain data: MemMachine's four fields, and those of its kind."""
        return {
            "step": self.step,
            "actor": self.actor,
            "event_type": self.body.kind,
            "detail": _detail(self.body),
            "milliseconds": round(self.milliseconds, 3),
            "data": to_plain_data(self.body),
        }


def _detail(body: EventBody) -> str:
    """Return the fields in words that are short: `name=value; name=value`."""
    shown = ((entry.name, getattr(body, entry.name)) for entry in fields(body))
    return "; ".join(f"{name}={_short(value)}" for name, value in shown)


def _short(value: object) -> str:
    if isinstance(value, tuple):
        return str(len(value))
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    return text if len(text) <= 200 else f"{text[:199]}…"


Listener = Callable[[AgentEvent], None]
"""Is told of every event when it happens."""


@dataclass(slots=True)
class EventLog:
    """The events of one session, in order.

    Attributes:
        listener: Is told of every event; None for nobody.
        events: What happened so far.
        step: How many searches have been asked for.
    """

    listener: Listener | None = None
    events: list[AgentEvent] = field(default_factory=list)
    step: int = 0
    _started: float = field(default_factory=time.perf_counter)

    def add(self, body: EventBody, *, actor: str = TOP_LEVEL) -> None:
        """Append an event and tell the listener."""
        event = AgentEvent(self.step, self.milliseconds, actor, body)
        self.events.append(event)
        if self.listener is not None:
            self.listener(event)

    @property
    def milliseconds(self) -> float:
        """Time since the session began."""
        return (time.perf_counter() - self._started) * 1000


def json_lines(events: Iterable[AgentEvent]) -> Iterator[str]:
    """Return each event as a line of JSON."""
    return (json.dumps(event.to_dict()) for event in events)


# `retrieval_trace`: what an agent search did, under the names that MemMachine gives it.

Body = TypeVar("Body", bound=EventBody)

AGENT = "RetrievalAgent"
TOOL = "memmachine_search"
StageResults = Literal["none", "trace", "memory"]
"""Whether the hops' summaries are left out, told in the trace, or lines of the context too."""
CONFIDENT = 0.9
"""Probability from which a summary is given as a line of the context."""

_AGENT_NAMES: dict[Route, str] = {
    "memmachine_search": "MemMachineSearch",
    "coq": "ChainOfQueryAgent",
}


@dataclass(frozen=True, slots=True)
class RetrievalTrace:
    """What one session of the agent did; everything is read from its events.

    Attributes:
        events: All events, in order.
        stage_results_wanted: Whether `to_dict` tells the hops' summaries.
    """

    events: tuple[AgentEvent, ...]
    stage_results_wanted: StageResults = "none"

    @property
    def hops(self) -> tuple[StageResult, ...]:
        """The chain of evidence in order, thread after thread."""
        return tuple(sorted(self._all(HopResolved), key=lambda hop: (hop.branch, hop.hop)))

    @property
    def selected_agent(self) -> Route:
        """`memmachine_search` for one lookup, `coq` where hops were resolved."""
        return self._last(RouteChosen).route if self._all(RouteChosen) else "memmachine_search"

    @property
    def selected_agent_name(self) -> str:
        """The same in MemMachine's other spelling."""
        return _AGENT_NAMES[self.selected_agent]

    @property
    def memory_search_called(self) -> int:
        """How many searches were made."""
        return sum(call.status == "success" for call in self._all(ToolReturned))

    @property
    def orchestrator_step_count(self) -> int:
        """How many searches were asked for."""
        return self.events[-1].step if self.events else 0

    @property
    def fallback_trigger_reason(self) -> str | None:
        """Why the session fell back to plain search; None where it did not."""
        fallen = self._all(FellBack)
        return fallen[-1].reason if fallen else None

    @property
    def confidence_score(self) -> float | None:
        """Probability in [0, 1] that the chain is right; None where nobody said."""
        return self._ending.confidence

    @property
    def is_doubtful(self) -> bool:
        """Whether the evidence is not held to be enough; False where nobody said."""
        return self.confidence_score is not None and not self._ending.sufficient

    @property
    def chain_probability(self) -> float | None:
        """The same where memories were followed; None after one lookup."""
        return self.confidence_score if self._all(HopResolved) else None

    @property
    def provider(self) -> str:
        """Who decided on the queries."""
        return self._last(SessionStarted).provider

    @property
    def milliseconds(self) -> float:
        """How long the session took."""
        return self.events[-1].milliseconds if self.events else 0.0

    @property
    def stage_result_memory_returned(self) -> bool:
        """Whether confident summaries are given as lines of the context."""
        return self.stage_results_wanted == "memory" and any(
            hop.answer and hop.confidence >= CONFIDENT for hop in self.hops
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the trace as plain data; what is not known is left out, but for the last."""
        shown = {**self._route(), **self._orchestrator(), **self._counts()}
        shown["hops"] = [
            {"memory_id": hop.memory_id, "probability": hop.probability} for hop in self.hops
        ]
        if self.stage_results_wanted != "none":
            shown["stage_results"] = [hop.to_dict() for hop in self.hops]
            shown["stage_result_memory_returned"] = self.stage_result_memory_returned
        known = {name: value for name, value in shown.items() if value is not None}
        return {**known, "chain_probability": self.chain_probability}

    def _route(self) -> dict[str, Any]:
        chosen = self._all(RouteChosen)
        return {
            "agent": AGENT,
            "route": AGENT,
            "provider": self.provider,
            "selected_route": self.selected_agent,
            "selected_agent": self.selected_agent,
            "selected_agent_name": self.selected_agent_name,
            "confidence_score": self.confidence_score,
            "reason_code": chosen[-1].reason_code if chosen else None,
            "reason_note": chosen[-1].reason_note if chosen else None,
            "fallback_trigger_reason": self.fallback_trigger_reason,
        }

    def _orchestrator(self) -> dict[str, Any]:
        calls, runs = self._tool_calls(), self._sub_agent_runs()
        episodes = {each for call in self._all(ToolReturned) for each in call.memory_ids}
        completed = self._ending.completed
        agents = [run["agent_name"] for run in runs]
        return {
            "orchestrator_step_count": self.orchestrator_step_count,
            "orchestrator_event_count": len(self.events),
            "orchestrator_tool_call_count": len(calls),
            "orchestrator_sub_agent_count": len(runs),
            "orchestrator_episode_count": len(episodes),
            "orchestrator_completed": completed,
            "orchestrator_state_snapshot": (
                f"step={self.orchestrator_step_count}; events={len(self.events)}; "
                f"tool_calls={len(calls)}; sub_agents={agents}; episodes={len(episodes)}; "
                f"completed={completed}"
            ),
            "orchestrator_final_response": self._ending.response,
            "orchestrator_trace": {
                "events": [event.to_dict() for event in self.events],
                "tool_calls": calls,
                "sub_agent_runs": runs,
            },
            "orchestrator_sub_agent_runs": runs,
        }

    def _counts(self) -> dict[str, Any]:
        answers = self._all(ModelAnswered)
        asked = sum(answer.attempts for answer in answers)
        received = sum(answer.input_tokens for answer in answers)
        written = sum(answer.output_tokens for answer in answers)
        ended = self._all(BranchEnded)
        return {
            "memory_search_called": self.memory_search_called,
            "top_level_session_invocation_count": 1,
            "top_level_session_turn_count": len(answers),
            "top_level_llm_call_count": asked,
            "top_level_input_token": received,
            "top_level_output_token": written,
            "llm_call_count": asked,
            "input_token": received,
            "output_token": written,
            # The choice of the way is made within the session, by no call of its own.
            "tool_select_llm_call_count": 0,
            "tool_select_input_token": 0,
            "tool_select_output_token": 0,
            **_branch_counts(ended),
            "branch_retry_count": sum(branch.retries for branch in ended)
            + len(self._all(ModelRetried)),
            "rerank_applied": self._ending.rerank_applied,
            "final_episode_count": self._ending.memories,
        }

    def _tool_calls(self, actor: str | None = None) -> list[dict[str, Any]]:
        return [
            {
                "step": event.step,
                "tool_name": TOOL,
                "arguments": {"query": event.body.query},
                "status": event.body.status,
                "result_summary": event.body.summary,
                "raw_result": {
                    "episodes_returned": len(event.body.memory_ids),
                    "memory_ids": list(event.body.memory_ids),
                    "wall_time_seconds": event.body.milliseconds / 1000,
                },
            }
            for event in self.events
            if isinstance(event.body, ToolReturned) and actor in (None, event.actor)
        ]

    def _sub_agent_runs(self) -> list[dict[str, Any]]:
        """Return one run, which resolves all threads; none for a single lookup."""
        ended = self._all(BranchEnded)
        if not ended:
            return []
        counts = _branch_counts(ended)
        run = {
            "step": self.orchestrator_step_count,
            "agent_name": BRANCH,
            "query": self._last(SessionStarted).query,
            "status": "failed" if counts["branch_failure_count"] else "success",
            "fallback_trigger_reason": self.fallback_trigger_reason,
            "tool_calls": self._tool_calls(BRANCH),
            "llm_call_count": 0,
            "llm_input_tokens": 0,
            "llm_output_tokens": 0,
            "llm_time": 0.0,
            "episodes_returned": sum(branch.memories for branch in ended),
            **counts,
            "branch_retry_count": sum(branch.retries for branch in ended),
            "normalization_warnings": [],
        }
        return [run]

    @property
    def _ending(self) -> SessionEnded:
        return self._last(SessionEnded)

    def _all(self, kind: type[Body]) -> list[Body]:
        return [event.body for event in self.events if isinstance(event.body, kind)]

    def _last(self, kind: type[Body]) -> Body:
        return self._all(kind)[-1]


def _branch_counts(ended: Sequence[BranchEnded]) -> dict[str, int]:
    won = sum(branch.status == "success" for branch in ended)
    return {
        "branch_total": len(ended),
        "branch_success_count": won,
        "branch_failure_count": len(ended) - won,
    }
