"""Ids of episodes as UUIDs, which MemMachine's client demands from version 0.4 on.

An id of our own holds 116 bits, so it is written into a UUID and read back from it. A caller's
UUID is shown as it is. Any other id of a caller gets a UUID that the catalog remembers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from uuid import UUID, uuid5

from ekphory.catalog.shown_ids import ShownIds
from ekphory.service.place import Place

_OWN = re.compile(r"([0-9a-f]{13})-([0-9a-f]{16})")
# Version 8 is free for such use (RFC 9562); the `8e` behind it marks ours.
_WRITTEN = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-8([0-9a-f]{3})-8e([0-9a-f]{2})-([0-9a-f]{12})")
_NAMESPACE = UUID("5d0d3c1e-6a3b-5f5e-9d53-0b6d2a6a4c11")
_REMEMBERED = 20_000


class Uids:
    """Turns ids into UUIDs and back."""

    def __init__(self, table: ShownIds) -> None:
        self._table = table

    def shown(self, place: Place, ids: Iterable[str]) -> list[str]:
        """Give the UUIDs under which memories of a project are shown, in order."""
        shown: list[str] = []
        made: dict[str, str] = {}
        for each in ids:
            own = written(each)
            uid = own or _others(place.owner, each)
            if own is None and uid != each:
                made[uid] = each
            shown.append(uid)
        if made:
            self._table.keep(*place.owner, made)
        return shown

    def stored(self, place: Place, uids: Iterable[str]) -> list[str]:
        """Give the ids that UUIDs stand for, in order; what is no UUID is an id already."""
        return [self._stored(place, each) for each in uids]

    def _stored(self, place: Place, uid: str) -> str:
        canonical = _canonical(uid)
        if canonical is None:
            return uid
        return read(canonical) or self._table.find(*place.owner, canonical) or canonical


def written(memory_id: str) -> str | None:
    """Write an id of our own as a UUID; None where it is none of ours."""
    own = _OWN.fullmatch(memory_id)
    if own is None:
        return None
    digits = own[1] + own[2]
    return f"{digits[:8]}-{digits[8:12]}-8{digits[12:15]}-8e{digits[15:17]}-{digits[17:]}"


def read(uid: str) -> str | None:
    """Read the id of our own that was written as a UUID; None where it is another UUID."""
    found = _WRITTEN.fullmatch(uid)
    if found is None:
        return None
    digits = "".join(found.groups())
    return f"{digits[:13]}-{digits[13:]}"


@lru_cache(_REMEMBERED)
def _others(owner: tuple[str, str], memory_id: str) -> str:
    """Give the UUID for an id that is not ours: itself, where it is one that stands for itself."""
    if _canonical(memory_id) == memory_id and read(memory_id) is None:
        return memory_id
    return str(uuid5(_NAMESPACE, "\0".join((*owner, memory_id))))


def _canonical(text: str) -> str | None:
    try:
        return str(UUID(text))
    except ValueError:
        return None
