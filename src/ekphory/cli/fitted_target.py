"""Where an `ekphory train` command writes the constants that it fitted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ekphory.errors import InvalidInput
from ekphory.models.fitted_file import FITTED

TargetOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Where the constants are written; in a checkout the package's own file, "
        "else to be given.",
    ),
]


def fitted_target(given: Path | None, name: str, *, folder: Path = FITTED) -> Path:
    """Return the file to write: the one given, in a checkout else the package's own.

    Args:
        given: What the caller asks for.
        name: File name of the package's own.
        folder: Where the package keeps its own.

    Raises:
        InvalidInput: None is given, and the package is not a checkout: an installed package is not
            written to unasked.
    """
    if given is not None:
        return given
    if not (folder.parents[2] / "pyproject.toml").is_file():
        raise InvalidInput(
            "target",
            given,
            "must be given: this is an installed package, whose files are left alone",
            f"Give --target {name}",
        )
    return folder / name
