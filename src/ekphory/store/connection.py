"""Connections to LanceDB, and what it raises, translated."""

from __future__ import annotations

import ctypes
import importlib
import os
import platform
import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from ekphory.errors import EkphoryError, StoreError
from ekphory.threads import ForkSafeLock

if TYPE_CHECKING:
    import lancedb


# Keeps the C library from holding on to memory that Lance has given back.

_ARENA_MAX = -8
_MMAP_THRESHOLD = -3
_ARENAS = 2
_LARGE = 256 * 1024


def bound_memory() -> None:
    """Set two limits of glibc's allocator for this process; elsewhere, do nothing.

    Lance reads on many threads. By default each gets a pool of its own, which keeps what is freed,
    and freed blocks of up to 32 MiB stay in the pools: half as much again as is in use (decision
    0007). What the environment sets (`MALLOC_ARENA_MAX`, `MALLOC_MMAP_THRESHOLD_`) stands.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    library = ctypes.CDLL(None)
    if "MALLOC_ARENA_MAX" not in os.environ:
        library.mallopt(_ARENA_MAX, _ARENAS)
    if "MALLOC_MMAP_THRESHOLD_" not in os.environ:
        library.mallopt(_MMAP_THRESHOLD, _LARGE)


# What LanceDB raises, turned into errors that say what was being done, where, and what helps.

Given = ParamSpec("Given")
Result = TypeVar("Result")

_READ_ATTEMPTS = 5


@contextmanager
def told(verb: str, uri: str) -> Iterator[None]:
    """Turn whatever LanceDB raises within the block, panics included, into a `StoreError`."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, EkphoryError) or not _is_of_lance(error):
            raise
        raise StoreError(
            f"{uri}: cannot {verb} the store: {cause_of(error)}. "
            "Check the disk's space and the directory's permissions; "
            "`ekphory doctor --verify` names what is damaged, and `ekphory restore` brings a "
            "backup back."
        ) from error


def tells(verb: str) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]:
    """Make a method of an object with a `_uri` tell what it raises as `told` does."""

    def telling(method: Callable[Given, Result]) -> Callable[Given, Result]:
        @wraps(method)
        def call(*arguments: Given.args, **options: Given.kwargs) -> Result:
            owner: Any = arguments[0]
            with told(verb, owner._uri):
                return method(*arguments, **options)

        return call

    return telling


def read_anew(uri: str, read: Callable[[], Result], *, renew: Callable[[], object]) -> Result:
    """Read, and once more at the newest version where files of an older one are gone.

    Another process may purge or repair the store between the choice of a version and its reading.
    """
    for _ in range(_READ_ATTEMPTS - 1):
        try:
            with told("read", uri):
                return read()
        except StoreError as error:
            if "not found" not in str(error).lower():
                raise
        with told("read", uri):
            renew()
    with told("read", uri):
        return read()


def _is_of_lance(error: BaseException) -> bool:
    # A panic in Rust derives from BaseException alone, as does what ends a program.
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def cause_of(error: BaseException) -> str:
    """Return the first line of what Lance says, without the place in its source."""
    if type(error).__name__ in ("PanicException", "RustPanic"):
        return "a file of it is damaged, so that reading it broke off"
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return re.sub(r",? ?/\S+\.rs:\d+:\d+", "", line).rstrip(". ")


# Connections to LanceDB, also in a process that was forked from one that had used it.

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
        raise OSError(f"{path} must be a module")
    module = module_from_spec(spec)
    sys.modules[_NATIVE] = module
    loader.exec_module(module)
