"""A session of the agent for people: its searches and hops, a line each, as they happen."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from ekphory.agent_trace.events import (
    AgentEvent,
    FellBack,
    HopResolved,
    ModelRetried,
    RouteChosen,
    ToolReturned,
)
from ekphory.agent_trace.retrieval_trace import RetrievalTrace, StageResult
from ekphory.cli.memory_printing import printable


class ChainPrinter:
    """Prints every event that a reader wants to see, when it happens."""

    def __init__(self, console: Console) -> None:
        """Print to this console."""
        self._console = console

    def __call__(self, event: AgentEvent) -> None:
        """Print one event; most are not shown."""
        shown = line(event)
        if shown is not None:
            self._console.print(shown, soft_wrap=True)


def line(event: AgentEvent) -> Text | None:
    """Give an event as a line; None for one that is not shown."""
    body = event.body
    if isinstance(body, ToolReturned):
        return _searched(body)
    if isinstance(body, HopResolved):
        return hop_line(body)
    if isinstance(body, RouteChosen):
        return Text(f"  {body.route}: {printable(body.reason_note)}", style="dim")
    if isinstance(body, ModelRetried):
        problem = printable(body.problem)
        return Text(f"  again in {body.wait_seconds:.1f} s: {problem}", style="yellow")
    if isinstance(body, FellBack):
        return Text(f"! {body.reason}: {printable(body.problem)}", style="yellow")
    return None


def hop_line(hop: HopResolved | StageResult) -> Text:
    """Give a resolved hop: what was looked for, what was found, how sure it is, and where."""
    shown = Text("✓ ", style="green" if hop.confidence >= 0.5 else "yellow")
    shown.append(printable(hop.query))
    if hop.answer:
        shown.append(" → ")
        shown.append(printable(hop.answer), style="bold")
    shown.append(f"  {hop.confidence:.2f}", style="green")
    shown.append(f"  id {printable(', '.join(hop.memory_ids))}", style="dim")
    return shown


def ending(trace: RetrievalTrace) -> Text:
    """Sum a session up in a line."""
    confidence = trace.confidence_score
    parts = [
        f"{trace.selected_agent_name}, {trace.provider}",
        f"{trace.memory_search_called} searches",
        f"{trace.milliseconds:.0f} ms",
    ]
    if confidence is not None:
        parts.append(f"confidence {confidence:.2f}")
    if trace.fallback_trigger_reason is not None:
        parts.append(f"fell back: {trace.fallback_trigger_reason}")
    return Text(" · ".join(parts), style="dim")


def _searched(call: ToolReturned) -> Text:
    shown = Text("→ ", style="cyan")
    shown.append(printable(call.query), style="cyan")
    if call.status == "success":
        found = f"  {len(call.memory_ids)} memories, {call.milliseconds:.0f} ms"
    else:
        found = f"  {call.status}: {printable(call.summary)}"
    shown.append(found, style="dim")
    return shown
