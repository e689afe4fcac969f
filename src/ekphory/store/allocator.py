"""Keeps the C library from holding on to memory that Lance has given back."""

from __future__ import annotations

import ctypes
import os
import platform

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
