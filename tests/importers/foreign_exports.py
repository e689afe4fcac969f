"""Exports of other products, written by hand after their documentation."""

import shutil
from pathlib import Path

EXPORTS = Path(__file__).parent / "exports"


def split(found):
    """Return what was read and what was not."""
    records = [entry.fields for entry in found if hasattr(entry, "fields")]
    return records, [entry for entry in found if not hasattr(entry, "fields")]


def copied(name, folder):
    """Return a copy of an export, beside which failures may be listed."""
    return Path(shutil.copy(EXPORTS / name, folder))
