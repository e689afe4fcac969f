"""Features: what is known about a user or a topic, and how one is kept as a memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ekphory.service.wire_names import shown_metadata, stored_key, stored_metadata
from ekphory.types import MemoryRecord

_CATEGORY, _TAG, _NAME = "feature:category", "feature:tag", "feature:name"
_CITATIONS = "feature:citations"
_OWN_KEYS = (_CATEGORY, _TAG, _NAME, _CITATIONS)
_FILTERED = {"category": _CATEGORY, "tag": _TAG, "feature_name": _NAME, "feature": _NAME}
"""What a filter calls a part of a feature, as a metadata key: `m.category = 'profile'`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One thing that is known.

    Attributes:
        id: Its name; empty before it is added.
        set_id: The set it belongs to.
        category, tag, name: Where it stands in its set, such as profile, food, favourite dish.
        value: What is known, such as pizza.
        metadata: The caller's own.
        citations: Ids of the episodes that it was learnt from.
    """

    id: str = ""
    set_id: str
    category: str
    tag: str
    name: str
    value: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    citations: tuple[str, ...] = ()


def feature_key(key: str) -> str:
    """Give the name under which a feature's metadata key is stored."""
    return _FILTERED.get(key) or stored_key(key)


def as_text(value: object) -> str:
    """Give a JSON value as the text that metadata keeps."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def memory_fields(feature: Feature) -> dict[str, Any]:
    """Give what a feature is kept as: `favourite dish: pizza`, with its parts as metadata."""
    own = {
        _CATEGORY: feature.category,
        _TAG: feature.tag,
        _NAME: feature.name,
        _CITATIONS: json.dumps(list(feature.citations)),
    }
    return {
        "text": _lead(feature.name) + feature.value,
        "metadata": {**stored_metadata(feature.metadata), **own},
    }


def is_feature(record: MemoryRecord) -> bool:
    """Whether a memory keeps a feature."""
    return all(name in record.metadata for name in _OWN_KEYS)


def feature_of(record: MemoryRecord) -> Feature:
    """Give back the feature that a memory keeps."""
    own = {name: str(record.metadata[name]) for name in _OWN_KEYS}
    others = {key: value for key, value in record.metadata.items() if key not in _OWN_KEYS}
    return Feature(
        id=record.id,
        set_id=record.session or "",
        category=own[_CATEGORY],
        tag=own[_TAG],
        name=own[_NAME],
        value=record.text.removeprefix(_lead(own[_NAME])),
        metadata=shown_metadata(others),
        citations=tuple(json.loads(own[_CITATIONS])),
    )


def _lead(name: str) -> str:
    """Give a name as words, for the search to find it by: `favourite_dish` has two of them."""
    return f"{name.replace('_', ' ')}: "
