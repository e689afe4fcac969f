"""Scope: which memories a handle may see and write, compiled into one mandatory predicate."""

from __future__ import annotations

from dataclasses import dataclass, fields

from recollect.errors import InvalidInput, ScopeError
from recollect.filters.tree import And, Comparison, Field, Filter, In, Or
from recollect.pools import SHARED_POOLS

SCOPE_FIELDS = ("org", "project", "agent", "user", "session")
_PROJECT_FIELDS = ("org", "project")
_OWNER_FIELDS = ("agent", "user", "session")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The fields a handle is bound to; an unbound field (None) is no restriction.

    Attributes:
        org, project: Restrict every pool.
        agent, user, session: Restrict every pool except the shared and reference ones, which
            the whole project sees.
    """

    org: str | None = None
    project: str | None = None
    agent: str | None = None
    user: str | None = None
    session: str | None = None

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            if value is not None and (not isinstance(value, str) or not value.strip()):
                raise InvalidInput(
                    entry.name, value, "a scope field is non-empty text", "Leave it out to unbind"
                )

    def predicate(self) -> Filter:
        """Give the condition that every read, on every arm, is combined with."""
        project = self._equalities(_PROJECT_FIELDS)
        owner = self._equalities(_OWNER_FIELDS)
        if not owner:
            return And(tuple(project))
        shared = In(Field("pool"), SHARED_POOLS)
        return And((*project, Or((shared, And(tuple(owner))))))

    def own_predicate(self) -> Filter:
        """Give the condition for what this scope itself wrote: all bound fields, in every pool."""
        return And(tuple(self._equalities(SCOPE_FIELDS)))

    def fill(self, name: str, given: str | None) -> str | None:
        """Give the record's value of one scope field: the bound one, or what the record gives.

        Raises:
            ScopeError: The record tries to change a bound field.
        """
        bound: str | None = getattr(self, name)
        if bound is not None and given is not None and given != bound:
            raise ScopeError(
                name,
                given,
                f"this handle is bound to {name}={bound!r}",
                "Open a handle for that scope, or leave the field out",
            )
        return bound if bound is not None else given

    def _equalities(self, names: tuple[str, ...]) -> list[Filter]:
        values = ((name, getattr(self, name)) for name in names)
        return [Comparison(Field(name), "eq", value) for name, value in values if value is not None]
