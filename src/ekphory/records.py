"""What a caller writes: checked field by field, and turned into a memory of the handle's scope."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ekphory.errors import InvalidInput, ScopeError
from ekphory.prompting.recall_block import without_recalled
from ekphory.scope import LONGEST_NAME, SCOPE_FIELDS, Scope
from ekphory.timestamps import to_microseconds, to_utc
from ekphory.types import (
    DEFAULT_POOL,
    MEMORY_TYPES,
    MemoryRecord,
    Predictable,
    Scalar,
    encode_metadata,
    is_storable,
)

LONGEST_TEXT = 1_000_000
_BEFORE_1970 = 1 << 46
"""Added to milliseconds since 1970, so that earlier moments sort first too."""
_POOL_NAME = re.compile(r"[\w][\w.:-]{0,99}")
_OPTIONAL_TEXTS = ("parent_id", "path", "heading", "lines", "source")
_TEXTS = ("producer", "produced_for", "role")
_PREDICTABLE: frozenset[Predictable] = frozenset({"type", "importance"})
_WRITABLE = (
    "id text at expires_at org project agent user session pool type importance predicted "
    "producer produced_for role sequence parent_id path heading lines source metadata"
).split()


@dataclass(frozen=True, slots=True)
class Draft:
    """A checked record that has not been written yet.

    Attributes:
        record: The memory as it will be stored.
        thread: Number of its session within its scope; 0 for none.
        fingerprint: Digest of all that identifies a record without an id; None where the caller
            gave an id, which then alone decides.
        left_out: Which of `type` and `importance` the caller did not give, so that a model may.
    """

    record: MemoryRecord
    thread: int
    fingerprint: str | None
    left_out: frozenset[Predictable] = frozenset()

    @property
    def is_only_recalled(self) -> bool:
        """Whether the text held nothing but recalled memories, so that nothing is to be stored."""
        return not self.record.text.strip()


def draft(given: Mapping[str, Any], *, scope: Scope, now: datetime, occurrence: int = 0) -> Draft:
    """Check one record, and take recalled memories out of its text.

    Args:
        given: Field names of `MemoryRecord` and their values; only `text` is required. `predicted`
            marks those of the given values that a model predicted, as a listing does.
        scope: The handle's scope; its bound fields are filled in.
        now: The moment of writing; also when it happened, where `at` is not given.
        occurrence: Tells apart repeated records without an id that are meant to be repeated.

    Raises:
        InvalidInput: A field is unknown or has a value that cannot be stored.
        ScopeError: The record tries to leave the scope.
    """
    if not isinstance(given, Mapping):
        raise InvalidInput("record", given, "a record is a dict", 'Give {"text": "…"}')
    values = {name: value for name, value in given.items() if value is not None}
    _refuse_unknown(values)
    text = without_recalled(_text(values.get("text")))
    owner = {name: scope.fill(name, _name(values, name)) for name in SCOPE_FIELDS}
    at = to_utc(values["at"], field="at") if "at" in values else None
    sequence = _sequence(values.get("sequence"))
    fields: dict[str, Any] = {
        **owner,
        **{name: _optional(values, name, "") for name in _TEXTS},
        **{name: _optional(values, name, None) for name in _OPTIONAL_TEXTS},
        "text": text,
        "pool": _pool(values.get("pool", DEFAULT_POOL)),
        "type": _type(values.get("type", "unknown")),
        "importance": _importance(values.get("importance", 0.5)),
        "predicted": _predicted(values.get("predicted", ())).intersection(values),
        "sequence": sequence,
        "metadata": _metadata(values.get("metadata", {})),
        "expires_at": _expiry(values, now),
    }
    identity = (*owner.values(), fields["producer"], text, _moment_key(at), sequence, occurrence)
    fingerprint = None if "id" in values else _fingerprint(identity)
    memory_id = _own_id(at or now, fingerprint) if fingerprint else _id(values["id"])
    record = MemoryRecord(id=memory_id, at=at or now, created_at=now, **fields)
    return Draft(record, thread_of(record), fingerprint, _PREDICTABLE - values.keys())


def _refuse_unknown(values: Mapping[str, Any]) -> None:
    for name in values:
        if name not in _WRITABLE:
            near = difflib.get_close_matches(str(name), _WRITABLE, n=1)
            hint = f"Did you mean {near[0]!r}? " if near else ""
            raise InvalidInput(
                str(name), values[name], "no such field", f"{hint}Your own fields go into metadata"
            )


def _storable(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidInput(name, value, f"must be a string, not {type(value).__name__}", "Give one")
    if not is_storable(value):
        raise InvalidInput(
            name,
            value,
            "holds NUL or half of a surrogate pair, which UTF-8 cannot carry",
            "Remove them, for example with text.encode('utf-8', 'ignore').decode()",
        )
    return value


def _text(value: object) -> str:
    text = _storable("text", "" if value is None else value)
    if not text.strip():
        raise InvalidInput("text", text, "is empty", "Give the text to remember")
    if len(text) > LONGEST_TEXT:
        raise InvalidInput(
            "text",
            text,
            f"has {len(text):,} characters, more than {LONGEST_TEXT:,}",
            "Split it, or import it as a document with `ekphory import`",
        )
    return text


def _id(value: object) -> str:
    memory_id = _storable("id", value)
    if not memory_id or len(memory_id) > LONGEST_NAME:
        raise InvalidInput(
            "id", memory_id, f"has {len(memory_id)} characters", f"Give 1 to {LONGEST_NAME:,}"
        )
    return memory_id


def _name(values: Mapping[str, Any], name: str) -> str | None:
    if name not in values:
        return None
    value = _storable(name, values[name])
    if not value.strip() or len(value) > LONGEST_NAME:
        raise InvalidInput(name, value, "a scope field is non-empty text", "Leave it out to unbind")
    return value


def _optional(values: Mapping[str, Any], name: str, missing: str | None) -> str | None:
    return _storable(name, values[name]) if name in values else missing


def _sequence(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**62:
        raise InvalidInput(
            "sequence", value, "must be an integer of at least 0", "Give a whole number"
        )
    return value


def _pool(value: object) -> str:
    name = _storable("pool", value)
    if not _POOL_NAME.fullmatch(name):
        raise InvalidInput(
            "pool",
            name,
            "must be the name of a pool",
            "Use letters, digits and _ . : -, at most 100",
        )
    return name


def _type(value: object) -> str:
    if value not in MEMORY_TYPES:
        raise InvalidInput("type", value, "no such type", f"Use one of {', '.join(MEMORY_TYPES)}")
    return str(value)


def _importance(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInput("importance", value, "lies outside [0, 1]", "Give a number from 0 to 1")
    return float(value)


def _predicted(value: object) -> frozenset[Predictable]:
    if not isinstance(value, list | tuple | set | frozenset) or not all(
        name in ("type", "importance") for name in value
    ):
        raise InvalidInput(
            "predicted",
            value,
            "must be a list of predictable fields",
            'Use "type" and "importance"',
        )
    return frozenset(value)


def _metadata(value: object) -> Mapping[str, Scalar]:
    if not isinstance(value, Mapping):
        raise InvalidInput("metadata", value, "must be a mapping", "Give names with scalar values")
    for key, entry in value.items():
        place = f"metadata.{key}"
        if not isinstance(key, str) or not key:
            raise InvalidInput("metadata", key, "a key is non-empty text", "Rename the key")
        if key in SCOPE_FIELDS:
            raise ScopeError(
                place, entry, "metadata cannot set the scope", f"Give {key} as a field of its own"
            )
        _storable("metadata", key)
        if isinstance(entry, str):
            _storable(place, entry)
        elif not isinstance(entry, int | float | bool):
            raise InvalidInput(
                place,
                entry,
                "must be a string, a number or a boolean",
                "Use text, a number, true or false",
            )
    # Refuses what cannot be stored exactly, such as whole numbers beyond 2**53.
    encode_metadata(value)
    return dict(value)


def _expiry(values: Mapping[str, Any], now: datetime) -> datetime | None:
    if "expires_at" not in values:
        return None
    moment = to_utc(values["expires_at"], field="expires_at")
    if moment <= now:
        raise InvalidInput(
            "expires_at", moment.isoformat(), "lies in the past", "Give a moment still to come"
        )
    return moment


def _moment_key(at: datetime | None) -> int | None:
    return None if at is None else to_microseconds(at)


def _fingerprint(identity: tuple[object, ...]) -> str:
    return hashlib.blake2b(json.dumps(identity).encode(), digest_size=16).hexdigest()


def _own_id(at: datetime, fingerprint: str) -> str:
    """Return an id that sorts by the moment it is about."""
    milliseconds = to_microseconds(at) // 1000 + _BEFORE_1970
    return f"{milliseconds:013x}-{fingerprint[:16]}"


def thread_of(record: MemoryRecord) -> int:
    """Return the session's number: neighbours are looked for among memories that share it."""
    if record.session is None and record.sequence is None:
        return 0
    owner = [getattr(record, name) for name in SCOPE_FIELDS]
    digest = hashlib.blake2b(json.dumps(owner).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True) or 1
