"""The second half of stage 1 says what kind of query it is."""

import json

import pytest

from ekphory.errors import InvalidInput
from ekphory.retrieval.pipeline import Pipeline
from ekphory.retrieval.query import QueryClass, QueryHints
from ekphory.retrieval.stages.query import ClassifyQuery, CleanQuery
from retrieval.states import state_of


def test_later_stages_find_the_class_in_the_state():
    state = ClassifyQuery().run(state_of(query="How do I prune the vine?"))
    assert state.query_class == QueryClass(
        "procedural", 0.0, ("asks how to",), QueryHints(procedural=0.9)
    )


def test_the_cleaned_text_is_classified():
    pipeline = Pipeline("mine", [CleanQuery(), ClassifyQuery()])
    state, _ = pipeline.run(state_of(query="<!-- how do I compare --> Where is the ladder?"))
    assert state.query_class.intent == "lookup"


def test_the_trace_says_what_was_found_by_which_rules():
    pipeline = Pipeline("mine", [CleanQuery(), ClassifyQuery()])
    _, trace = pipeline.run(state_of(query="Is the tram cheaper than the taxi?"))
    assert (trace.stages[1].number, trace.stages[1].name) == (1, "classify query")
    assert trace.stages[1].detail == {
        "intent": "comparison",
        "complexity": 0.0,
        "signals": ["asks for more or less"],
        "hints": {},
        "depth_factor": 1.5,
    }
    assert "tram" not in json.dumps(trace.to_dict())


def test_a_query_must_be_cleaned_before_it_is_classified():
    with pytest.raises(InvalidInput, match=r"classify query.*needs \['query'\]"):
        Pipeline("mine", [ClassifyQuery()])
