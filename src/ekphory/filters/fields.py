"""Which fields of a memory a filter may name, and what kind of value each holds."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Literal

FieldKind = Literal["text", "number", "integer", "moment"]

FIELD_KINDS: Mapping[str, FieldKind] = MappingProxyType(
    {
        "id": "text",
        "text": "text",
        "at": "moment",
        "created_at": "moment",
        "expires_at": "moment",
        "org": "text",
        "project": "text",
        "agent": "text",
        "user": "text",
        "session": "text",
        "pool": "text",
        "type": "text",
        "importance": "number",
        "producer": "text",
        "produced_for": "text",
        "role": "text",
        "sequence": "integer",
        "parent_id": "text",
        "path": "text",
        "heading": "text",
        "lines": "text",
        "source": "text",
        "supersedes": "text",
        "superseded_by": "text",
    }
)
"""Every filterable field of `MemoryRecord` by name; metadata keys are not listed here."""

FIELD_ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "producer_id": "producer",
        "produced_for_id": "produced_for",
        "producer_role": "role",
        "timestamp": "at",
        "uid": "id",
    }
)
"""Names that MemMachine's clients use, and the field of ours that each means."""


def resolve_field(name: str) -> str | None:
    """Give the name in `MemoryRecord` that `name` stands for, or None where there is none."""
    resolved = FIELD_ALIASES.get(name, name)
    return resolved if resolved in FIELD_KINDS else None


def nearest_field(name: str) -> str | None:
    """Give the known field whose name looks most like `name`, or None where none is near."""
    known = [*FIELD_KINDS, *FIELD_ALIASES]
    near = get_close_matches(name[:100].lower(), known, n=1)
    return near[0] if near else None
