"""The files of a training run beside its model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ekphory.errors import InvalidInput
from ekphory.training.run_manifest import MANIFEST_FILE, write_manifest

CHECKPOINT_FILE = "checkpoint.pt"
LOSSES_FILE = "losses.jsonl"
MODEL_FOLDER = "model"


def claim_folder(target: Path, manifest: Mapping[str, Any]) -> None:
    """Write the manifest of a new run, or compare that of the run which is there.

    Raises:
        InvalidInput: The folder holds a run with another configuration, data or base.
    """
    path = target / MANIFEST_FILE
    if not path.is_file():
        write_manifest(manifest, target)
        return
    written = json.loads(path.read_text(encoding="utf-8"))
    same = json.loads(json.dumps({name: manifest[name] for name in ("config", "data", "base")}))
    different = [name for name, value in same.items() if written.get(name) != value]
    if different:
        raise InvalidInput(
            "target",
            str(target),
            f"holds a run with another {' and '.join(different)}",
            "Give an empty folder, or the settings of that run.",
        )


def note_loss(target: Path, step: int, loss: float, *, read: Mapping[str, int]) -> None:
    """Add a line for one step, with how many texts or pairs it read."""
    line = json.dumps({"step": step, "loss": round(loss, 5), **read})
    append_line(target / LOSSES_FILE, line)


def forget_losses(target: Path, *, after: int) -> None:
    """Drop the lines of steps that were taken after the checkpoint and are taken again."""
    path = target / LOSSES_FILE
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:after]), encoding="utf-8")


def append_line(path: Path, line: str) -> None:
    """Add a line to a file."""
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")
