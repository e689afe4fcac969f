"""The filters of mem0: whose memories are meant, and which of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ekphory.errors import FilterError, InvalidInput
from ekphory.filters.tree import (
    And,
    Comparison,
    Contains,
    Field,
    FieldReference,
    Filter,
    In,
    IsNull,
    MetadataField,
    Not,
    Or,
)
from ekphory.importers.foreign_metadata import stored_name
from ekphory.scope import Scope

_OWNERS = {"user_id": "user", "agent_id": "agent", "run_id": "session"}
_FIELDS = {
    **_OWNERS,
    "actor_id": "producer",
    "role": "role",
    "memory": "text",
    "data": "text",
    "id": "id",
    "created_at": "at",
}
_CHANGED = "updated_at"
_LISTS = ("AND", "OR", "NOT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Whose memories a call is about, in mem0's words."""

    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None

    def scope(self, bound: Scope) -> Scope:
        """Give the scope of these within the one that a store was opened with.

        Raises:
            InvalidInput: Nobody is named, or a name is none.
        """
        names = {_OWNERS[key]: _name(key, getattr(self, key)) for key in _OWNERS}
        if not any(names.values()):
            raise InvalidInput(
                "user_id", None, "nobody is named", "Give a user_id, an agent_id or a run_id"
            )
        return Scope(org=bound.org, project=bound.project, **names)


@dataclass(frozen=True, slots=True)
class Selection:
    """What a search or a listing is to look at.

    Attributes:
        owner: Whose memories.
        condition: Which of them.
    """

    owner: Owner
    condition: Filter


def selection(owner: Owner, filters: Mapping[str, Any] | None) -> Selection:
    """Read the filters of a call; who is named in them counts as if named in the call.

    Raises:
        FilterError: They cannot be read.
        InvalidInput: They name another user, agent or run than the call does.
    """
    named = {key: getattr(owner, key) for key in _OWNERS}
    rest: list[Filter] = []
    for key, value in _conditions(filters):
        if key in _OWNERS and isinstance(value, str) and value != "*":
            if named[key] not in (None, value):
                raise InvalidInput(key, value, f"the call names {named[key]!r}", "Name one of them")
            named[key] = value
        else:
            rest.append(_tree(key, value))
    return Selection(Owner(**named), And(tuple(rest)))


def _name(key: str, value: str | None) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(key, value, "is no name", "Give a text that is not empty")
    return value.strip()


def _conditions(filters: object) -> list[tuple[str, Any]]:
    """List what must hold; the parts of an `AND` count as if they stood beside the others."""
    found: list[tuple[str, Any]] = []
    for key, value in _mapping({} if filters is None else filters).items():
        if key == "AND":
            found += [pair for part in _parts(key, value) for pair in _conditions(part)]
        else:
            found.append((key, value))
    return found


def _tree(key: str, value: Any) -> Filter:  # noqa: ANN401  what a caller wrote
    if key in _LISTS:
        parts = tuple(_all_of(part) for part in _parts(key, value))
        joined: dict[str, Filter] = {"AND": And(parts), "OR": Or(parts), "NOT": Not(Or(parts))}
        return joined[key]
    return _changed(value) if key == _CHANGED else _condition(_field(key), value)


def _changed(value: Any) -> Filter:  # noqa: ANN401  likewise
    """Give the condition for when a memory was changed; one that never was tells when it was."""
    is_first = IsNull(Field("supersedes"))
    first = And((is_first, _condition(Field("at"), value)))
    later = And((Not(is_first), _condition(Field("created_at"), value)))
    return Or((first, later))


def _condition(field: FieldReference, value: Any) -> Filter:  # noqa: ANN401  likewise
    if value == "*":
        return Not(IsNull(field))
    if value is None:
        return IsNull(field)
    if not isinstance(value, Mapping):
        return Comparison(field, "eq", value)
    return And(tuple(_compared(field, name, bound) for name, bound in value.items()))


def _all_of(part: object) -> Filter:
    return And(tuple(_tree(key, value) for key, value in _mapping(part).items()))


def _field(key: str) -> FieldReference:
    if not isinstance(key, str) or not key:
        raise FilterError("filters", key, "is no name of a field", "Give a text")
    known = _FIELDS.get(key)
    return MetadataField(stored_name(key)) if known is None else Field(known)


def _compared(field: FieldReference, name: str, bound: Any) -> Filter:  # noqa: ANN401  likewise
    make = _OPERATORS.get(name)
    if make is None:
        remedy = f"Use one of {', '.join(_OPERATORS)}; letters count as they are written"
        raise FilterError("filters", name, "no such operator here", remedy)
    return make(field, bound)


def _one_of(field: FieldReference, bound: Any) -> Filter:  # noqa: ANN401  likewise
    if not isinstance(bound, list | tuple | set | frozenset):
        raise FilterError("filters", bound, "in and nin take a list", 'Give ["a", "b"]')
    return In(field, tuple(bound))


def _none_of(field: FieldReference, bound: Any) -> Filter:  # noqa: ANN401  likewise
    return And((Not(IsNull(field)), Not(_one_of(field, bound))))


_OPERATORS: Mapping[str, Callable[[FieldReference, Any], Filter]] = {
    "eq": lambda field, bound: Comparison(field, "eq", bound),
    "ne": lambda field, bound: Comparison(field, "ne", bound),
    "gt": lambda field, bound: Comparison(field, "gt", bound),
    "gte": lambda field, bound: Comparison(field, "ge", bound),
    "lt": lambda field, bound: Comparison(field, "lt", bound),
    "lte": lambda field, bound: Comparison(field, "le", bound),
    "in": _one_of,
    "nin": _none_of,
    "contains": Contains,
}


def _mapping(given: object) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise FilterError("filters", given, "is no dict", 'Give {"user_id": "mara"}')
    return given


def _parts(key: str, value: object) -> list[object]:
    if not isinstance(value, list) or not value:
        raise FilterError("filters", value, f"{key} takes a list", f'Give {{"{key}": [{{…}}]}}')
    return value
