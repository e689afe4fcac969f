"""Who decides on the queries of a session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ekphory.agent.search_tool import SearchTool
from ekphory.agent_trace.event_log import EventLog


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a session ended.

    Attributes:
        response: The closing words; of a language model, its answer.
        sufficient: Whether the evidence is held to be enough.
        confidence: Probability in [0, 1] that the chain is right; None where nobody said.
    """

    response: str
    sufficient: bool
    confidence: float | None


class SessionProvider(Protocol):
    """Holds one session: asks the search tool, at least once, until it has enough.

    What it finds out it tells the log, hop by hop, so that a session that cannot go on has kept it.
    """

    @property
    def name(self) -> str:
        """What the trace calls it."""
        ...

    def run(self, question: str, tool: SearchTool, log: EventLog) -> Outcome:
        """Hold the session; every hop that is resolved is told to the log at once.

        Raises:
            SessionFault: It cannot go on.
        """
        ...
