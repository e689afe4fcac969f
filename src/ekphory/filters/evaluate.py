"""What a filter means: the reference that every store must agree with."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal, cast

from ekphory.filters.tree import (
    And,
    Comparison,
    Contains,
    FieldReference,
    Filter,
    In,
    IsNull,
    MetadataField,
    Not,
    Operator,
    Or,
    Value,
)
from ekphory.types import MemoryRecord

_COMPARE: Mapping[Operator, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "ge": operator.ge,
    "lt": operator.lt,
    "le": operator.le,
}


def matches(tree: Filter, record: MemoryRecord) -> bool:
    """Say whether a filter holds for a memory.

    Texts compare by code point, numbers by value (3 equals 3.0), moments by instant.

    Args:
        tree: A filter in the normal form that `check_filter` and `parse_filter` give.
        record: The memory; its moments are timezone-aware.
    """
    match tree:
        case And(children=children):
            return all(matches(child, record) for child in children)
        case Or(children=children):
            return any(matches(child, record) for child in children)
        case Not(child=child):
            return not matches(child, record)
        case _:
            return _holds_of(_read(tree.field, record), tree)


def _holds_of(found: Value | None, condition: Comparison | In | Contains | IsNull) -> bool:
    match condition:
        case Comparison(operator=name, value=wanted):
            return _compares(name, found, wanted)
        case In(values=values):
            return any(_compares("eq", found, wanted) for wanted in values)
        case Contains(text=text):
            return isinstance(found, str) and text in found
        case IsNull():
            return found is None


def _read(field: FieldReference, record: MemoryRecord) -> Value | None:
    if isinstance(field, MetadataField):
        return record.metadata.get(field.key)
    return cast("Value | None", getattr(record, field.name))


def _compares(name: Operator, found: Value | None, wanted: Value) -> bool:
    if found is None or _kind(found) != _kind(wanted):
        return False
    return _COMPARE[name](found, wanted)


def _kind(value: Value) -> Literal["boolean", "number", "text", "moment"]:
    match value:
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "text"
        case datetime():
            return "moment"
