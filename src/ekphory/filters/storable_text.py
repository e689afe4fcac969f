"""Which texts can be stored and compared in every store."""

from __future__ import annotations

import re

_UNSTORABLE = re.compile("[\\x00\\ud800-\\udfff]")


def is_storable(text: str) -> bool:
    """Say whether `text` is free of NUL and of lone surrogates, which UTF-8 cannot carry."""
    return _UNSTORABLE.search(text) is None
