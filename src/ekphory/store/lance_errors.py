"""What LanceDB raises, turned into errors that say what was being done, where, and what helps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from ekphory.errors import EkphoryError, StoreError

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
    """Give the first line of what Lance says, without the place in its source."""
    if type(error).__name__ in ("PanicException", "RustPanic"):
        return "a file of it is damaged, so that reading it broke off"
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return re.sub(r",? ?/\S+\.rs:\d+:\d+", "", line).rstrip(". ")
