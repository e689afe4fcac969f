"""Why a session cannot go on; each fault ends it with plain search and the evidence so far."""

from __future__ import annotations

from typing import Literal

from ekphory.errors import EkphoryError

FaultReason = Literal[
    "global_timeout",
    "session_call_budget_exceeded",
    "max_steps_exceeded",
    "missing_tool_call",
    "invalid_tool_call",
    "invalid_agent_output",
    "downstream_tool_failure",
]
"""MemMachine's names. What a provider's service does wrong is `downstream_tool_failure`."""


class SessionFault(EkphoryError):
    """A session ends here.

    Attributes:
        reason: MemMachine's name for it.
        problem: What went wrong, in words, without a secret.
    """

    def __init__(self, reason: FaultReason, problem: str) -> None:
        self.reason: FaultReason = reason
        self.problem = problem
        super().__init__(f"{reason}: {problem}")
