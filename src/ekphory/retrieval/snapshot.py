"""What ranking needs of one scope, held in memory: immutable, made anew when the store moves on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ekphory.retrieval.dense import DenseArm
from ekphory.retrieval.lexical import LexicalIndex
from ekphory.retrieval.neighbours import Neighbours
from ekphory.store.record_cache import RecordCache
from ekphory.store.scope_records import ScopeRecords
from ekphory.store.store import ScopeColumns

IntArray = NDArray[np.int64]
RecordReader = ScopeRecords | RecordCache


@dataclass(frozen=True, slots=True)
class ScopeSnapshot:
    """The current memories of one scope at one version of the store.

    Rows are numbered 0 … len-1 in the order of their keys.

    Attributes:
        version: The store's version that this was read at.
        columns: The ranking columns, by row.
        lexical: BM25 over these rows alone.
        neighbours: Previous and next row in the same session.
        dense: Vectors of these rows.
        pool_names, pool_codes: The pools of the scope, and the number of each row's among them.
        pool_rows: The rows of each pool, ascending.
        turn_share: Share of the rows that are turns of a conversation, in [0, 1]; 0 if empty.
        records: Reads these memories whole, by key.
    """

    version: int
    columns: ScopeColumns
    lexical: LexicalIndex
    neighbours: Neighbours
    dense: DenseArm
    pool_names: NDArray[np.str_]
    pool_codes: NDArray[np.int16]
    pool_rows: tuple[IntArray, ...]
    turn_share: float
    records: RecordReader

    def __len__(self) -> int:
        return len(self.columns.key)

    def alive(self, now: int) -> NDArray[np.bool_]:
        """Which rows have not expired at `now` (microseconds since 1970)."""
        return np.asarray(self.columns.expires_at > now)


def joined(earlier: ScopeColumns, later: ScopeColumns) -> ScopeColumns:
    """Give the rows of both, in order."""
    return ScopeColumns(
        **{
            name: np.concatenate([getattr(earlier, name), getattr(later, name)])
            for name in ScopeColumns.__slots__
        }
    )


def kept(columns: ScopeColumns, rows: NDArray[np.bool_]) -> ScopeColumns:
    """Only the marked rows."""
    terms = columns.terms[np.repeat(rows, columns.term_counts)]
    chosen = {
        name: getattr(columns, name)[rows] for name in ScopeColumns.__slots__ if name != "terms"
    }
    return ScopeColumns(terms=terms, **chosen)
