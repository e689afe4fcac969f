"""What ranking needs of every memory in a scope, out of a Lance table's rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ekphory.store import lance_schema
from ekphory.store.store import NEVER, ScopeColumns, StoreIdentity

_COLUMNS = (
    "key",
    "thread",
    "sequence",
    "at",
    "expires_at",
    "importance",
    "pool",
    "type",
    "terms",
    "windows",
)


def scan_columns(identity: StoreIdentity) -> list[str]:
    """Name the columns that `to_scope_columns` reads from a table of this identity."""
    return [*_COLUMNS, *lance_schema.marks(identity)]


def to_scope_columns(table: pa.Table) -> ScopeColumns:
    """Read rows with `scan_columns`, in their order."""
    terms = table["terms"].combine_chunks()
    return ScopeColumns(
        key=lance_schema.integers(table["key"], missing=0),
        thread=lance_schema.integers(table["thread"], missing=0),
        sequence=lance_schema.integers(table["sequence"], missing=0),
        at=lance_schema.microseconds(table["at"], missing=0),
        expires_at=lance_schema.microseconds(table["expires_at"], missing=NEVER),
        importance=np.asarray(table["importance"].to_numpy(), np.float32),
        importance_given=_importance_given(table),
        pool=np.array(table["pool"].to_pylist(), np.str_),
        type=np.array(table["type"].to_pylist(), np.str_),
        terms=np.asarray(terms.flatten().to_numpy(zero_copy_only=False), np.uint32),
        term_counts=np.asarray(pa.compute.list_value_length(terms), np.int32),
    )


def _importance_given(table: pa.Table) -> NDArray[np.bool_]:
    if lance_schema.IMPORTANCE_GIVEN not in table.column_names:
        # Earlier tables do not tell, and then every importance counts, as it did.
        return np.ones(table.num_rows, np.bool_)
    return np.asarray(table[lance_schema.IMPORTANCE_GIVEN].to_numpy(), np.bool_)
