"""Names that MemMachine's clients use in metadata and filters, and how they are stored.

A client may call a metadata key `user` or `session`, which metadata in the store cannot carry:
such keys are stored behind a mark, and shown and filtered under their own names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ekphory.filters.grammar import parse_filter
from ekphory.filters.tree import (
    And,
    Comparison,
    Field,
    FieldReference,
    Filter,
    In,
    MetadataField,
    Not,
    Or,
)
from ekphory.scope import SCOPE_FIELDS
from ekphory.types import Scalar

_MARK = "m:"
_EVENT_TIME = {"created_at": "at"}
"""What a client calls the time at which something was said."""


def stored_key(key: str) -> str:
    """Give the name under which a caller's metadata key is stored."""
    return _MARK + key if key in SCOPE_FIELDS or key.startswith(_MARK) else key


def stored_metadata(metadata: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Give metadata under the names by which it is stored."""
    return {stored_key(key): value for key, value in metadata.items()}


def shown_metadata(metadata: Mapping[str, Scalar]) -> dict[str, str]:
    """Give stored metadata under its caller's names, as texts."""
    return {key.removeprefix(_MARK): _text(value) for key, value in metadata.items()}


@dataclass(frozen=True, slots=True)
class StoredNames:
    """How a client's names are stored.

    Attributes:
        metadata_key: Gives the name under which a metadata key is stored.
        memory_id: Gives the id that a client's id stands for.
    """

    metadata_key: Callable[[str], str] = stored_key
    memory_id: Callable[[str], str] = str


def read_filter(text: str, names: StoredNames) -> Filter | None:
    """Read a client's filter; None where it is blank.

    Args:
        text: In the filter grammar.
        names: How the names in it are stored.

    Raises:
        FilterError: It cannot be read.
    """
    if not text.strip():
        return None
    return _renamed(parse_filter(text), names)


def _renamed(tree: Filter, names: StoredNames) -> Filter:
    match tree:
        case And(children):
            return And(tuple(_renamed(child, names) for child in children))
        case Or(children):
            return Or(tuple(_renamed(child, names) for child in children))
        case Not(child):
            return Not(_renamed(child, names))
        case Comparison(Field("id"), _, str(value)):
            return replace(tree, value=names.memory_id(value))
        case In(Field("id"), values):
            return In(Field("id"), tuple(names.memory_id(str(value)) for value in values))
        case _:
            return replace(tree, field=_field(tree.field, names))


def _field(field: FieldReference, names: StoredNames) -> FieldReference:
    match field:
        case MetadataField(key):
            return MetadataField(names.metadata_key(key))
        case Field(name):
            return Field(_EVENT_TIME.get(name, name))


def _text(value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)
