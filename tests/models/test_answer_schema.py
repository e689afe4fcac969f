import pytest

from ekphory.errors import InvalidInput
from ekphory.models.chat import AnswerSchema

QUERIES = AnswerSchema(
    {
        "type": "object",
        "properties": {"queries": {"type": "array", "items": {"type": "string"}, "maxItems": 3}},
        "required": ["queries"],
        "additionalProperties": False,
    }
)


def test_an_answer_that_follows_the_schema_breaks_nothing():
    assert QUERIES.breach({"queries": ["tea", "milk"]}) is None


@pytest.mark.parametrize(
    ("answer", "breach"),
    [
        ({}, "$: 'queries' is a required property"),
        ({"queries": "tea"}, "$.queries: 'tea' is not of type 'array'"),
        ({"queries": ["tea", 1]}, "$.queries[1]: 1 is not of type 'string'"),
        ({"queries": ["a"] * 4}, "$.queries: ['a', 'a', 'a', 'a'] is too long"),
    ],
)
def test_a_breach_says_where_and_how(answer, breach):
    assert QUERIES.breach(answer).startswith(breach)


def test_what_is_no_schema_is_refused():
    with pytest.raises(InvalidInput, match="schema"):
        AnswerSchema({"type": "nothing"})
