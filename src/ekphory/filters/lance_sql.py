"""Where a filter becomes SQL, and the reference of what it means."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, cast

from ekphory.filters.tree import (
    FIELD_KINDS,
    SEPARATOR,
    SYMBOLS,
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
    Operator,
    Or,
    Value,
    check_field,
)
from ekphory.types import BOOLEAN_PREFIX, NUMBER_PREFIX, TEXT_PREFIX, MemoryRecord, to_microseconds

# SQL: the one place where a caller's values meet a query.

_SYMBOLS_BY_OPERATOR = {operator: symbol for symbol, operator in SYMBOLS.items() if symbol != "!="}
_METADATA_READERS = {
    "boolean": ("json_get_bool", BOOLEAN_PREFIX),
    "number": ("json_get_float", NUMBER_PREFIX),
    "text": ("json_get_string", TEXT_PREFIX),
}
"""By the kind of value that is compared: the function of Lance, and how the key begins."""


@dataclass(frozen=True, slots=True)
class _Sql:
    """A piece of SQL and what joins its parts, which decides where it needs parentheses."""

    text: str
    joined_by: Literal["AND", "OR", ""] = ""


def to_lance_sql(tree: Filter) -> str:
    """Compile a filter to a condition for LanceDB's `where`, `count_rows` and `delete`.

    The columns bear the names of `MemoryRecord`; moments are Arrow timestamps in microseconds
    with UTC, `sequence` int64, `importance` float64, `metadata` Lance's JSON type holding what
    `encode_metadata` gives, all others utf8.

    Returns:
        SQL that is true for exactly the memories for which `matches` is; for others it is false
        or null, so it may be joined to other conditions by AND, in parentheses, but not negated.

    The tree must have passed `check_filter`, as what callers give has, or be made by us; only
    so is every literal of a kind that its column can be compared with.
    """
    return _compile(tree).text


# Negation moves down to the conditions: Lance's reader takes few levels of NOT (…), and a
# condition that stands unnegated needs no COALESCE, so that scalar indices can serve it.
def _compile(tree: Filter, *, negated: bool = False) -> _Sql:
    match tree:
        case And(children=children) | Or(children=children):
            join = _all_of if isinstance(tree, And) != negated else _any_of
            return join(_compile(child, negated=negated) for child in children)
        case Not(child=child):
            return _compile(child, negated=not negated)
        case _:
            condition = _condition(tree)
            return _Sql(f"NOT COALESCE({condition.text}, FALSE)") if negated else condition


def _all_of(parts: Iterable[_Sql]) -> _Sql:
    texts = [f"({part.text})" if part.joined_by == "OR" else part.text for part in parts]
    return _Sql(" AND ".join(texts), "AND") if texts else _Sql("TRUE")


def _any_of(parts: Iterable[_Sql]) -> _Sql:
    texts = [part.text for part in parts]
    return _Sql(" OR ".join(texts), "OR") if texts else _Sql("FALSE")


def _condition(condition: Comparison | In | Contains | IsNull) -> _Sql:
    match condition:
        case Comparison(field=Field(name=name), operator=operator, value=float(value)) if (
            FIELD_KINDS[name] == "integer"
        ):
            return _compare_whole(condition.field, operator, value)
        case Comparison(field=field, operator=operator, value=value):
            return _compare(field, operator, value)
        case In(field=field, values=values):
            return _is_one_of(field, values)
        case Contains():
            return _contains(condition)
        case IsNull(field=field):
            return _is_missing(field)


def _contains(condition: Contains) -> _Sql:
    operand, text = _operand(condition.field, condition.text), condition.text
    if condition.any_case:
        operand, text = f"lower({operand})", text.lower()
    if condition.whole:
        # Unlike concat, || leaves null where the field is missing.
        ends = _quote(SEPARATOR)
        operand, text = f"{ends} || {operand} || {ends}", _as_entry(text)
    return _Sql(f"contains({operand}, {_quote(text)})")


def _as_entry(text: str) -> str:
    return f"{SEPARATOR}{text}{SEPARATOR}"


def _compare(field: FieldReference, operator: Operator, value: Value) -> _Sql:
    return _Sql(
        f"{_operand(field, value)} {_SYMBOLS_BY_OPERATOR[operator]} {_literal(field, value)}"
    )


def _compare_whole(field: FieldReference, operator: Operator, value: float) -> _Sql:
    """Compare an int64 column with a float, which Lance refuses to do itself."""
    if value.is_integer():
        return _compare(field, operator, int(value))
    match operator:
        case "eq":
            return _Sql("FALSE")
        case "ne":
            return _Sql(f"{_operand(field, value)} IS NOT NULL")
        case "gt" | "ge":
            return _compare(field, "gt", math.floor(value))
        case "lt" | "le":
            return _compare(field, "lt", math.ceil(value))


def _is_one_of(field: FieldReference, values: tuple[Value, ...]) -> _Sql:
    if isinstance(field, Field) and FIELD_KINDS[field.name] == "integer":
        values = tuple(value for value in values if float(cast(float, value)).is_integer())
    lists: dict[str, list[str]] = {}
    for value in values:
        lists.setdefault(_operand(field, value), []).append(_literal(field, value))
    return _any_of(_Sql(f"{operand} IN ({', '.join(of)})") for operand, of in lists.items())


def _is_missing(field: FieldReference) -> _Sql:
    match field:
        case Field(name=name):
            return _Sql(f"{_column(name)} IS NULL")
        case MetadataField(key=key):
            return _all_of(
                _Sql(f"json_get(`metadata`, {_quote(prefix + key)}) IS NULL")
                for prefix in (TEXT_PREFIX, NUMBER_PREFIX, BOOLEAN_PREFIX)
            )


def _column(name: str) -> str:
    if name not in FIELD_KINDS:
        # Trees that were not checked must not carry SQL in a name.
        check_field(Field(name))
    return f"`{name}`"


def _operand(field: FieldReference, value: Value) -> str:
    match field:
        case Field(name=name):
            return _column(name)
        case MetadataField(key=key):
            function, prefix = _METADATA_READERS[_kind(value)]
            return f"{function}(`metadata`, {_quote(prefix + key)})"


def _literal(field: FieldReference, value: Value) -> str:
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return _quote(value)
        case datetime():
            return f"to_timestamp_micros({to_microseconds(value)})"
        case int() | float():
            integer = isinstance(field, Field) and FIELD_KINDS[field.name] == "integer"
            return str(int(value)) if integer else repr(float(value))


def _quote(text: str) -> str:
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


# The reference that every store must agree with.


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
        case In(values=values) if isinstance(found, str):
            return found in values  # a text equals nothing but a text
        case In(values=values):
            return any(_compares("eq", found, wanted) for wanted in values)
        case Contains():
            return isinstance(found, str) and _is_within(condition, found)
        case IsNull():
            return found is None


def _is_within(condition: Contains, found: str) -> bool:
    text = condition.text
    if condition.any_case:
        text, found = text.lower(), found.lower()
    return _as_entry(text) in _as_entry(found) if condition.whole else text in found


def _read(field: FieldReference, record: MemoryRecord) -> Value | None:
    if isinstance(field, MetadataField):
        return record.metadata.get(field.key)
    return cast("Value | None", getattr(record, field.name))


def _compares(name: Operator, found: Value | None, wanted: Value) -> bool:
    if found is None or _kind(found) != _kind(wanted):
        return False
    # Our operators have the names that Python's have.
    return bool(getattr(operator, name)(found, wanted))


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
