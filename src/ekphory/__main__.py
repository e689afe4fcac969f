"""`python -m ekphory`, and the `ekphory` command."""

from __future__ import annotations

import sys

from ekphory.resident import run_command

_WRONG_COMMAND_LINE, _FAILED = 2, 1


def main() -> None:
    """Let the resident process run the command line, or run it here; ends with its exit code."""
    try:
        _run()
    except SystemExit as ended:
        # By 2 a hook forbids what its host was about to do. A configuration may name an option
        # that another version has.
        if sys.argv[1:3] == ["hook", "run"] and ended.code == _WRONG_COMMAND_LINE:
            sys.exit(_FAILED)
        raise


def _run() -> None:
    status = run_command(sys.argv[1:])
    if status is None:
        from ekphory.cli.app import main as run_here  # slow to load

        run_here()
    sys.exit(status)


if __name__ == "__main__":
    main()
