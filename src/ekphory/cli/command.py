"""What every command is wrapped in: option groups become options, errors become words."""

from __future__ import annotations

from functools import wraps
from typing import Any

from ekphory.cli.endings import ended_in_words
from ekphory.cli.option_groups import Function, gather, spread
from ekphory.cli.options import FileOutputOptions, OutputOptions


def command(function: Function) -> Function:
    """Make a function into a command that typer can register.

    One of its parameters is an `OutputOptions` or `FileOutputOptions`.
    """

    @wraps(function)
    def run(**given: Any) -> None:  # noqa: ANN401  typer gives every option by name
        arguments = gather(function, given)
        output = next(
            value
            for value in arguments.values()
            if isinstance(value, OutputOptions | FileOutputOptions)
        )
        with ended_in_words(output):
            function(**arguments)

    run.__signature__ = spread(function)  # type: ignore[attr-defined]  # typer reads it
    return run
