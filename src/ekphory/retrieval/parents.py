"""Documents put together again from their parts, which are what is stored and found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ekphory.documents.parents import parent_text
from ekphory.store.owner import owner_of
from ekphory.types import MemoryRecord

Family = tuple[tuple[str | None, ...], str | None, str]
"""Owner, session and parent: a parent's id is unique within one owner's session only."""


def family_of(record: MemoryRecord) -> Family | None:
    """Give what a part shares with the other parts of its parent; None for what is whole."""
    if not record.parent_id:
        return None
    return owner_of(record), record.session, record.parent_id


def families(records: Iterable[MemoryRecord]) -> dict[Family, list[MemoryRecord]]:
    """Group parts by parent, each group in the order of the text."""
    found: dict[Family, list[MemoryRecord]] = {}
    for record in records:
        family = family_of(record)
        if family is not None:
            found.setdefault(family, []).append(record)
    for parts in found.values():
        parts.sort(key=lambda part: (part.sequence or 0, part.id))
    return found


def joined_around(parts: Sequence[MemoryRecord], part_id: str, *, longest: int) -> str:
    """Join parts, growing from one of them to both sides.

    Args:
        parts: In the order of the text; one of them has the id.
        part_id: Where to begin; this part is always whole.
        longest: Most characters of the parts together, unless the one alone is longer.
    """
    first = last = next(place for place, part in enumerate(parts) if part.id == part_id)
    length = len(parts[first].text)
    while True:
        beside = [place for place in (first - 1, last + 1) if 0 <= place < len(parts)]
        fitting = [place for place in beside if length + len(parts[place].text) <= longest]
        if not fitting:
            return parent_text(parts[first : last + 1])
        for place in fitting:
            if length + len(parts[place].text) <= longest:
                length += len(parts[place].text)
                first, last = min(first, place), max(last, place)
