"""What a stage is."""

from __future__ import annotations

from typing import Protocol

from ekphory.retrieval.state import SearchState


class Stage(Protocol):
    """One step of a pipeline: settings in its constructor, one `run`.

    Attributes:
        number: Place in the canonical order of fifteen stages.
        name: What the trace and error messages call it.
        needs: What must have been given by earlier stages.
        gives: What later stages may rely on.
    """

    number: int
    name: str
    needs: frozenset[str]
    gives: frozenset[str]

    def skip_reason(self, state: SearchState) -> str | None:
        """Why there is nothing to do for this state; None when there is."""
        ...

    def run(self, state: SearchState) -> SearchState:
        """Do the work and give the next state."""
        ...
