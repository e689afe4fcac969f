"""Groups of options: a dataclass whose fields several commands offer as options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, get_type_hints

Function = Callable[..., None]


def spread(function: Function) -> inspect.Signature:
    """Give the function's signature with each dataclass parameter replaced by its fields.

    The fields' annotations carry the options, so that typer sees one flat list of parameters.
    """
    hints = get_type_hints(function, include_extras=True)
    flat: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        kind = hints[name]
        if is_dataclass(kind) and isinstance(kind, type):
            flat += _fields_as_parameters(kind)
        else:
            flat.append(parameter.replace(annotation=kind, kind=inspect.Parameter.KEYWORD_ONLY))
    return inspect.Signature(flat, return_annotation=None)


def gather(function: Function, given: Mapping[str, Any]) -> dict[str, Any]:
    """Turn the flat values that typer gives back into the function's own arguments."""
    arguments: dict[str, Any] = {}
    for name, kind in get_type_hints(function).items():
        if name == "return":
            continue
        if is_dataclass(kind) and isinstance(kind, type):
            arguments[name] = kind(**{entry.name: given[entry.name] for entry in fields(kind)})
        else:
            arguments[name] = given[name]
    return arguments


def _fields_as_parameters(group: type) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            entry.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_default(entry),
            annotation=hints[entry.name],
        )
        for entry in fields(group)
    ]


def _default(entry: Field[Any]) -> Any:  # noqa: ANN401  whatever the field holds
    return inspect.Parameter.empty if entry.default is MISSING else entry.default
