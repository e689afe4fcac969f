"""Which memories of a project are looked at."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ekphory.filters.tree import And, Comparison, Field, Filter
from ekphory.types import MemoryType


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What memories must fulfil; None lets everything through.

    Attributes:
        pool, type: Only this one.
        since, until: Only what happened from the one moment on, and before the other.
        least_importance: Only memories of at least this importance, in [0, 1].
    """

    pool: str | None = None
    type: MemoryType | None = None
    since: datetime | None = None
    until: datetime | None = None
    least_importance: float | None = None

    def condition(self) -> Filter:
        """Give it as a condition of the store."""
        wanted: list[Filter] = []
        if self.pool is not None:
            wanted.append(Comparison(Field("pool"), "eq", self.pool))
        if self.type is not None:
            wanted.append(Comparison(Field("type"), "eq", self.type))
        if self.since is not None:
            wanted.append(Comparison(Field("at"), "ge", self.since))
        if self.until is not None:
            wanted.append(Comparison(Field("at"), "lt", self.until))
        if self.least_importance is not None:
            wanted.append(Comparison(Field("importance"), "ge", self.least_importance))
        return And(tuple(wanted))
