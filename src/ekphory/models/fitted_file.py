"""Files of fitted constants: what an `ekphory train` command found, and what it holds for.

Each file is written by the command that it names. It says which models the constants belong to, the
hashes of what they were fitted on, the seed, and the error that was measured.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ekphory.atomic_write import put_in_place
from ekphory.errors import ModelError

FITTED = Path(__file__).parents[1] / "fitted"
"""The folder of the package's own files."""
_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedFile:
    """Fitted constants and where they come from.

    Attributes:
        kind: What they are: `probabilities`, `gate` or `agent`.
        command: The command that writes the file.
        models: `name@revision` of each model that they hold for, by its role.
        data: SHA-256 of what they were fitted on, by its name.
        seed: Of whatever was drawn.
        measured: Errors on what was held back, by name.
        values: The constants.
    """

    kind: str
    command: str
    models: Mapping[str, str]
    data: Mapping[str, str]
    seed: int
    measured: Mapping[str, float] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)


def write_fitted(path: Path, file: FittedFile) -> None:
    """Write the file that `read_fitted` reads; what was there is replaced in one step."""
    content = {"format": _FORMAT, **asdict(file)}
    text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(text + "\n", encoding="utf-8")
    put_in_place(part, path)


def read_fitted(path: Path, *, kind: str) -> FittedFile:
    """Read fitted constants.

    Raises:
        ModelError: There is no such file, it cannot be read, or it holds something else.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content.pop("format") != _FORMAT or content["kind"] != kind:
            raise ValueError(f"must be of format {_FORMAT} and kind {kind!r}")
        return FittedFile(**content)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ModelError(
            f"{path}: must be a file of fitted constants of kind {kind!r} "
            f"({type(error).__name__}: {error}). Write it anew with `ekphory train`, or install "
            "the package again."
        ) from error


def require_models(file: FittedFile, used: Mapping[str, str]) -> None:
    """Refuse constants that were fitted for another model.

    Args:
        file: What was read.
        used: `name@revision` of the models in use, by their role.

    Raises:
        ModelError: One of them is not the model that the constants hold for.
    """
    for role, model in used.items():
        fitted = file.models.get(role)
        if fitted != model:
            raise ModelError(
                f"{file.kind}: the constants were fitted for the {role} {fitted}, and {model} is "
                f"in use. Fit them anew with `{file.command}`."
            )
