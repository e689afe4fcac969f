"""A filter as data: a typed tree, parsed from text or built in Python.

Meaning, the same in every store: a comparison with a value that is missing, or of another kind
(text against number), is false, `ne` included; `Not` is the plain complement of what it holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Operator = Literal["eq", "ne", "gt", "ge", "lt", "le"]
Value = str | int | float | bool | datetime


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the record itself, by its name in `MemoryRecord`."""

    name: str


@dataclass(frozen=True, slots=True)
class MetadataField:
    """A key of the caller's own metadata."""

    key: str


FieldReference = Field | MetadataField


@dataclass(frozen=True, slots=True)
class Comparison:
    """`field operator value`."""

    field: FieldReference
    operator: Operator
    value: Value


@dataclass(frozen=True, slots=True)
class In:
    """The field's value is one of `values`."""

    field: FieldReference
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Contains:
    """The field's text contains `text`, case-sensitively."""

    field: FieldReference
    text: str


@dataclass(frozen=True, slots=True)
class IsNull:
    """The field is missing."""

    field: FieldReference


@dataclass(frozen=True, slots=True)
class And:
    """All children hold; true when there are none."""

    children: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one child holds; false when there are none."""

    children: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The child does not hold."""

    child: Filter


Filter = Comparison | In | Contains | IsNull | And | Or | Not
