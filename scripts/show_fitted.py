"""Print what the package's fitted files say was measured of them, as one JSON document."""

from __future__ import annotations

import json

from ekphory.retrieval.calibration import FITTED


def measured() -> dict[str, dict[str, float]]:
    """Return what each file says was measured, by the file's name."""
    files = sorted(FITTED.glob("*.json"))
    return {file.stem: json.loads(file.read_text(encoding="utf-8"))["measured"] for file in files}


if __name__ == "__main__":
    print(json.dumps(measured()))
