"""Memories by id: what was looked up of late is known until somebody else writes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from ekphory.filters.tree import And, Comparison, Field, Filter, In
from ekphory.types import MemoryRecord

Keyed = dict[int, MemoryRecord]
"""Memories by their keys."""

MOST_IDS = 2_048
"""So many are held, and so many can be looked up at once."""
_MOST_CHARACTERS = 32_768
"""A memory of more is read anew each time."""


def find_named_ids(where: Filter) -> tuple[str, ...] | None:
    """Return ids of which a matching memory has one; None where the condition names none."""
    match where:
        case Comparison(Field("id"), "eq", str(name)):
            return (name,)
        case In(Field("id"), values):
            return tuple(value for value in values if isinstance(value, str))
        case And(children):
            found = (find_named_ids(child) for child in children)
            return next((ids for ids in found if ids is not None), None)
        case _:
            return None


class NamedMemories:
    """Holds all memories of some ids, whoever owns them, and which ids no memory has.

    It follows the commits of this process, and forgets everything after one of another process.
    Safe for several threads.
    """

    def __init__(self) -> None:
        self._held: OrderedDict[str, Keyed] = OrderedDict()
        self._name_of: dict[int, str] = {}
        self._version = 0
        self._guard = threading.Lock()

    def find(
        self, ids: Sequence[str], *, version: int, read: Callable[[list[str]], Keyed]
    ) -> Keyed:
        """Return the memories that have these ids.

        Args:
            ids: At most `MOST_IDS`.
            version: Number of the table's newest version.
            read: Reads the memories of ids that are not known.
        """
        with self._guard:
            if self._version != version:
                self._forget(version)
            known = {name: self._held[name].copy() for name in ids if name in self._held}
            for name in known:
                self._held.move_to_end(name)
        missing = [name for name in dict.fromkeys(ids) if name not in known]
        if missing:
            found = read(missing)
            by_name: dict[str, Keyed] = {name: {} for name in missing}
            for key, record in found.items():
                by_name[record.id][key] = record
            self._hold(by_name, version)
            known |= by_name
        return {
            key: _copy(record) for memories in known.values() for key, record in memories.items()
        }

    def at(self, keys: Sequence[int], *, version: int) -> Keyed:
        """Return those of the memories with these keys that are known."""
        with self._guard:
            if self._version != version:
                return {}
            known = [key for key in keys if key in self._name_of]
            return {key: _copy(self._held[self._name_of[key]][key]) for key in known}

    def note(
        self, *, gone: Collection[int], added: Mapping[int, MemoryRecord], before: int, after: int
    ) -> None:
        """Take in a commit of this process: what it took away, and what it added."""
        with self._guard:
            # Only then did nobody else write in between.
            if self._version != before or after != before + 1:
                self._forget(after)
                return
            self._version = after
            for key in gone:
                if key in self._name_of:
                    del self._held[self._name_of.pop(key)][key]
            for key, record in added.items():
                if record.id in self._held:
                    self._put(record.id, self._held[record.id] | {key: _copy(record)})

    def note_rearranged(self, *, before: int, after: int) -> None:
        """Take in commits that changed no memory, while the store was locked."""
        with self._guard:
            if self._version == before:
                self._version = after

    def forget(self) -> None:
        """Forget all: something was changed that is not told here."""
        with self._guard:
            self._forget(0)

    def _hold(self, by_name: Mapping[str, Keyed], version: int) -> None:
        with self._guard:
            # A commit that came meanwhile may have changed what was read.
            if self._version != version:
                return
            for name, memories in by_name.items():
                self._put(name, dict(memories))
            while len(self._held) > MOST_IDS:
                self._drop(next(iter(self._held)))

    def _put(self, name: str, memories: Keyed) -> None:
        self._drop(name)
        if all(map(_is_short, memories.values())):
            self._held[name] = memories
            self._name_of |= dict.fromkeys(memories, name)

    def _drop(self, name: str) -> None:
        for key in self._held.pop(name, {}):
            self._name_of.pop(key, None)

    def _forget(self, version: int) -> None:
        self._held.clear()
        self._name_of.clear()
        self._version = version


def _copy(record: MemoryRecord) -> MemoryRecord:
    return replace(record, metadata=dict(record.metadata))


def _is_short(record: MemoryRecord) -> bool:
    texts = (value for value in record.metadata.values() if isinstance(value, str))
    return len(record.text) + sum(map(len, texts)) <= _MOST_CHARACTERS
