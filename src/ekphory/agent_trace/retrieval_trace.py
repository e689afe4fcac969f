"""`retrieval_trace`: what an agent search did, under the names that MemMachine gives it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeVar

from ekphory.agent_trace.events import (
    BRANCH,
    AgentEvent,
    BranchEnded,
    EventBody,
    FellBack,
    HopResolved,
    ModelAnswered,
    ModelRetried,
    Route,
    RouteChosen,
    SessionEnded,
    SessionStarted,
    ToolReturned,
)
from ekphory.agent_trace.plain import plain

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
class StageResult:
    """What one hop found.

    Attributes:
        query: What was looked for.
        answer: What was found; empty where only evidence was found.
        confidence: Probability in [0, 1] that it is right.
        reason: What speaks for it.
        memory_ids: The memories that state it.
    """

    query: str
    answer: str
    confidence: float
    reason: str
    memory_ids: tuple[str, ...]

    @property
    def line(self) -> str:
        """The summary on one line, as MemMachine writes it."""
        return (
            f"[StageResult] Query: {self.query} | Answer: {self.answer} | "
            f"Confidence: {self.confidence:.2f} | Reason: {self.reason}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Give it as plain data, under MemMachine's names."""
        return {
            "query": self.query,
            "stage_result": self.answer,
            "confidence_score": self.confidence,
            "reason_note": self.reason,
            "memory_ids": list(self.memory_ids),
        }


@dataclass(frozen=True, slots=True)
class ToolCallRecord:
    """One call of the search tool."""

    step: int
    tool_name: str
    arguments: dict[str, Any]
    status: str
    result_summary: str
    raw_result: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubAgentRun:
    """One run of the branch that resolves hop by hop."""

    step: int
    agent_name: str
    query: str
    status: str
    fallback_trigger_reason: str | None
    tool_calls: tuple[ToolCallRecord, ...]
    llm_call_count: int
    llm_input_tokens: int
    llm_output_tokens: int
    llm_time: float
    episodes_returned: int
    branch_total: int
    branch_success_count: int
    branch_failure_count: int
    branch_retry_count: int
    normalization_warnings: tuple[str, ...] = ()


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
        found = sorted(self._all(HopResolved), key=lambda hop: (hop.branch, hop.hop))
        return tuple(
            StageResult(hop.query, hop.answer, hop.confidence, hop.reason, hop.memory_ids)
            for hop in found
        )

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
        """Give the trace as plain data; what is not known is left out."""
        shown = {**self._route(), **self._orchestrator(), **self._counts()}
        if self.stage_results_wanted != "none":
            shown["stage_results"] = [hop.to_dict() for hop in self.hops]
            shown["stage_result_memory_returned"] = self.stage_result_memory_returned
        return {name: value for name, value in shown.items() if value is not None}

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
        told = [plain(asdict(run)) for run in runs]
        return {
            "orchestrator_step_count": self.orchestrator_step_count,
            "orchestrator_event_count": len(self.events),
            "orchestrator_tool_call_count": len(calls),
            "orchestrator_sub_agent_count": len(runs),
            "orchestrator_episode_count": len(self._episodes()),
            "orchestrator_completed": self._ending.completed,
            "orchestrator_state_snapshot": self._snapshot(len(calls), runs),
            "orchestrator_final_response": self._ending.response,
            "orchestrator_trace": {
                "events": [event.to_dict() for event in self.events],
                "tool_calls": [plain(asdict(call)) for call in calls],
                "sub_agent_runs": told,
            },
            "orchestrator_sub_agent_runs": told,
        }

    def _counts(self) -> dict[str, Any]:
        answers = self._all(ModelAnswered)
        asked = sum(answer.attempts for answer in answers)
        received = sum(answer.input_tokens for answer in answers)
        written = sum(answer.output_tokens for answer in answers)
        ended = self._all(BranchEnded)
        won = sum(branch.status == "success" for branch in ended)
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
            "branch_total": len(ended),
            "branch_success_count": won,
            "branch_failure_count": len(ended) - won,
            "branch_retry_count": sum(branch.retries for branch in ended)
            + len(self._all(ModelRetried)),
            "rerank_applied": self._ending.rerank_applied,
            "final_episode_count": self._ending.memories,
        }

    def _tool_calls(self, actor: str | None = None) -> tuple[ToolCallRecord, ...]:
        return tuple(
            ToolCallRecord(
                event.step,
                TOOL,
                {"query": event.body.query},
                event.body.status,
                event.body.summary,
                {
                    "episodes_returned": len(event.body.memory_ids),
                    "memory_ids": list(event.body.memory_ids),
                    "wall_time_seconds": event.body.milliseconds / 1000,
                },
            )
            for event in self.events
            if isinstance(event.body, ToolReturned) and actor in (None, event.actor)
        )

    def _sub_agent_runs(self) -> tuple[SubAgentRun, ...]:
        """One run, which resolves all threads in the same session; none for a single lookup."""
        ended = self._all(BranchEnded)
        if not ended:
            return ()
        won = sum(branch.status == "success" for branch in ended)
        return (
            SubAgentRun(
                step=self.orchestrator_step_count,
                agent_name=BRANCH,
                query=self._last(SessionStarted).query,
                status="success" if won == len(ended) else "failed",
                fallback_trigger_reason=self.fallback_trigger_reason,
                tool_calls=self._tool_calls(BRANCH),
                llm_call_count=0,
                llm_input_tokens=0,
                llm_output_tokens=0,
                llm_time=0.0,
                episodes_returned=sum(branch.memories for branch in ended),
                branch_total=len(ended),
                branch_success_count=won,
                branch_failure_count=len(ended) - won,
                branch_retry_count=sum(branch.retries for branch in ended),
            ),
        )

    def _snapshot(self, calls: int, runs: Sequence[SubAgentRun]) -> str:
        return (
            f"step={self.orchestrator_step_count}; events={len(self.events)}; "
            f"tool_calls={calls}; sub_agents={[run.agent_name for run in runs]}; "
            f"episodes={len(self._episodes())}; completed={self._ending.completed}"
        )

    def _episodes(self) -> set[str]:
        return {each for call in self._all(ToolReturned) for each in call.memory_ids}

    @property
    def _ending(self) -> SessionEnded:
        return self._last(SessionEnded)

    def _all(self, kind: type[Body]) -> list[Body]:
        return [event.body for event in self.events if isinstance(event.body, kind)]

    def _last(self, kind: type[Body]) -> Body:
        return self._all(kind)[-1]
