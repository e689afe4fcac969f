"""Filters let the same values through as LangGraph's own store does."""

import pytest
from langgraph.store.memory import InMemoryStore

from ekphory.errors import FilterError
from ekphory.frameworks.langgraph import check_value_filter, passes_filter

VALUE = {
    "name": "Ada",
    "age": 36,
    "score": 4.5,
    "year": "1843",
    "done": True,
    "gone": None,
    "tags": ["a", "b"],
    "home": {"city": "London", "floor": 2},
}


@pytest.mark.parametrize(
    "given",
    [
        {"name": "Ada"},
        {"name": "ada"},
        {"name": "Ada", "age": 36},
        {"name": "Ada", "age": 37},
        {"age": 36.0},
        {"done": True},
        {"done": 1},
        {"done": False},
        {"gone": None},
        {"missing": None},
        {"missing": "x"},
        {"tags": ["a", "b"]},
        {"tags": ["b", "a"]},
        {"tags": ["a"]},
        {"tags": "a"},
        {"tags": ("a", {"$ne": "c"})},
        {"home": {"city": "London"}},
        {"home": {"city": "Paris"}},
        {"home": {"floor": {"$gt": 1}}},
        {"home": {"street": None}},
        {"name": {"city": "London"}},
        {"age": {"$eq": 36}},
        {"age": {"$ne": 36}},
        {"missing": {"$ne": 36}},
        {"age": {"$gt": 36}},
        {"age": {"$gte": 36}},
        {"age": {"$lt": 36}},
        {"age": {"$lte": 36}},
        {"age": {"$gt": 30, "$lt": 40}},
        {"age": {"$gt": 30, "$lt": 35}},
        {"year": {"$lt": 1900}},
        {"year": {"$lt": "20000"}},
        {"done": {"$gt": 0}},
        {},
        {"home": {}},
    ],
    ids=str,
)
def test_a_filter_agrees_with_langgraph(given):
    store = InMemoryStore()
    store.put(("people",), "ada", VALUE)
    check_value_filter(given)
    assert passes_filter(given, VALUE) is bool(store.search(("people",), filter=given))


def test_both_refuse_an_operator_that_there_is_not():
    store = InMemoryStore()
    store.put(("people",), "ada", VALUE)
    with pytest.raises(ValueError, match=r"\$in"):
        store.search(("people",), filter={"age": {"$in": [36]}})
    with pytest.raises(FilterError, match=r"\$in"):
        check_value_filter({"age": {"$in": [36]}})


def test_an_operator_in_the_place_of_a_field_is_refused():
    with pytest.raises(FilterError, match="stands where a field must"):
        check_value_filter({"$or": [{"name": "Ada"}]})


def test_an_unknown_operator_is_found_deep_inside_too():
    with pytest.raises(FilterError, match="no such operator"):
        check_value_filter({"home": {"rooms": [{"size": {"$near": 20}}]}})


def test_texts_have_an_order_of_their_own():
    assert passes_filter({"name": {"$gt": "Aaron"}}, VALUE)
    assert not passes_filter({"name": {"$gt": "Zoe"}}, VALUE)


def test_what_has_no_order_is_not_let_through():
    for name in ("missing", "gone", "tags", "name"):
        assert not passes_filter({name: {"$gt": 1}}, VALUE)


def test_a_number_beyond_those_with_a_point_has_no_order():
    assert not passes_filter({"age": {"$lt": 10**400}}, VALUE)
    assert not passes_filter({"age": {"$gt": 1}}, {"age": 10**400})
