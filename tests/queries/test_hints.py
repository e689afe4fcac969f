"""Memories of the kind that a query's words ask for are lifted, within bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory.errors import InvalidInput
from ekphory.retrieval.query import QueryClass, QueryHints, classify_query
from ekphory.retrieval.stages.weigh import type_importance_boost
from ekphory.types import MEMORY_TYPES

TYPES = ["episodic", "semantic", "procedural", "unknown"]


def boosts(hints, types, importances, **options):
    query_class = QueryClass("lookup", 0.0, hints=hints)
    return type_importance_boost(query_class, types, importances, **options).tolist()


def test_the_most_important_lifts_the_important_and_lowers_the_rest():
    found = boosts(QueryHints(importance=1.0), ["unknown"] * 3, [0.0, 0.5, 1.0])
    assert found == pytest.approx([0.0497871, 1.0, 20.0855369])


def test_a_weaker_hint_lifts_less():
    assert boosts(QueryHints(importance=0.5), ["unknown"], [1.0]) == pytest.approx([4.4816891])


@pytest.mark.parametrize(
    ("query", "factors"),
    [
        ("What happened at the fair?", [1.24, 1, 1, 1]),
        ("What is my seat preference?", [1, 1.3, 1, 1]),
        ("How do I prune the vine?", [1, 1, 1.27, 1]),
        ("Where is the ladder?", [1, 1, 1, 1]),
    ],
)
def test_the_words_of_a_query_lift_one_type(query, factors):
    found = type_importance_boost(classify_query(query), TYPES, [0.5] * 4)
    assert found.tolist() == pytest.approx(factors)


def test_importance_and_type_together_multiply():
    hints = QueryHints(importance=0.5, semantic=1.0)
    assert boosts(hints, ["semantic"], [1.0]) == pytest.approx([1.3 * 4.4816891])


@pytest.mark.parametrize("query_class", [None, QueryClass("lookup", 1.0)])
def test_without_hints_every_factor_is_exactly_one(query_class):
    found = type_importance_boost(query_class, TYPES, [0.0, 0.3, 0.9, 1.0])
    assert found.tolist() == [1.0, 1.0, 1.0, 1.0]


def test_no_candidates_have_no_factors():
    assert boosts(QueryHints(semantic=1.0), [], []) == []


def test_types_and_importances_must_be_as_many():
    with pytest.raises(InvalidInput, match=r"importances=\(1,\): there are types of shape \(4,\)"):
        boosts(QueryHints(), TYPES, [0.5])


@pytest.mark.parametrize("bound", [-0.1, 1.0, float("nan")])
def test_a_bound_that_is_none_is_refused(bound):
    with pytest.raises(InvalidInput, match=r"type_bound=.*\[0, 1\)"):
        boosts(QueryHints(), ["unknown"], [0.5], type_bound=bound)


@pytest.mark.parametrize("strength", [-0.1, 10.1, float("nan")])
def test_a_strength_out_of_range_is_refused(strength):
    with pytest.raises(InvalidInput, match=r"importance_strength=.*0 to 10"):
        boosts(QueryHints(), ["unknown"], [0.5], importance_strength=strength)


strengths = st.floats(0, 1)
hints = st.builds(
    QueryHints, importance=strengths, episodic=strengths, semantic=strengths, procedural=strengths
)
candidates = st.lists(st.tuples(st.sampled_from(MEMORY_TYPES), strengths), max_size=8)


@given(hints, candidates, st.floats(0, 0.5), st.floats(0, 3))
def test_no_factor_leaves_the_bounds(hint, found, bound, strength):
    types, importances = [kind for kind, _ in found], [value for _, value in found]
    factors = np.array(
        boosts(hint, types, importances, type_bound=bound, importance_strength=strength)
    )
    assert factors.shape == (len(found),)
    assert np.all(factors >= np.exp(-strength) * 0.999)
    assert np.all(factors <= (1 + bound) * np.exp(strength) * 1.001)


@given(hints, st.sampled_from(MEMORY_TYPES), strengths, strengths)
def test_of_one_type_the_more_important_is_never_lowered(hint, kind, one, other):
    low, high = boosts(hint, [kind, kind], sorted([one, other]))
    assert low <= high
