"""Scope: which memories a handle may see and write, compiled into one mandatory predicate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

from ekphory.errors import FilterError, InvalidInput, ScopeError
from ekphory.filters.grammar import parse_filter
from ekphory.filters.tree import (
    EVERYTHING,
    And,
    Comparison,
    Field,
    Filter,
    In,
    IsNull,
    Or,
    Value,
    check_filter,
)
from ekphory.types import SHARED_POOLS, MemoryRecord, is_storable

LONGEST_NAME = 10_000
DEFAULT_NAME = "default"
"""The organisation and the project of memories that name none."""
SCOPE_FIELDS = ("org", "project", "agent", "user", "session")
_PROJECT_FIELDS = ("org", "project")
_OWNER_FIELDS = ("agent", "user", "session")
_REMEDY = "Open a handle for that scope, or leave the field out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The fields a handle is bound to; an unbound field (None) restricts nothing.

    Attributes:
        org, project: Restrict every pool. Bound to "default", they also hold the memories that
            name no organisation, or no project.
        agent, user, session: Restrict every pool except the shared and reference ones, which
            the whole project sees.
    """

    org: str | None = None
    project: str | None = None
    agent: str | None = None
    user: str | None = None
    session: str | None = None

    def __post_init__(self) -> None:
        for name in SCOPE_FIELDS:
            if getattr(self, name) is not None:
                check_name(name, getattr(self, name))

    def named(self) -> list[str]:
        """Return the bound fields with their values, such as `project='home'`."""
        return [f"{name}={value!r}" for name, value in asdict(self).items() if value is not None]

    def predicate(self) -> Filter:
        """Return the condition that every read, on every arm, is combined with."""
        project = self._equalities(_PROJECT_FIELDS)
        owner = self._equalities(_OWNER_FIELDS)
        if not owner:
            return And(tuple(project))
        shared = In(Field("pool"), SHARED_POOLS)
        return And((*project, Or((shared, And(tuple(owner))))))

    def own_predicate(self) -> Filter:
        """Return the condition for what this scope wrote: all bound fields, in every pool."""
        return And(tuple(self._equalities(SCOPE_FIELDS)))

    def fill(self, name: str, given: str | None) -> str | None:
        """Return the record's value of one scope field: the bound one, or what the record gives.

        Raises:
            ScopeError: The record tries to change a bound field.
        """
        bound: str | None = getattr(self, name)
        if bound is not None and given is not None and given != bound:
            raise ScopeError(name, given, f"this handle is bound to {name}={bound!r}", _REMEDY)
        return bound if bound is not None else given

    def refuse_leaving(self, tree: Filter) -> None:
        """Check that a caller's filter does not ask for another org or project.

        Other agents, users and sessions may be asked for: the shared pools hold theirs.

        Raises:
            ScopeError: It does; it would find nothing, which is not what was meant.
        """
        for name, values in _named_values(tree):
            bound = getattr(self, name)
            if name in _PROJECT_FIELDS and bound is not None and bound not in values:
                problem = f"the filter leaves the scope, which is bound to {name}={bound!r}"
                raise ScopeError(name, values[0] if values else None, problem, _REMEDY)

    def _equalities(self, names: tuple[str, ...]) -> list[Filter]:
        values = ((name, getattr(self, name)) for name in names)
        return [_equality(name, value) for name, value in values if value is not None]


def _equality(name: str, value: str) -> Filter:
    equal = Comparison(Field(name), "eq", value)
    if name in _PROJECT_FIELDS and value == DEFAULT_NAME:
        return Or((equal, IsNull(Field(name))))
    return equal


def check_name(field: str, text: object) -> str:
    """Return the value of a scope field.

    Raises:
        InvalidInput: It cannot be one.
    """
    if isinstance(text, str) and text.strip() and len(text) <= LONGEST_NAME and is_storable(text):
        return text
    problem = f"a scope field is text of 1 to {LONGEST_NAME:,} characters without NUL"
    raise InvalidInput(field, text, problem, "Leave it out to unbind")


def _named_values(tree: Filter) -> Iterator[tuple[str, tuple[Value, ...]]]:
    """Yield the scope fields that the filter asks for by value, none of those under `Not`."""
    match tree:
        case And(children) | Or(children):
            for child in children:
                yield from _named_values(child)
        case Comparison(Field(name), "eq", value) if name in SCOPE_FIELDS:
            yield name, (value,)
        case In(Field(name), values) if name in SCOPE_FIELDS:
            yield name, values
        case _:
            return


# Owners.

OWNER_FIELDS = ("org", "project", "agent", "user")


def get_owner(record: MemoryRecord) -> tuple[str | None, ...]:
    """Return the record's org, project, agent and user."""
    return tuple(getattr(record, name) for name in OWNER_FIELDS)


def name_default(owner: Iterable[str | None]) -> tuple[str | None, ...]:
    """Return an owner, and what follows it, with "default" where it has no org or no project.

    Whoever is bound to "default" holds both, so that no id may be used by both.
    """
    org, project, *others = owner
    return (org or DEFAULT_NAME, project or DEFAULT_NAME, *others)


def owned_like(owner: MemoryRecord | Scope) -> Filter:
    """Return the condition for memories of exactly the same owner and session.

    A field that is None must be missing, whereas the predicate of a scope leaves it open.
    """
    return And((owned_in_any_session(owner), _same(owner, "session")))


def owned_in_any_session(owner: MemoryRecord | Scope) -> Filter:
    """Return the condition for memories of exactly the same owner, whatever their session."""
    return And(tuple(_same(owner, name) for name in OWNER_FIELDS))


def are_versions_of(record: MemoryRecord) -> Filter:
    """Return the condition for the earlier versions of a memory."""
    return And((owned_like(record), Comparison(Field("superseded_by"), "eq", record.id)))


def owner_name(owner: Iterable[str | None]) -> str:
    """Return an owner as one line for people."""
    named = zip(OWNER_FIELDS, owner, strict=True)
    return " ".join(f"{name}={value}" for name, value in named if value)


def _same(owner: MemoryRecord | Scope, name: str) -> Filter:
    field, value = Field(name), getattr(owner, name)
    return IsNull(field) if value is None else Comparison(field, "eq", value)


def condition(given: str | Filter | None, *, scope: Scope) -> Filter:
    """Return a caller's filter, parsed or checked; None lets everything through.

    Raises:
        FilterError: It cannot be read.
        ScopeError: It asks for another org or project than the bound one.
    """
    if given is None:
        return EVERYTHING
    if isinstance(given, str):
        tree = parse_filter(given)
    elif isinstance(given, Filter):
        tree = check_filter(given)
    else:
        problem = "must be a filter"
        raise FilterError("filter", given, problem, "Give text or a tree of filters.tree")
    scope.refuse_leaving(tree)
    return tree
