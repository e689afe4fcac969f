"""A filter as data: a typed tree, the fields it may name, and the rules that every filter obeys."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Literal, get_args

from ekphory.errors import FilterError, suggest
from ekphory.types import MAX_WHOLE_NUMBER, MEMORY_TYPES, MemoryRecord, is_storable

# The tree.
#
# Meaning, the same in every store: a comparison with a value that is missing, or of another kind
# (text against number), is false, `ne` included; `Not` is the plain complement of what it holds.

Operator = Literal["eq", "ne", "gt", "ge", "lt", "le"]
SYMBOLS: Mapping[str, Operator] = MappingProxyType(
    {"=": "eq", "!=": "ne", "<>": "ne", ">": "gt", ">=": "ge", "<": "lt", "<=": "le"}
)
"""How each operator is written, in the text form of filters and in SQL."""
Value = str | int | float | bool | datetime
SEPARATOR = "; "
"""What stands between the entries of a list that is written as one text."""


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
    """The field's text contains `text`.

    Attributes:
        field: Where it is looked for.
        text: What is looked for.
        any_case: Whether small and capital letters are the same; only a tree can say so, and the
            text form of filters cannot.
        whole: Whether it must be a whole entry of a list that is written with `SEPARATOR`, as the
            entities and labels of a captured memory are; HAS in the text form.
    """

    field: FieldReference
    text: str
    any_case: bool = False
    whole: bool = False


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

EVERYTHING: Filter = And(())
"""Holds for every memory."""


# The fields that a filter may name.

FieldKind = Literal["text", "number", "integer", "moment"]

_NOT_FILTERABLE = ("predicted", "metadata")
_OTHER_THAN_TEXT: Mapping[str, FieldKind] = {
    "at": "moment",
    "created_at": "moment",
    "expires_at": "moment",
    "importance": "number",
    "sequence": "integer",
}
FIELD_KINDS: Mapping[str, FieldKind] = MappingProxyType(
    {
        entry.name: _OTHER_THAN_TEXT.get(entry.name, "text")
        for entry in fields(MemoryRecord)
        if entry.name not in _NOT_FILTERABLE
    }
)
"""Every filterable field of `MemoryRecord` by name; metadata keys are not listed here."""

FIELD_ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "producer_id": "producer",
        "produced_for_id": "produced_for",
        "producer_role": "role",
        "timestamp": "at",
        "uid": "id",
    }
)
"""Names that MemMachine's clients use, and the field of ours that each means."""


# The rules that every filter obeys.

MAX_NESTING = 50
MAX_VALUES = 1_000
MAX_TEXT = 10_000

_REMEDIES: dict[FieldKind, str] = {
    "text": "Compare it with a text in single quotes, such as 'Anna'.",
    "number": "Compare it with a number, such as 0.5.",
    "integer": "Compare it with a number, such as 3.",
    "moment": "Compare it with a moment, such as date('2026-05-01T10:00:00Z').",
}


def check_filter(tree: Filter) -> Filter:
    """Check a filter and return its normal form, which the stores accept.

    The normal form has aliases resolved, ISO texts for moment fields read as UTC datetimes,
    -0.0 written as 0.0, and `And`/`Or` of one child replaced by the child.

    Raises:
        FilterError: An unknown field, a value of the wrong kind, nesting deeper than 50,
            more than 1,000 values, or a part that is not a filter.
    """
    count = _count_values(tree, depth=0)
    if count > MAX_VALUES:
        raise _error(count, f"more than {MAX_VALUES} values", "Split the filter into several.")
    return _normal_form(tree)


def check_field(field: FieldReference, place: str = "") -> FieldReference:
    """Check that a field may be filtered and return it under its own name.

    Args:
        field: The field.
        place: Where it stands in the caller's text, for the error: ` at character 5`.

    Raises:
        FilterError: An unknown field, or an empty or unstorable metadata key.
    """
    match field:
        case Field(name=str(name)):
            resolved = FIELD_ALIASES.get(name, name)
            if resolved not in FIELD_KINDS:
                known = [*FIELD_KINDS, *FIELD_ALIASES]
                remedy = f"{suggest(name, known)}A metadata key is written m.{name[:40]}."
                raise _error(name, f"unknown field{place}", remedy)
            return Field(resolved)
        case MetadataField(key=str(key)) if key:
            _check_text(key, place)
            return field
        case _:
            remedy = 'Name a field, or a metadata key as m.key or m."any key".'
            raise _error(field, f"not a field{place}", remedy)


def check_comparison(comparison: Comparison, place: str = "") -> Comparison:
    """Check one comparison and return its normal form; arguments and errors as `check_field`."""
    field, operator = check_field(comparison.field, place), comparison.operator
    operators = get_args(Operator)
    if operator not in operators:
        raise _error(operator, f"unknown operator{place}", f"Use one of {', '.join(operators)}.")
    value = _check_value(field, comparison.value, place)
    if isinstance(value, bool) and operator not in ("eq", "ne"):
        raise _error(value, f"true and false have no order{place}", "Use = or != with them.")
    return Comparison(field, operator, value)


def check_contains(contains: Contains, place: str = "") -> Contains:
    """Check one CONTAINS or HAS and return its normal form; the rest as `check_field`."""
    field, text = check_field(contains.field, place), contains.text
    word = "HAS" if contains.whole else "CONTAINS"
    if isinstance(field, Field) and FIELD_KINDS[field.name] != "text":
        remedy = f"Use {word} on a text field, and = or < on this one."
        raise _error(field.name, f"holds no text{place}", remedy)
    if not isinstance(text, str):
        raise _error(text, f"{word} needs a text{place}", "Put it in single quotes.")
    return replace(contains, field=field, text=_check_text(text, place))


def read_moment(value: str | datetime, place: str = "") -> datetime:
    """Return a moment in UTC; without an offset it is UTC already; errors as `check_field`."""
    try:
        moment = datetime.fromisoformat(value.strip()) if isinstance(value, str) else value
        if moment.utcoffset() is None:
            return moment.replace(tzinfo=UTC, fold=0)
        return moment.astimezone(UTC).replace(fold=0)
    except (ValueError, OverflowError) as error:
        remedy = "Write it as 2026-05-01 or 2026-05-01T10:00:00+02:00; without offset it is UTC."
        raise _error(value, f"not an ISO 8601 moment{place}", remedy) from error


def nesting_error(value: object, place: str = "") -> FilterError:
    """Return the error for a filter nested too deeply."""
    return _error(value, f"nested deeper than {MAX_NESTING}{place}", "Use a flatter filter.")


def _error(value: object, problem: str, remedy: str) -> FilterError:
    return FilterError("filter", value, problem, remedy)


def _count_values(tree: object, *, depth: int) -> int:
    if depth > MAX_NESTING:
        raise nesting_error(type(tree).__name__)
    match tree:
        case And(children=children) | Or(children=children):
            if not isinstance(children, tuple | list):
                raise _error(children, "not a tuple of filters", "Give And and Or a tuple.")
            return max(1, sum(_count_values(child, depth=depth + 1) for child in children))
        case Not(child=child):
            return _count_values(child, depth=depth + 1)
        case In(values=values):
            if not isinstance(values, tuple | list):
                raise _error(values, "not a tuple of values", "Give In a tuple of values.")
            return max(1, len(values))
        case Comparison() | Contains() | IsNull():
            return 1
        case _:
            remedy = "Build it from ekphory.filters, or read a text with parse_filter."
            raise _error(tree, "not a filter", remedy)


def _normal_form(tree: Filter) -> Filter:
    match tree:
        case And(children=children) | Or(children=children):
            return join(type(tree), [_normal_form(child) for child in children])
        case Not(child=child):
            return Not(_normal_form(child))
        case Comparison():
            return check_comparison(tree)
        case In(field=field, values=values):
            wanted = (check_comparison(Comparison(field, "eq", value)) for value in values)
            return In(check_field(field), tuple(comparison.value for comparison in wanted))
        case Contains():
            return check_contains(tree)
        case IsNull(field=field):
            return IsNull(check_field(field))


def join(kind: type[And | Or], parts: Sequence[Filter]) -> Filter:
    """Join filters; a single one stays as it is."""
    return parts[0] if len(parts) == 1 else kind(tuple(parts))


def _check_value(field: FieldReference, value: Value, place: str) -> Value:
    if isinstance(field, Field):
        return _check_field_value(field.name, value, place)
    return _check_metadata_value(value, place)


def _check_metadata_value(value: Value, place: str) -> Value:
    match value:
        case bool():
            return value
        case int() | float():
            return _check_number(value, place)
        case str():
            return _check_text(value, place)
        case _:
            problem = f"metadata holds texts, numbers and booleans only{place}"
            raise _error(value, problem, "Compare it with one of these, or filter on the field at.")


def _check_field_value(name: str, value: Value, place: str) -> Value:
    kind = FIELD_KINDS[name]
    match kind, value:
        case "text", str():
            if name == "type" and value not in MEMORY_TYPES:
                remedy = f"{suggest(value, MEMORY_TYPES)}Use one of {', '.join(MEMORY_TYPES)}."
                raise _error(value, f"no such type{place}", remedy)
            return _check_text(value, place)
        case "moment", str() | datetime():
            return read_moment(value, place)
        case "number" | "integer", int() | float() if not isinstance(value, bool):
            number = _check_number(value, place)
            if kind == "integer" and abs(number) > MAX_WHOLE_NUMBER:
                raise _error(value, f"beyond 2**53{place}", "Use a smaller number.")
            return number
        case _:
            noun = "number" if kind == "integer" else kind
            raise _error(value, f"{name} holds a {noun}{place}", _REMEDIES[kind])


def _check_text(text: str, place: str) -> str:
    if len(text) > MAX_TEXT:
        raise _error(text, f"longer than {MAX_TEXT} characters{place}", "Shorten the text.")
    if not is_storable(text):
        raise _error(text, f"holds NUL or a lone surrogate{place}", "Remove that character.")
    return text


def _check_number(number: int | float, place: str) -> int | float:
    if isinstance(number, float):
        if not math.isfinite(number):
            raise _error(number, f"not a finite number{place}", "Use a finite number.")
        return float(number) + 0.0  # -0.0 becomes 0.0, so that no store can tell them apart
    if abs(number) > MAX_WHOLE_NUMBER:
        remedy = "Write it with a decimal point or exponent to compare approximately."
        shown = number if number.bit_length() < 256 else "a whole number of more than 256 bits"
        raise _error(shown, f"whole number beyond 2**53{place}", remedy)
    return int(number)
