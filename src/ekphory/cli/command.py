"""What every command is wrapped in: where output goes, how it ends, groups of options, progress."""

from __future__ import annotations

import errno
import inspect
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, cast, get_type_hints

import typer
from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text
from typer.models import ParameterInfo

from ekphory.cli.options import FileOutputOptions, OutputOptions
from ekphory.cli.output import describe_error, print_json
from ekphory.errors import EkphoryError
from ekphory.resident import discard

Output = OutputOptions | FileOutputOptions

PIPE_WIDTH = 120


class ResultConsole(Console):
    """A console whose closed pipe is an error like any other, ended in one place."""

    def on_broken_pipe(self) -> None:
        """Say that nobody reads any more."""
        raise BrokenPipeError


def result_console() -> Console:
    """Make the console for results; colours and the width of the window only on a terminal."""
    return ResultConsole(
        width=None if sys.stdout.isatty() else PIPE_WIDTH,
        markup=False,
        highlight=False,
        emoji=False,
    )


def message_console() -> Console:
    """Make the console for messages, progress and errors."""
    return Console(stderr=True, markup=False, highlight=False, emoji=False, soft_wrap=True)


def print_result(
    output: Output, value: object, shown: RenderableType | None, *, nothing: str = ""
) -> None:
    """Print a result: as JSON where that was asked for, else as people are shown it.

    `nothing` is said in place of what is not there to be shown.
    """
    if output.json:
        print_json(value)
    elif shown is None:
        message_console().print(nothing)
    else:
        result_console().print(shown, soft_wrap=isinstance(shown, str))


def make_unprintable_harmless() -> None:
    """Let characters that the terminal's encoding lacks be shown escaped, not end the command."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


FAILED = 1
INTERRUPTED = 130
_SAFE = (
    "Interrupted. What was acknowledged is stored and complete; "
    "nothing is half written, and the command can be run again."
)


@contextmanager
def report_errors(output: Output) -> Iterator[None]:
    """Run a command's body; whatever it raises ends the process in words.

    Exit codes: 0 done, 1 an error or records that were refused, 2 a wrong command line,
    130 interrupted.
    """
    try:
        yield
    except (typer.Exit, typer.Abort):
        raise
    except BrokenPipeError:
        # The reader has all that it wanted, as in `ekphory list | head`.
        discard(sys.stdout)
        raise typer.Exit(0) from None
    except KeyboardInterrupt as interruption:
        message = str(interruption) or _SAFE
        raise _report(interruption, message, output, code=INTERRUPTED) from None
    except (EkphoryError, TimeoutError) as error:
        raise _report(error, str(error), output, code=FAILED) from None
    except OSError as error:
        raise _report(error, _describe_system_error(error), output, code=FAILED) from None
    except Exception as error:  # noqa: BLE001  the outermost boundary
        message = (
            f"Unexpected {type(error).__name__}: {error}. This is a defect of ekphory; "
            "run the command again with --debug and report what it shows."
        )
        raise _report(error, message, output, code=FAILED) from None


def _report(error: BaseException, message: str, output: Output, *, code: int) -> typer.Exit:
    console = message_console()
    if output.debug:
        console.print("".join(traceback.format_exception(error)).rstrip(), style="dim")
    console.print(message, style="red")
    if output.json:
        print_json(describe_error(error, message))
    return typer.Exit(code)


def _describe_system_error(error: OSError) -> str:
    what = error.strerror or str(error)
    where = f"{error.filename}: " if error.filename else ""
    remedy = "Free some space" if error.errno == errno.ENOSPC else "Check the path and its rights"
    return f"{where}{what}. {remedy}."


Function = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Entry:
    """One command of the command line.

    Attributes:
        name: What a user types after `ekphory`, or after the group's name.
        function: What runs.
        panel: The heading under which the help lists it.
        example: A whole command line.
    """

    name: str
    function: Function
    panel: str
    example: str


@dataclass(frozen=True, slots=True)
class CommandGroup:
    """Commands under one name, such as `ekphory eval`."""

    name: str
    summary: str
    panel: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedCommands:
    """What another distribution adds to the command line."""

    entries: tuple[Entry, ...]
    groups: tuple[CommandGroup, ...]


_ENTRY = re.compile(r"^    (\w+)(?: \((.+?)\))?: (.*(?:\n {8}.*)*)", re.MULTILINE)
"""How a docstring tells of a parameter: its name, in brackets how it is typed, its help.

In brackets stand the names of an option, where it has others or must be given, and the word for
its value: `k (--k -k)`, `data (--data DIR)`, `now (TIME)`.
"""


def split_docstring(documented: object) -> tuple[str, str]:
    """Return what a docstring says of the whole, and what of each parameter."""
    whole, *parts = re.split(
        r"\n\n(?:Args|Attributes):\n", inspect.getdoc(documented) or "", maxsplit=1
    )
    return whole, "".join(parts)


def spread(function: Callable[..., object]) -> inspect.Signature:
    """Return the signature of a callable with each dataclass parameter replaced by its fields.

    The docstrings of both become the help of their parameters, so that typer sees one flat list:
    an argument where there is no default and a value may be given by its place, or where what
    stands for it is in brackets; else an option under the heading `PANEL`.

    Raises:
        TypeError: A docstring tells of what is no parameter.
    """
    flat: list[inspect.Parameter] = []
    told = {found[1]: found for found in _ENTRY.finditer(split_docstring(function)[1])}
    hints = get_type_hints(function, include_extras=True)
    if unknown := told.keys() - hints.keys():
        raise TypeError(f"{function.__name__}: {', '.join(unknown)} must be a parameter")
    for name, kind in hints.items():
        if is_dataclass(kind) and isinstance(kind, type):
            flat += spread(kind).parameters.values()
        elif name != "return":
            parameter = inspect.signature(function).parameters[name]
            if name in told:
                panel = getattr(function, "PANEL", None)
                kind = Annotated[kind, _make_option(parameter, told[name], panel)]
            flat.append(parameter.replace(annotation=kind, kind=inspect.Parameter.KEYWORD_ONLY))
    return inspect.Signature(flat, return_annotation=None)


def _make_option(
    parameter: inspect.Parameter, told: re.Match[str], panel: str | None
) -> ParameterInfo:
    typed = (told[2] or "").split()
    names = [word for word in typed if word.startswith("-")]
    value = " ".join(word for word in typed if word not in names)
    shown: dict[str, Any] = {"metavar": value or None, "help": " ".join(told[3].split())}
    shown["rich_help_panel"] = panel
    is_required = parameter.default is inspect.Parameter.empty
    if is_required and not names and parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
        return cast("ParameterInfo", typer.Argument(**shown))
    if value.startswith("["):
        return cast("ParameterInfo", typer.Argument(**shown, show_default=False))
    if parameter.default is False and not names:
        # A switch has no name by which to switch it off again.
        names = [f"--{parameter.name.replace('_', '-')}"]
    return cast("ParameterInfo", typer.Option(*names, **shown))


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


def command(function: Function) -> Function:
    """Make a function into a command that typer can register.

    One of its parameters is an `OutputOptions` or `FileOutputOptions`.
    """

    @wraps(function)
    def run(**given: Any) -> None:  # noqa: ANN401  typer gives every option by name
        arguments = gather(function, given)
        output = next(value for value in arguments.values() if isinstance(value, Output))
        with report_errors(output), warnings.catch_warnings():
            warnings.showwarning = _show_warning  # type: ignore[assignment]  # passes over the place
            function(**arguments)

    run.__doc__ = split_docstring(function)[0]
    run.__signature__ = spread(function)  # type: ignore[attr-defined]  # typer reads it
    return run


def _show_warning(message: Warning | str, *_: object) -> None:
    message_console().print(str(message), style="yellow")


Steps = Callable[[str, int, int], None]
Note = Callable[[str], None]


@contextmanager
def _show_progress(*columns: ProgressColumn) -> Iterator[Progress]:
    """Show progress on standard error while a long command runs, where that is a terminal."""
    console = message_console()
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        yield progress


class _RateColumn(ProgressColumn):
    """How much is done in a second."""

    def render(self, task: Task) -> Text:
        """Return it, once it is known."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f}/s")


@contextmanager
def step_bar() -> Iterator[Steps]:
    """Show a bar for each activity, with its rate and the time left.

    What it yields takes the activity, how much is done, and of how much.
    """
    columns = (BarColumn(), MofNCompleteColumn(), _RateColumn(), TimeRemainingColumn())
    left = TextColumn("left")
    with _show_progress(TextColumn("{task.description}"), *columns, left) as progress:
        tasks = {}

        def show(activity: str, done: int, total: int) -> None:
            if activity not in tasks:
                tasks[activity] = progress.add_task(activity, total=total)
            progress.update(tasks[activity], completed=done, total=total)

        yield show


@contextmanager
def show_note(opening: str) -> Iterator[Note]:
    """Show a moving bar with a note beside it, for work of unknown length."""
    with _show_progress(
        BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    ) as progress:
        task = progress.add_task(opening, total=None)
        yield lambda note: progress.update(task, description=note)
