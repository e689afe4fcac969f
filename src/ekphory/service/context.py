"""The episodes around those that were found."""

from __future__ import annotations

from collections.abc import Sequence

from ekphory.filters.tree import And, Comparison, Field, Filter, IsNull, Operator
from ekphory.memory import Memory
from ekphory.service.episode import Episode
from ekphory.store.store import Order
from ekphory.types import MemoryRecord

_MOST_AT_ONE_MOMENT = 1_000
_SHARE_BEFORE = 3
"""One neighbour in so many is one that was said before, as in MemMachine."""


def with_context(
    memory: Memory,
    found: Sequence[Episode],
    *,
    condition: Filter | None,
    count: int,
    enough: int,
) -> list[Episode]:
    """Give each found episode together with `count` neighbours of the same session.

    Each group stands in the order in which it was said, the group of the likeliest first; an
    episode comes once.

    Args:
        memory: A handle on the project.
        found: The likeliest first.
        condition: What neighbours must fulfil as well.
        count: How many; a third of them said before, the others after.
        enough: So many episodes are all that is wanted; no more are looked for.
    """
    scored = {episode.record.id: episode for episode in found}
    shown: dict[str, Episode] = {}
    for episode in found:
        # Each one takes three reads, which a large `count` must not multiply by a large `found`.
        if len(shown) >= enough:
            break
        for record in _around(memory, episode.record, condition, count):
            known = scored.get(record.id) or Episode(record)
            shown.setdefault(record.id, known)
    return list(shown.values())


def _around(
    memory: Memory, record: MemoryRecord, condition: Filter | None, count: int
) -> list[MemoryRecord]:
    before, after = count // _SHARE_BEFORE, count - count // _SHARE_BEFORE
    session = Field("session")
    same: Filter = (
        IsNull(session) if record.session is None else Comparison(session, "eq", record.session)
    )
    in_view = And((same,) if condition is None else (same, condition))

    def at(operator: Operator, limit: int, order: Order) -> list[MemoryRecord]:
        if limit == 0:
            return []
        when = Comparison(Field("at"), operator, record.at)
        return memory.list(filter=And((in_view, when)), limit=limit, order=order)

    together = at("eq", _MOST_AT_ONE_MOMENT, "written")
    ids = [each.id for each in together]
    place = ids.index(record.id) if record.id in ids else len(ids)
    earlier = [*reversed(at("lt", before, "newest")), *together[:place]]
    later = [*together[place + 1 :], *at("gt", after, "oldest")]
    return [*earlier[len(earlier) - min(before, len(earlier)) :], record, *later[:after]]
