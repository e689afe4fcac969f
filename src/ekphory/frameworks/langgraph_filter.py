"""The filters of LangGraph's stores: which values they let through."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from ekphory.errors import FilterError

_ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_OPERATORS = ("$eq", "$ne", *_ORDER)


def check_value_filter(given: Mapping[str, Any]) -> None:
    """Refuse a filter that LangGraph does not know.

    Raises:
        FilterError: An operator stands in the place of a field, or is unknown.
    """
    for name, wanted in given.items():
        if name.startswith("$"):
            raise FilterError(
                "filter", name, "stands where a field must", 'Give {"field": {"$gt": 1}}'
            )
        _check_condition(wanted)


def lets_through(given: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    """Whether all fields of a value are as a checked filter wants them; a missing one is None."""
    return all(_agrees(value.get(name), wanted) for name, wanted in given.items())


def _check_condition(wanted: object) -> None:
    match wanted:
        case dict() if _has_operator(wanted):
            for name in wanted:
                if name not in _OPERATORS:
                    raise FilterError(
                        "filter", name, "no such operator", f"Use one of {', '.join(_OPERATORS)}"
                    )
        case dict():
            for part in wanted.values():
                _check_condition(part)
        case list() | tuple():
            for part in wanted:
                _check_condition(part)


def _has_operator(wanted: Mapping[str, Any]) -> bool:
    return any(name.startswith("$") for name in wanted)


def _agrees(found: object, wanted: object) -> bool:
    match wanted:
        case dict() if _has_operator(wanted):
            return all(_compares(name, found, bound) for name, bound in wanted.items())
        case dict():
            return isinstance(found, dict) and lets_through(wanted, found)
        case list() | tuple():
            return (
                isinstance(found, list | tuple)
                and len(found) == len(wanted)
                and all(map(_agrees, found, wanted))
            )
        case _:
            return found == wanted


def _compares(name: str, found: object, bound: object) -> bool:
    match name:
        case "$eq":
            return found == bound
        case "$ne":
            return found != bound
        case _:
            return _is_in_order(_ORDER[name], found, bound)


def _is_in_order(order: Callable[[Any, Any], bool], found: object, bound: object) -> bool:
    """Compare as numbers what can be read so, else as texts; other things have no order."""
    numbers = _number(found), _number(bound)
    if None not in numbers:
        return order(*numbers)
    return isinstance(found, str) and isinstance(bound, str) and order(found, bound)


def _number(value: object) -> float | None:
    if not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None
