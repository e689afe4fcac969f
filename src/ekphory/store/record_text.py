"""A whole memory as one JSON text: a hit is read from one column instead of twenty-four."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields
from datetime import UTC, datetime, timedelta
from typing import Any

from ekphory.types import MemoryRecord

_MOMENTS = ("at", "created_at", "expires_at")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DEFAULTS = {
    entry.name: entry.default for entry in fields(MemoryRecord) if entry.default is not MISSING
}


def encode_record(record: MemoryRecord) -> str:
    """Give the JSON text; fields that have their default are left out."""
    content: dict[str, Any] = {
        entry.name: getattr(record, entry.name) for entry in fields(MemoryRecord)
    }
    content["metadata"] = dict(record.metadata)
    if record.predicted:
        content["predicted"] = sorted(record.predicted)
    for name in _MOMENTS:
        if content[name] is not None:
            content[name] = (content[name] - _EPOCH) // _MICROSECOND
    kept = {
        name: value
        for name, value in content.items()
        if name not in _DEFAULTS or value != _DEFAULTS[name]
    }
    return json.dumps(kept, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def decode_record(text: str) -> MemoryRecord:
    """Give the memory back from the text that `encode_record` gave."""
    content: dict[str, Any] = json.loads(text)
    for name in _MOMENTS:
        if name in content:
            content[name] = _EPOCH + content[name] * _MICROSECOND
    if "predicted" in content:
        content["predicted"] = frozenset(content["predicted"])
    return MemoryRecord(**content)
