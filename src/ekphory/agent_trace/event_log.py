"""The log of a session: events are appended, listened to, written as JSON Lines and read again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ekphory.agent_trace.events import TOP_LEVEL, AgentEvent, EventBody, event_from_dict
from ekphory.errors import InvalidInput

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
    """Give each event as a line of JSON."""
    return (json.dumps(event.to_dict()) for event in events)


def read_events(file: Path) -> tuple[AgentEvent, ...]:
    """Read events from a file of JSON Lines.

    Raises:
        InvalidInput: A line is no event.
    """
    events = []
    for number, line in enumerate(file.read_text("utf-8").splitlines(), start=1):
        try:
            events.append(event_from_dict(json.loads(line)))
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(
                "file", str(file), f"line {number} is no event: {error}", "Give a log of a session"
            ) from error
    return tuple(events)
