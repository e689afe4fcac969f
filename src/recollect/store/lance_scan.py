"""What ranking needs of every memory in a scope, out of a Lance table's rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from recollect.store import lance_schema
from recollect.store.store import NEVER, ScopeColumns

SCAN_COLUMNS = [
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
]


def to_scope_columns(table: pa.Table) -> ScopeColumns:
    """Read rows with `SCAN_COLUMNS`, in their order."""
    terms = table["terms"].combine_chunks()
    return ScopeColumns(
        key=lance_schema.integers(table["key"], missing=0),
        thread=lance_schema.integers(table["thread"], missing=0),
        sequence=lance_schema.integers(table["sequence"], missing=0),
        at=lance_schema.microseconds(table["at"], missing=0),
        expires_at=lance_schema.microseconds(table["expires_at"], missing=NEVER),
        importance=np.asarray(table["importance"].to_numpy(), np.float32),
        pool=np.array(table["pool"].to_pylist(), np.str_),
        type=np.array(table["type"].to_pylist(), np.str_),
        terms=np.asarray(terms.flatten().to_numpy(zero_copy_only=False), np.uint32),
        term_counts=np.asarray(pa.compute.list_value_length(terms), np.int32),
    )
