"""The same mistake in several agents' pools: how many have it, and neither who nor what it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from ekphory.engine import Engine
from ekphory.errors import EmbedderMismatch, InvalidInput
from ekphory.filters.tree import And, Field, In
from ekphory.models.embedder import FloatMatrix
from ekphory.models.late_bound import normalised
from ekphory.retrieval.snapshot import ScopeSnapshot
from ekphory.scope import DEFAULT_NAME, Scope
from ekphory.store.protocol import IntArray
from ekphory.types import MemoryRecord, to_microseconds

OWN_MISTAKES, SHARED_MISTAKES = "agent_mistakes", "shared_mistakes"
SAME_MISTAKE = 0.87
"""Cosine from which on two texts tell of the same mistake. Of 24 written pairs that do, 14 reach it
with the bundled model, and 21 where one producer stands before both texts; of 24 that share their
topic alone none, and 2. At .85 these are 4, and no more of the others are found; at .9 it is 26 of
the 48, and 1."""
_FEWEST_OWNERS = 2
_BLOCK = 256
"""Rows that are compared with all others at a time."""


@dataclass(frozen=True, slots=True)
class RepeatedMistake:
    """One mistake that several agents or users of a project keep for themselves.

    Attributes:
        owners: How many pairs of an agent and a user have it.
        memories: How many memories of theirs tell of it.
        first, last: When it happened first and last.
    """

    owners: int
    memories: int
    first: datetime
    last: datetime


def repeated_mistakes(
    engine: Engine, scope: Scope, *, least: int, now: datetime
) -> tuple[RepeatedMistake, ...]:
    """Return the mistakes that several owners have and nobody shared, the most common first.

    Those of different organisations or projects are never compared.

    Raises:
        InvalidInput: `least` is below 2, or the scope is of one agent, user or session.
        EmbedderMismatch: The model of the store's vectors is not at hand.
    """
    _check_least(least)
    _check_whole(scope)
    pools = In(Field("pool"), (OWN_MISTAKES, SHARED_MISTAKES))
    snapshot = engine.snapshots.of(And((scope.predicate(), pools)))
    rows = np.flatnonzero(snapshot.alive(to_microseconds(now)))
    if len(rows) and not snapshot.has_vectors:
        raise EmbedderMismatch(
            f"The model of the store's vectors, {snapshot.identity.embedder}, is not at hand, and "
            "mistakes are compared by vectors. Make them anew with `ekphory reembed`."
        )
    found = [
        repeated
        for members, records in _by_project(snapshot, rows)
        for repeated in _find_repeated(_read_vectors(snapshot, members), records, least=least)
    ]
    found.sort(key=lambda each: (each.owners, each.memories, each.last), reverse=True)
    return tuple(found)


def _check_least(least: object) -> None:
    if not isinstance(least, int) or isinstance(least, bool) or least < _FEWEST_OWNERS:
        problem = "must be a whole number of 2 or more"
        raise InvalidInput("least", least, problem, "Say how many agents must have a mistake")


def _check_whole(scope: Scope) -> None:
    for name in ("agent", "user", "session"):
        value = getattr(scope, name)
        if value is not None:
            problem = "repeated mistakes are asked of the project as a whole"
            remedy = "Open a handle that binds no agent, user and session"
            raise InvalidInput(name, value, problem, remedy)


def _by_project(
    snapshot: ScopeSnapshot, rows: IntArray
) -> Iterator[tuple[IntArray, list[MemoryRecord]]]:
    """Yield the rows of each project, with their memories."""
    keys = snapshot.columns.key[rows].tolist()
    records = snapshot.records.fetch(keys)
    projects: dict[tuple[str, str], dict[int, MemoryRecord]] = defaultdict(dict)
    for row, key in zip(rows.tolist(), keys, strict=True):
        if key in records:
            record = records[key]
            named = record.org or DEFAULT_NAME, record.project or DEFAULT_NAME
            projects[named][row] = record
    for members in projects.values():
        yield np.array(list(members), np.int64), list(members.values())


def _read_vectors(snapshot: ScopeSnapshot, rows: IntArray) -> FloatMatrix:
    """Return what the texts mean, whatever their age and type, shape (rows, dimension)."""
    dense = replace(snapshot.dense, bound=None)
    return normalised(dense.first_vectors(rows, now=0))


def _find_repeated(
    vectors: FloatMatrix, records: Sequence[MemoryRecord], *, least: int
) -> Iterator[RepeatedMistake]:
    """Yield the repeated mistakes of one project.

    Args:
        vectors: Of its mistakes, shape (memories, dimension), rows of length 1.
        records: The same mistakes, shared ones among them.
        least: How many owners must have one.
    """
    shared = np.array([record.pool == SHARED_MISTAKES for record in records], np.bool_)
    mine = [record for record in records if record.pool == OWN_MISTAKES]
    numbers: dict[tuple[str | None, str | None], int] = {}
    owners = np.array(
        [numbers.setdefault((each.agent, each.user), len(numbers)) for each in mine], np.int64
    )
    if len(numbers) < least:
        return
    own = vectors[~shared]
    is_said = np.array([near.any() for near in _compare(own, vectors[shared])])
    for group in _group(own, owners, least=least):
        if not is_said[group].any():
            moments = [mine[place].at for place in group.tolist()]
            count = len(np.unique(owners[group]))
            yield RepeatedMistake(count, len(group), min(moments), max(moments))


def _group(vectors: FloatMatrix, owners: IntArray, *, least: int) -> Iterator[IntArray]:
    """Yield the places of mistakes that are nearly the same as one in their midst.

    The mistake with the most others near it, of other owners, takes these first. So all of a group
    are near to one, and no chain of small differences joins what differs.
    """
    pairs = zip(_compare(vectors, vectors), owners, strict=True)
    others = np.array([np.count_nonzero(near & (owners != owner)) for near, owner in pairs])
    order = np.argsort(-others, kind="stable")[: np.count_nonzero(others)]
    is_free = np.ones(len(vectors), np.bool_)
    for place, near in zip(order, _compare(vectors[order], vectors), strict=True):
        members = near & is_free
        if is_free[place] and len(np.unique(owners[members])) >= least:
            is_free &= ~members
            yield np.flatnonzero(members)


def _compare(vectors: FloatMatrix, others: FloatMatrix) -> Iterator[NDArray[np.bool_]]:
    """Yield for each vector which of the others it is near to, shape (others,)."""
    for start in range(0, len(vectors), _BLOCK):
        yield from vectors[start : start + _BLOCK] @ others.T >= SAME_MISTAKE
