"""Where output goes: results to standard output, all else to standard error."""

from __future__ import annotations

import os
import sys

from rich.console import Console

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


def discard_results() -> None:
    """Send what is still buffered nowhere, once the reader of the pipe is gone."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def make_unprintable_harmless() -> None:
    """Let characters that the terminal's encoding lacks be shown escaped, not end the command."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
