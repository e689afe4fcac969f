"""The lines of an export: JSON, each with a sum of its own, between a header and an end.

    {"ekphory_export": 1, …, "memories": 2, "sum": "…"}
    {"id": "oven", "text": "The oven is broken", …, "versions": 1, "sum": "…"}
    {"id": "oven~1", …, "superseded_by": "oven", "sum": "…"}
    {"id": "sink", …, "versions": 0, "sum": "…"}
    {"ekphory_export_end": 1, "memories": 2, "versions": 1, "sha256": "…", "sum": "…"}

`docs/export.md` tells what they mean.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import fields
from operator import attrgetter
from typing import Any

from ekphory import legacy
from ekphory.errors import EkphoryError
from ekphory.types import MemoryRecord

FORMAT_VERSION = 1
HEADER_KEY = "ekphory_export"
END_KEY = "ekphory_export_end"
SUM_KEY = "sum"
VERSIONS_KEY = "versions"
FINGERPRINT_KEY = "fingerprint"

_NAMES = tuple(entry.name for entry in fields(MemoryRecord))
_MOMENTS = ("at", "created_at", "expires_at")
_values = attrgetter(*_NAMES)
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_SUM = re.compile(rb',"sum":"([0-9a-f]{16})"\}\Z')


class DamagedLine(EkphoryError, ValueError):
    """A line whose sum is missing or does not fit it."""


def encode_line(content: dict[str, Any]) -> bytes:
    """Give one line, with its sum and a line break."""
    body = _encode(content).encode()
    return body[:-1] + f',"{SUM_KEY}":"{_sum_of(body)}"}}\n'.encode()


def decode_line(line: bytes) -> dict[str, Any]:
    """Give the content of one line back, without its sum.

    Raises:
        DamagedLine: It was cut off or changed since it was written.
    """
    bare = line.rstrip(b"\r\n")
    found = _SUM.search(bare)
    if found is None:
        raise DamagedLine("cut off, or not a line of an export")
    body = bare[: found.start()] + b"}"
    if _sum_of(body).encode() != found[1]:
        raise DamagedLine("changed since it was written")
    try:
        content: dict[str, Any] = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise DamagedLine("not usable JSON") from error
    return legacy.current_keys(content)


def memory_content(record: MemoryRecord, fingerprint: str | None) -> dict[str, Any]:
    """Give every field of a memory in the form that JSON has; moments as ISO 8601 in UTC."""
    content: dict[str, Any] = dict(zip(_NAMES, _values(record), strict=True))
    content["predicted"] = sorted(record.predicted)
    content["metadata"] = dict(record.metadata)
    for name in _MOMENTS:
        if content[name] is not None:
            content[name] = content[name].isoformat()
    content[FINGERPRINT_KEY] = fingerprint
    return content


def _sum_of(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=8).hexdigest()
