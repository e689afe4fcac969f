"""Random memories of a few scopes and random conditions that some of them meet."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
from hypothesis import strategies as st

from ekphory.filters.tree import (
    And,
    Comparison,
    Contains,
    Field,
    In,
    IsNull,
    MetadataField,
    Not,
    Or,
    check_filter,
)
from ekphory.store.protocol import StoredMemory
from ekphory.types import MemoryRecord

NAMES = ["a", "b", "it's", "日本", "%"]
MOMENTS = [
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(2026, 1, 1, tzinfo=UTC),
    datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
    datetime(9998, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
]

names = st.sampled_from(NAMES)
moments = st.sampled_from(MOMENTS)
scalars = names | st.integers(-3, 3) | st.sampled_from([0.5, 2.0]) | st.booleans()


@st.composite
def records(draw):
    record = MemoryRecord(
        id=draw(names),
        text=draw(st.sampled_from(["first", "it's 日本", "50 % off"])),
        at=draw(moments),
        created_at=draw(moments),
        expires_at=draw(st.none() | moments),
        pool=draw(st.sampled_from(["agent_memory", "shared_rules"])),
        importance=draw(st.sampled_from([0.0, 0.1, 1.0])),
        predicted=draw(st.frozensets(st.sampled_from(["type", "importance"]))),
        producer=draw(st.sampled_from(["", "Anna"])),
        sequence=draw(st.none() | st.integers(-2, 2)),
        metadata=draw(st.dictionaries(st.sampled_from(["k", "it's"]), scalars, max_size=2)),
    )
    scope = {name: draw(st.none() | names) for name in ("project", "agent", "user", "session")}
    return replace(record, superseded_by=draw(st.none() | st.none() | names), **scope)


@st.composite
def rows(draw):
    """Rows with keys from 1, of one to three windows each, every window on an axis of its own."""
    found = []
    for key, record in enumerate(draw(st.lists(records(), min_size=1, max_size=9)), start=1):
        windows = draw(st.integers(1, 3))
        vectors = np.eye(32, dtype=np.float32)[[3 * key + window for window in range(windows)]]
        terms = np.array(draw(st.lists(st.integers(0, 2**32 - 1), max_size=3)), np.uint32)
        fingerprint = draw(st.none() | st.sampled_from(["f1", "f2"]))
        found.append(
            StoredMemory(key, record, draw(st.integers(-5, 5)), terms, vectors, fingerprint)
        )
    return found


SCOPE_FIELDS = ["project", "agent", "user", "session", "pool", "superseded_by"]
TEXT_FIELDS = [*SCOPE_FIELDS, "id", "text", "producer"]


def on_texts(fields):
    chosen = st.sampled_from(fields).map(Field)
    operators = st.sampled_from(["eq", "ne", "lt", "ge"])
    return (
        st.builds(Comparison, chosen, operators, names)
        | st.builds(In, chosen, st.lists(names, max_size=3).map(tuple))
        | st.builds(IsNull, chosen)
    )


def combined(conditions):
    def several(children):
        few = st.lists(children, max_size=3).map(tuple)
        return st.builds(And, few) | st.builds(Or, few) | st.builds(Not, children)

    return st.recursive(conditions, several, max_leaves=6).map(check_filter)


SEQUENCE, AT = st.just(Field("sequence")), st.just(Field("at"))
metadata_fields = st.sampled_from(["k", "it's"]).map(MetadataField)
scope_filters = combined(on_texts(SCOPE_FIELDS))
filters = combined(
    on_texts(TEXT_FIELDS)
    | st.builds(Contains, st.sampled_from(TEXT_FIELDS).map(Field), names)
    | st.builds(Comparison, AT, st.sampled_from(["le", "gt", "eq"]), moments)
    | st.builds(Comparison, SEQUENCE, st.sampled_from(["ne", "gt"]), st.integers(-2, 2))
    | st.builds(Comparison, metadata_fields, st.sampled_from(["eq", "ne"]), scalars)
    | st.builds(IsNull, st.sampled_from(["expires_at", "sequence"]).map(Field))
)
