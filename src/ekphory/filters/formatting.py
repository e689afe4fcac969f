"""Filters printed in the grammar that `parse_filter` reads."""

from __future__ import annotations

from datetime import datetime

from ekphory.filters.check import check_filter
from ekphory.filters.tokens import is_plain_key
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
    Operator,
    Or,
    Value,
)

_SYMBOLS: dict[Operator, str] = {
    "eq": "=",
    "ne": "!=",
    "gt": ">",
    "ge": ">=",
    "lt": "<",
    "le": "<=",
}


def format_filter(tree: Filter) -> str:
    """Print a filter in the grammar; `parse_filter` of it gives the filter's normal form.

    A filter built in Python may print longer than the 10,000 characters `parse_filter` reads.

    Raises:
        FilterError: The filter breaks a rule of `check_filter`.
    """
    return _print(check_filter(tree))


def _print(tree: Filter) -> str:
    match tree:
        case And(children=children):
            return " AND ".join(map(_print_part, children)) if children else "TRUE"
        case Or(children=children):
            return " OR ".join(map(_print_alternative, children)) if children else "FALSE"
        case Not(child=child):
            return _print_negation(child)
        case _:
            return _print_condition(tree)


def _print_negation(child: Filter) -> str:
    match child:
        case In(field=field, values=values):
            return f"{_print_field(field)} NOT IN {_print_values(values)}"
        case Contains(field=field, text=text):
            return f"{_print_field(field)} NOT CONTAINS {_print_value(text)}"
        case IsNull(field=field):
            return f"{_print_field(field)} IS NOT NULL"
        case _:
            return f"NOT {_print_part(child)}"


def _print_part(tree: Filter) -> str:
    match tree:
        case And(children=children) | Or(children=children) if children:
            return f"({_print(tree)})"
        case _:
            return _print(tree)


def _print_alternative(tree: Filter) -> str:
    return _print_part(tree) if isinstance(tree, Or) else _print(tree)


def _print_condition(condition: Comparison | In | Contains | IsNull) -> str:
    field = _print_field(condition.field)
    match condition:
        case Comparison(operator=operator, value=value):
            return f"{field} {_SYMBOLS[operator]} {_print_value(value)}"
        case In(values=values):
            return f"{field} IN {_print_values(values)}"
        case Contains(text=text):
            return f"{field} CONTAINS {_print_value(text)}"
        case IsNull():
            return f"{field} IS NULL"


def _print_field(field: FieldReference) -> str:
    match field:
        case Field(name=name):
            return name
        case MetadataField(key=key) if is_plain_key(key):
            return f"m.{key}"
        case MetadataField(key=key):
            doubled = key.replace('"', '""')
            return f'm."{doubled}"'


def _print_values(values: tuple[Value, ...]) -> str:
    return f"({', '.join(map(_print_value, values))})"


def _print_value(value: Value) -> str:
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            doubled = value.replace("'", "''")
            return f"'{doubled}'"
        case datetime():
            return f"date('{value.isoformat()}')"
        case int() | float():
            return repr(value)
