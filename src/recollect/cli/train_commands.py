"""`recollect train`: make the models that the package bundles."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recollect.cli.command import command
from recollect.cli.options import OutputOptions


@command
def export(
    source: Annotated[
        Path, typer.Option(metavar="DIR", help="Directory of a sentence-transformers model.")
    ],
    target: Annotated[Path, typer.Option(metavar="DIR", help="Where the exported model goes.")],
    output: OutputOptions,
) -> None:
    """Export a sentence-transformers model to a quantised ONNX model."""
    raise NotImplementedError
