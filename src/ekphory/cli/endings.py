"""How a command ends: every error becomes one sentence and an exit code."""

from __future__ import annotations

import errno
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from ekphory.cli.consoles import discard_results, message_console
from ekphory.cli.json_output import error_json, print_json
from ekphory.cli.options import Output
from ekphory.errors import EkphoryError

FAILED = 1
INTERRUPTED = 130
_SAFE = (
    "Interrupted. What was acknowledged is stored and complete; "
    "nothing is half written, and the command can be run again."
)


@contextmanager
def ended_in_words(output: Output) -> Iterator[None]:
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
        discard_results()
        raise typer.Exit(0) from None
    except KeyboardInterrupt as interruption:
        message = str(interruption) or _SAFE
        raise _exit(interruption, message, output, code=INTERRUPTED) from None
    except EkphoryError as error:
        raise _exit(error, str(error), output, code=FAILED) from None
    except OSError as error:
        raise _exit(error, _of_the_system(error), output, code=FAILED) from None
    except Exception as error:  # noqa: BLE001  the outermost boundary
        message = (
            f"Unexpected {type(error).__name__}: {error}. This is a defect of ekphory; "
            "run the command again with --debug and report what it shows."
        )
        raise _exit(error, message, output, code=FAILED) from None


def _exit(error: BaseException, message: str, output: Output, *, code: int) -> typer.Exit:
    console = message_console()
    if output.debug:
        console.print("".join(traceback.format_exception(error)).rstrip(), style="dim")
    console.print(message, style="red")
    if output.json:
        print_json(error_json(error, message))
    return typer.Exit(code)


def _of_the_system(error: OSError) -> str:
    what = error.strerror or str(error)
    where = f"{error.filename}: " if error.filename else ""
    remedy = "Free some space" if error.errno == errno.ENOSPC else "Check the path and its rights"
    return f"{where}{what}. {remedy}."
