"""Halves of surrogate pairs: JSON can write them, but no store and no answer can carry them."""

from __future__ import annotations

import json
import re

_SUSPICIOUS = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")


def holds_half_characters(body: bytes) -> bool:
    r"""Whether a JSON body holds half of a surrogate pair, such as `"\ud800"`."""
    if not _SUSPICIOUS.search(body):
        return False
    try:
        json.dumps(json.loads(body), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except (ValueError, RecursionError):
        # No JSON that anybody will read: told where it is parsed.
        return False
    return False
