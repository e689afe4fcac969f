"""How deep a query is searched."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory.retrieval.query import DEEPEST, INTENTS, QueryClass, depth_factor


@pytest.mark.parametrize(
    ("intent", "complexity", "factor"),
    [
        ("lookup", 0.0, 1.0),
        ("preference", 0.0, 1.0),
        ("procedural", 0.0, 1.0),
        ("temporal", 0.0, 1.25),
        ("comparison", 0.0, 1.5),
        ("chain", 0.0, 2.0),
        ("lookup", 1.0, 1.5),
        ("comparison", 1.0, 2.0),
        ("chain", 1.0, 2.0),
    ],
)
def test_what_needs_more_evidence_is_searched_deeper(intent, complexity, factor):
    assert depth_factor(QueryClass(intent, complexity)) == factor


def test_a_query_that_nothing_is_known_of_is_searched_plainly():
    assert depth_factor(None) == 1.0


@given(st.sampled_from(INTENTS), st.floats(0, 1))
def test_the_factor_stays_within_bounds(intent, complexity):
    assert 1.0 <= depth_factor(QueryClass(intent, complexity)) <= DEEPEST
