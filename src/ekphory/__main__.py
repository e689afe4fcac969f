"""`python -m ekphory`, and the `ekphory` command."""

from __future__ import annotations

import sys

from ekphory.resident import run_command


def main() -> None:
    """Let the resident process run the command line, or run it here; ends with its exit code."""
    status = run_command(sys.argv[1:])
    if status is None:
        from ekphory.cli.app import main as run_here  # slow to load

        run_here()
    sys.exit(status)


if __name__ == "__main__":
    main()
