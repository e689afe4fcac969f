"""Training files, small enough to read, that lie in the folder `files`."""

import json
from pathlib import Path

FOLDER = Path(__file__).parent / "files"


def text_of(name):
    return (FOLDER / name).read_text(encoding="utf-8")


ROWS = json.loads(text_of("rows.json"))["conversations"]
"""A row of each training file with conversations."""
READING = json.loads(text_of("rows.json"))["reading"]
"""A row of each file with passages."""
