"""Progress on standard error, while a long command runs on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ekphory.cli.consoles import message_console

Steps = Callable[[str, int, int], None]
Note = Callable[[str], None]


@contextmanager
def step_bar() -> Iterator[Steps]:
    """Show a bar for each activity; is told the activity, how much is done, and of how much."""
    console = message_console()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        tasks = {}

        def show(activity: str, done: int, total: int) -> None:
            if activity not in tasks:
                tasks[activity] = bar.add_task(activity, total=total)
            bar.update(tasks[activity], completed=done, total=total)

        yield show


@contextmanager
def running_note(opening: str) -> Iterator[Note]:
    """Show a moving bar with a note beside it, for work of unknown length."""
    console = message_console()
    columns = (BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(opening, total=None)

        def show(note: str) -> None:
            bar.update(task, description=note)

        yield show
