"""Connections to LanceDB, also in a process that was forked from one that had used it."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import tempfile
import warnings
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

from ekphory.errors import StoreError
from ekphory.fork_safe import ForkSafeLock

if TYPE_CHECKING:
    import lancedb

_PACKAGE = "lancedb"
_NATIVE = "lancedb._lancedb"
_METADATA_BYTES = 64 * 2**20
"""Lance keeps what it knows of every version for its readers: by default up to a gigabyte."""
_guard = ForkSafeLock()
_process: int | None = None
"""Which process has used the library that is loaded; None if none has."""

# What it warns of is what `_load_anew` prevents.
warnings.filterwarnings("ignore", message="lancedb fork support is experimental")


def connect(uri: str) -> lancedb.db.DBConnection:
    """Connect to the Lance database at `uri`.

    Raises:
        StoreError: This process was forked, and the library could not be loaded for it.
    """
    global _process
    with _guard:
        if _process not in (None, os.getpid()):
            _load_anew()
        _process = os.getpid()
        package = importlib.import_module(_PACKAGE)
        session = package.Session(metadata_cache_size_bytes=_METADATA_BYTES)
        connection: lancedb.db.DBConnection = package.connect(uri, session=session)
        return connection


def _load_anew() -> None:
    """Load LanceDB's library a second time, as a fork cannot use the one that it inherited.

    Threads of the parent wait in a table of the library (parking_lot's). In a fork they are gone,
    but the table still points to their memory, which new threads are given: the fork crashes or
    hangs (decision 0020). A library from another file has a table of its own.
    """
    inherited = Path(str(sys.modules[_NATIVE].__file__))
    for name in [name for name in sys.modules if name.partition(".")[0] == _PACKAGE]:
        del sys.modules[name]
    try:
        with tempfile.TemporaryDirectory(prefix="ekphory-fork-") as directory:
            copied = shutil.copyfile(inherited, Path(directory) / inherited.name)
            _load_native(copied)
            # A fork of this process takes the same file.
            sys.modules[_NATIVE].__file__ = str(inherited)
    except OSError as error:
        raise StoreError(
            f"{inherited}: could not be loaded anew for this forked process ({error}). Make "
            f"{inherited.stat().st_size >> 20} MiB free in {tempfile.gettempdir()}, or start the "
            "process with multiprocessing's 'spawn' or 'forkserver'."
        ) from error


def _load_native(path: Path) -> None:
    loader = ExtensionFileLoader(_NATIVE, str(path))
    spec = spec_from_file_location(_NATIVE, path, loader=loader)
    if spec is None:
        raise OSError(f"{path} is no module")
    module = module_from_spec(spec)
    sys.modules[_NATIVE] = module
    loader.exec_module(module)
