"""Where a verb acts: a project of an organisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Reach = Literal["project", "org"]
"""How far changes may go: to the project alone, or to what its whole organisation shares."""


@dataclass(frozen=True, slots=True)
class Place:
    """A project of an organisation, and how far changes from there may go."""

    org: str
    project: str
    reach: Reach = "org"

    @property
    def session_key(self) -> str:
        """Both names as MemMachine joins them."""
        return f"{self.org}/{self.project}"

    @property
    def owner(self) -> tuple[str, str]:
        """Organisation and project, as the catalog names owners."""
        return self.org, self.project
