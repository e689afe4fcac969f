"""What a training run was made from: enough to repeat it."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from recollect import __version__
from recollect.training.embedder_config import EmbedderConfig
from recollect.training.training_rows import sha256_of

MANIFEST_FILE = "manifest.json"
_LIBRARIES = ("torch", "transformers", "numpy", "bm25s")
_WEIGHTS = "model.safetensors"


def run_manifest(
    config: EmbedderConfig, *, base: Path, hashes: Mapping[str, str]
) -> dict[str, Any]:
    """Describe a run before its first step.

    Args:
        config: The configuration.
        base: Directory of the base weights.
        hashes: SHA-256 of the data files, by name.
    """
    return {
        "config": asdict(config),
        "seed": config.seed,
        "base": {"directory": base.name, "sha256": sha256_of(base / _WEIGHTS)},
        "data": dict(hashes),
        "commit": _commit(),
        "recollect": __version__,
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in _LIBRARIES},
    }


def write_manifest(manifest: Mapping[str, Any], directory: Path) -> None:
    """Write `manifest.json`."""
    path = directory / MANIFEST_FILE
    path.write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n", "utf-8")


def _commit() -> str | None:
    git = shutil.which("git")
    if git is None:
        return None
    asked = subprocess.run(  # noqa: S603  a fixed command on our own checkout
        [git, "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=40"],
        capture_output=True,
        text=True,
        check=False,
    )
    return asked.stdout.strip() or None
