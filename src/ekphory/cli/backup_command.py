"""`ekphory backup` and `restore`: a whole store, copied and put back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from ekphory.cli.command import command
from ekphory.cli.consoles import result_console
from ekphory.cli.json_output import print_json
from ekphory.cli.memory_counts import counted_memories
from ekphory.cli.options import OutputOptions
from ekphory.cli.progress import step_bar
from ekphory.config import read_settings

_MIB = 1 << 20

StoreOption = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        help="Directory of the store; else EKPHORY_STORE, else a folder in your data directory.",
    ),
]


@command
def backup(
    output: OutputOptions,
    target: Annotated[
        Path, typer.Option(metavar="DIR|FILE.tar", help="A new folder, or a new .tar file.")
    ],
    store: StoreOption = None,
    catalog: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The server's catalog, where it does not lie in the store."
        ),
    ] = None,
) -> None:
    """Copy a whole store, all scopes and the server's catalog, while others write.

    It holds every write that was acknowledged before it began.
    """
    from ekphory.backup import back_up

    with _copied_bytes() as tell:
        report = back_up(_named(store), target, catalog=catalog, on_progress=tell)
    if output.json:
        print_json(report)
        return
    counts = _counts(report.memories, report.history, report.files, report.bytes)
    result_console().print(f"{counts} backed up to {report.target}.", soft_wrap=True)


@command
def restore(
    output: OutputOptions,
    source: Annotated[
        Path, typer.Option(metavar="DIR|FILE.tar", help="What `ekphory backup` wrote.")
    ],
    store: StoreOption = None,
) -> None:
    """Make a new store of a backup, after every byte of it was checked.

    The store must not be there yet.
    """
    from ekphory.backup import restore as put_back

    with _copied_bytes() as tell:
        report = put_back(source, _named(store), on_progress=tell)
    if output.json:
        print_json(report)
        return
    counts = _counts(report.memories, report.history, report.files, report.bytes)
    result_console().print(f"{counts} restored to {report.store}.", soft_wrap=True)


def _named(store: str | None) -> str:
    return store or read_settings().store


@contextmanager
def _copied_bytes() -> Iterator[Callable[[int, int], None]]:
    with step_bar() as show:
        yield lambda done, total: show("MiB", done // _MIB, -(-total // _MIB))


def _counts(memories: int, history: int, files: int, size: int) -> str:
    return f"{counted_memories(memories, history)} ({files:,} files, {size / _MIB:,.1f} MiB)"
