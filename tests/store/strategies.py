"""Random memories of a few scopes and random conditions that some of them meet."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st
from tests.filters import strategies as any_scope

from ekphory.filters.tree import And, Comparison, Field, In, IsNull, Not, Or, check_filter
from ekphory.store.protocol import StoredMemory

NAMES = ["a", "b", "it's", "日本", "%"]
SCOPE_FIELDS = ["project", "agent", "user", "session", "pool", "superseded_by"]

names = st.sampled_from(NAMES)
scope_fields = st.sampled_from(SCOPE_FIELDS).map(Field)
on_scope = (
    st.builds(Comparison, scope_fields, st.sampled_from(["eq", "ne", "lt", "ge"]), names)
    | st.builds(In, scope_fields, st.lists(names, max_size=3).map(tuple))
    | st.builds(IsNull, scope_fields)
)


def combined(conditions):
    def several(children):
        few = st.lists(children, max_size=3).map(tuple)
        return st.builds(And, few) | st.builds(Or, few) | st.builds(Not, children)

    return st.recursive(conditions, several, max_leaves=6).map(check_filter)


scope_filters = combined(on_scope)
filters = combined(on_scope | any_scope.conditions)


@st.composite
def records(draw):
    scope = {name: draw(st.none() | names) for name in SCOPE_FIELDS[:4]}
    return replace(
        draw(any_scope.records()),
        id=draw(names),
        pool=draw(st.sampled_from(["agent_memory", "shared_rules"])),
        predicted=draw(st.frozensets(st.sampled_from(["type", "importance"]))),
        superseded_by=draw(st.none() | st.none() | names),
        **scope,
    )


@st.composite
def rows(draw):
    """Rows with keys from 1, of one to three windows each, every window on an axis of its own."""
    found = []
    for key, record in enumerate(draw(st.lists(records(), min_size=1, max_size=9)), start=1):
        windows = draw(st.integers(1, 3))
        vectors = np.eye(32, dtype=np.float32)[[3 * key + window for window in range(windows)]]
        terms = np.array(draw(st.lists(st.integers(0, 2**32 - 1), max_size=3)), np.uint32)
        fingerprint = draw(st.none() | st.sampled_from(["f1", "f2"]))
        thread = draw(st.integers(-5, 5))
        found.append(StoredMemory(key, record, thread, terms, vectors, fingerprint))
    return found
