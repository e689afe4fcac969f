"""What LanceDB raises, turned into errors that say what was being done, where, and what helps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from recollect.errors import InvalidInput, StoreError

Result = TypeVar("Result")

_READ_ATTEMPTS = 5


@contextmanager
def told(verb: str, uri: str) -> Iterator[None]:
    """Turn what LanceDB raises within the block into a `StoreError`."""
    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise StoreError(
            f"{uri}: cannot {verb} the store: {_cause(error)}. "
            "Check the disk's space and the directory's permissions; "
            "`recollect doctor` tells the state of the store."
        ) from error


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


def _cause(error: BaseException) -> str:
    """Give the first line of what Lance says, without the place in its source."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return re.sub(r",? ?/\S+\.rs:\d+:\d+", "", line).rstrip(". ")
