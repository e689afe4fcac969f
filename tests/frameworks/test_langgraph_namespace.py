"""Namespaces of any labels become paths and ids that no two of them share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import MatchCondition

from ekphory.errors import InvalidInput
from ekphory.filters.lance_sql import matches
from ekphory.frameworks.langgraph import ItemSpace, fits, namespace_path, place_of
from ekphory.scope import Scope
from ekphory.types import EPOCH, MemoryRecord

# Few characters, so that labels often share their beginnings; all that paths and ids are made of.
LABELS = st.text(alphabet='ab./%0"\\\x00\ud800é', max_size=4)
SPACE = ItemSpace(Scope())
NAMESPACES = st.lists(LABELS, max_size=4).map(tuple)


def lies_beneath(prefix, namespace):
    path = namespace_path(namespace)
    record = MemoryRecord(id="1", text="a", at=EPOCH, created_at=EPOCH, pool="langgraph", path=path)
    return matches(SPACE.beneath(prefix), record)


@given(NAMESPACES, NAMESPACES)
def test_an_item_lies_beneath_a_prefix_when_its_labels_begin_with_it(prefix, namespace):
    assert lies_beneath(prefix, namespace) == (namespace[: len(prefix)] == prefix)


@given(NAMESPACES, LABELS)
def test_an_id_gives_its_namespace_and_key_back(namespace, key):
    assert place_of(SPACE.id_of(namespace, key)) == (namespace, key)


@given(NAMESPACES, NAMESPACES)
def test_no_two_namespaces_have_one_path(one, other):
    assert (namespace_path(one) == namespace_path(other)) == (one == other)


def test_a_path_is_the_labels_with_a_slash_behind_each():
    assert namespace_path(("users", "mara", "a/b 50%")) == "users/mara/a%2Fb 50%25/"


def test_a_label_with_a_period_is_not_two_labels():
    assert namespace_path(("a.b",)) != namespace_path(("a", "b"))
    assert SPACE.id_of(("a.b",), "c") != SPACE.id_of(("a", "b"), "c")


def test_a_key_is_not_a_label():
    assert SPACE.id_of(("a",), "b") != SPACE.id_of(("a", "b"), "")


def test_an_id_says_whose_the_item_is():
    space = ItemSpace(Scope(project="home", user="mara"))
    name = '[{"project": "home", "user": "mara"}, "notes", "drink"]'
    assert space.id_of(("notes",), "drink") == name
    assert place_of(name) == (("notes",), "drink")


@pytest.mark.parametrize(
    ("kind", "path", "fitting"),
    [
        ("prefix", ("a",), True),
        ("prefix", ("a", "*"), True),
        ("prefix", ("*", "b"), True),
        ("prefix", ("b",), False),
        ("prefix", ("a", "b", "c", "d"), False),
        ("suffix", ("c",), True),
        ("suffix", ("*", "c"), True),
        ("suffix", ("b", "*"), True),
        ("suffix", ("b",), False),
        ("suffix", ("*", "a", "b", "c"), False),
        ("prefix", (), True),
        ("suffix", (), True),
    ],
)
def test_a_condition_fits_the_beginning_or_the_end(kind, path, fitting):
    assert fits(MatchCondition(kind, path), ("a", "b", "c")) is fitting


def test_a_condition_of_another_kind_is_refused():
    with pytest.raises(InvalidInput, match="match_type='infix': is unknown"):
        fits(MatchCondition("infix", ("a",)), ("a",))


@pytest.mark.parametrize("namespace", ["users", ("users", 1), (None,), {"users": 1}])
def test_what_is_no_tuple_of_texts_is_refused(namespace):
    with pytest.raises(InvalidInput, match="namespace="):
        namespace_path(namespace)


def test_a_namespace_that_no_filter_could_name_is_refused():
    with pytest.raises(InvalidInput, match="is too long"):
        namespace_path(("a" * 10_000,))
    with pytest.raises(InvalidInput, match="is too long with its namespace"):
        SPACE.id_of(("a",), "k" * 10_000)
