"""The guard of everything that the extra `[docs]` installs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ekphory.errors import MissingExtra


@contextmanager
def from_docs_extra(purpose: str) -> Iterator[None]:
    """Import what `[docs]` installs.

    Args:
        purpose: What it is needed for, as the beginning of a sentence: `Reading PDF files`.

    Raises:
        MissingExtra: It is not installed.
    """
    try:
        yield
    except ImportError as error:
        raise MissingExtra("docs", purpose) from error
