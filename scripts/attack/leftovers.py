"""What a purged store still holds of texts, in files that Lance compressed as well."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import lancedb

from ekphory.store.lance_table import list_needed_files

TOKEN = re.compile(rb"zq[0-9a-f]{16}qz")
"""Marks the texts of an attack, so that each is found wherever it lies."""


def tokens_in(texts: list[str]) -> set[bytes]:
    """Return the tokens that these texts hold."""
    return {token for text in texts for token in TOKEN.findall(text.encode())}


def tokens_left(store: Path) -> set[bytes]:
    """Return the tokens of all files, and of all rows that the files hold once decoded."""
    found = {token for path in _files(store) for token in TOKEN.findall(path.read_bytes())}
    table = lancedb.connect(store).open_table("memories")
    for name in table.schema.names:
        if name != "vector":
            values = table.search().limit(2**31 - 1).select([name]).to_arrow()[name].to_pylist()
            found |= set(TOKEN.findall(repr(values).encode()))
    return found


def files_too_many(store: Path) -> list[str]:
    """Return the files of rows that the one version left does not need, or that hide rows.

    Where there are none, the rows that can be read are all that the files hold.
    """
    table = store / "memories.lance"
    manifests = sorted((table / "_versions").glob("*.manifest"))
    needed = {
        path for each in manifests[:1] for path in list_needed_files(table, each.read_bytes())
    }
    rest = {"_versions", "_transactions"}
    return [
        path.relative_to(store).as_posix()
        for path in (*_files(table), *manifests[1:])
        if path in manifests[1:]
        or "_deletions" in path.parts
        or (path not in needed and path.parent.name not in rest)
        or path.name.startswith(".tmp")
    ]


def bytes_of(store: Path) -> int:
    """Return the size of all files."""
    return sum(path.stat().st_size for path in _files(store))


def require(tool: str) -> None:
    """Check that a program of the system is installed.

    Raises:
        SystemExit: It is not.
    """
    if shutil.which(tool) is None:
        raise SystemExit(f"{tool} is not installed, and this attack needs it. Install it first.")


def require_tracing() -> None:
    """Check that processes can be traced here.

    Raises:
        SystemExit: strace is missing, or the system forbids it.
    """
    require("strace")
    tried = subprocess.run(
        ["strace", "-o", "/dev/null", "true"], capture_output=True, text=True, check=False
    )
    if tried.returncode != 0:
        raise SystemExit(f"strace cannot trace processes here: {tried.stderr.strip()}")


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
