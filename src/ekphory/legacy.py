"""Names that were written before the package was called ekphory.

It was called recollect then. Stores, exports, backups, keys, blocks and model folders of that time
are read as those of today; nothing is written under an old name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

PRODUCT_NAMES = ("ekphory", "recollect")
"""The names under which a block of recalled memories may have been written."""
KEY_PREFIXES = ("ek_", "rk_")
"""What an access key begins with."""
EXPORT_HEADER = "recollect_export"
"""The key by which an export is known."""

_TABLE_PREFIX, _OLD_TABLE_PREFIX = "ekphory.", "recollect."
_KEYS = {
    EXPORT_HEADER: "ekphory_export",
    "recollect_export_end": "ekphory_export_end",
    "recollect_backup": "ekphory_backup",
    "recollect": "ekphory",
}
_MODELS = {
    "recollect-small": "ekphory-small",
    "recollect-rerank-small": "ekphory-rerank-small",
    "recollect-rerank-tiny": "ekphory-rerank-tiny",
}
_FILES = {
    ".ekphory.state.json": ".recollect.state.json",
    "ekphory-backup.json": "recollect-backup.json",
    "ekphory_components.safetensors": "recollect_components.safetensors",
    "ekphory_reranker.safetensors": "recollect_reranker.safetensors",
}


def rename_keys(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line of an export, or the list of a backup, with the keys of today."""
    return {_KEYS.get(key, key): value for key, value in content.items()}


def rename_model(name: str) -> str:
    """Return the name that a bundled model has today."""
    return _MODELS.get(name, name)


def rename_table_metadata(entries: Mapping[str, str]) -> dict[str, str]:
    """Return the metadata of a table's schema under the keys of today."""
    return {
        key.replace(_OLD_TABLE_PREFIX, _TABLE_PREFIX, 1): value for key, value in entries.items()
    }


def find_written_name(name: str, is_there: Callable[[str], bool]) -> str:
    """Return the name under which a file was written: its own, or the one it once had."""
    old = _FILES[name]
    return old if not is_there(name) and is_there(old) else name


def adopt_file(path: Path) -> Path:
    """Rename a file that has its old name; return where it lies.

    Where it cannot be renamed, as in a folder that may only be read, it stays where it is.
    """
    old = path.with_name(_FILES[path.name])
    if not path.exists() and old.exists():
        with suppress(OSError):
            old.replace(path)
    return old if not path.exists() and old.exists() else path


def choose_data_folder(current: Path) -> Path:
    """Return the user's data folder: the one of today, or the one of old if only that is there."""
    old = current.with_name("recollect")
    return old if not current.exists() and old.exists() else current
