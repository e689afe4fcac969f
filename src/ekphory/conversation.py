"""Chat messages as drafts: who said what, in which order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ekphory.errors import InvalidInput
from ekphory.moments import now_utc, to_microseconds
from ekphory.records import Draft, draft, thread_of
from ekphory.scope import Scope


def message_drafts(
    messages: Sequence[Mapping[str, Any]],
    *,
    scope: Scope,
    session: str | None,
    pool: str | None,
) -> list[Draft]:
    """Check messages and give them their place in the session.

    Raises:
        InvalidInput: A message is no dict, lacks `content`, or has a field that cannot be stored.
    """
    if isinstance(messages, Mapping | str) or not isinstance(messages, Sequence):
        raise InvalidInput(
            "messages", messages, "is no list", 'Give [{"role": "user", "content": "…"}]'
        )
    drafts: list[Draft] = []
    seen: Counter[str] = Counter()
    now = now_utc()
    for place, message in enumerate(messages):
        given = {"session": session, "pool": pool, **_fields(message, place)}
        first = draft(given, scope=scope, now=now)
        name = first.fingerprint or first.record.id
        # A message said twice in one call is meant twice, unless it carries an id.
        repeated = draft(given, scope=scope, now=now, occurrence=seen[name])
        seen[name] += 1
        drafts.append(_in_order(repeated, to_microseconds(now) + place))
    return drafts


def _in_order(entry: Draft, position: int) -> Draft:
    """Give a message outside any session a sequence, by which it has neighbours."""
    if entry.record.session is not None or entry.record.sequence is not None:
        return entry
    record = replace(entry.record, sequence=position)
    return replace(entry, record=record, thread=thread_of(record))


def _fields(message: Mapping[str, Any], place: int) -> dict[str, Any]:
    if not isinstance(message, Mapping) or "content" not in message:
        raise InvalidInput(
            f"messages[{place}]", message, "has no content", 'Give {"role": …, "content": …}'
        )
    fields = {name: value for name, value in message.items() if name != "content"}
    if fields.get("role") is not None:
        fields.setdefault("producer", fields["role"])
    return {**fields, "text": message["content"]}
