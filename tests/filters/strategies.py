"""Random memories and random filters that meet often enough to compare what they find."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import strategies as st

from ekphory.filters.tree import (
    FIELD_KINDS,
    And,
    Comparison,
    Contains,
    Field,
    In,
    IsNull,
    MetadataField,
    Not,
    Or,
)
from ekphory.types import MEMORY_TYPES, MemoryRecord

# The frequent ones meet often, so that a filter finds some memories, not none and not all.
FREQUENT_TEXTS = ["", "a", "a%b", "a_b", "a'b", "2"]
FREQUENT_KEYS = ["a", "it's", "a.b"]
FREQUENT_NUMBERS = [0, 2, 2.0, 2.5, 3]
FREQUENT_FIELDS = ["text", "producer", "user", "at", "expires_at", "sequence", "importance"]

ODD_TEXTS = [
    "", "a", "A", "a%b", "a_b", "aXb", "%", "_", "a'b", "a''b", "'", "a\\b", "\\", "\\'", 'a"b',
    "`a`", "--", "; DROP TABLE t", "' OR 'a' = 'a", "é", "e\u0301", "日本", "😀", "\ufffd", "\n\t",
    " a ", "2", "3.0", "true", "null", "NULL", "\u200b", "\x01", "{}", "a b",
]  # fmt: skip
ODD_KEYS = [
    "a", "b", "a.b", "it's", "it''s", 'q"uo', "sp ace", "é", "$.a", "$", "[0]", "0", "s:a", "n:a",
    "\\", "a\\u0062", "日本", "%", "`", "*", "a,b", "date", "and", "null", "\n",
]  # fmt: skip
ODD_NUMBERS = [
    0, 1, 2, 3, 3.0, 3.5, 2.5, -1, -1.5, -0.0, 0.1, 0.30000000000000004, 2**53, -(2**53),
    2**53 - 1, 1e16, 1e300, -1e300, 5e-324, 0.5,
]  # fmt: skip
ODD_MOMENTS = [
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(2024, 5, 1, tzinfo=UTC),
    datetime(2024, 5, 1, 0, 0, 0, 1, tzinfo=UTC),
    datetime(2024, 5, 1, 2, tzinfo=timezone(timedelta(hours=2))),
    datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
]

storable = st.characters(codec="utf-8", exclude_characters="\x00")
texts = st.sampled_from(FREQUENT_TEXTS) | st.sampled_from(ODD_TEXTS) | st.text(storable, max_size=6)
keys = (
    st.sampled_from(FREQUENT_KEYS)
    | st.sampled_from(FREQUENT_KEYS)
    | st.sampled_from(ODD_KEYS)
    | st.text(storable, min_size=1, max_size=4)
)
whole_numbers = st.integers(0, 3) | st.sampled_from([n for n in ODD_NUMBERS if type(n) is int])
numbers = (
    st.sampled_from(FREQUENT_NUMBERS)
    | st.sampled_from(ODD_NUMBERS)
    | st.floats(allow_nan=False, allow_infinity=False)
)
sequences = st.sampled_from([*FREQUENT_NUMBERS, *(n for n in ODD_NUMBERS if abs(n) <= 2**53)])
moments = st.sampled_from(ODD_MOMENTS) | st.datetimes(timezones=st.just(UTC))
scalars = texts | numbers | st.booleans()

VALUES = {"text": texts, "number": numbers, "integer": sequences, "moment": moments}
TEXT_FIELDS = [name for name, kind in FIELD_KINDS.items() if kind == "text"]


@st.composite
def records(draw):
    optional = st.none() | texts
    given_texts = {
        name: draw(optional)
        for name in ("org", "project", "agent", "user", "session", "parent_id", "path")
    }
    return MemoryRecord(
        id=draw(texts),
        text=draw(texts),
        at=draw(moments),
        created_at=draw(moments),
        expires_at=draw(st.none() | moments),
        type=draw(st.sampled_from(MEMORY_TYPES)),
        importance=draw(st.sampled_from([0.0, 0.1, 0.30000000000000004, 0.5, 1.0])),
        producer=draw(texts),
        sequence=draw(st.none() | whole_numbers),
        metadata=draw(st.dictionaries(keys, scalars, max_size=4)),
        **given_texts,
    )


names = st.sampled_from(FREQUENT_FIELDS) | st.sampled_from(sorted(FIELD_KINDS))
text_names = st.sampled_from(["text", "producer", "user"]) | st.sampled_from(TEXT_FIELDS)
references = names.map(Field) | keys.map(MetadataField)
text_references = text_names.map(Field) | keys.map(MetadataField)


def values_for(field):
    if field == Field("type"):
        return st.sampled_from(MEMORY_TYPES)
    return VALUES[FIELD_KINDS[field.name]] if isinstance(field, Field) else scalars


@st.composite
def comparisons(draw):
    field = draw(references)
    value = draw(values_for(field))
    ordered = ["gt", "ge", "lt", "le"] if not isinstance(value, bool) else []
    return Comparison(field, draw(st.sampled_from(["eq", "ne", *ordered])), value)


@st.composite
def memberships(draw):
    field = draw(references)
    return In(field, tuple(draw(st.lists(values_for(field), max_size=4))))


conditions = (
    comparisons()
    | memberships()
    | st.builds(Contains, text_references, texts, whole=st.booleans())
    | st.builds(IsNull, references)
)


def _combined(children):
    few = st.sampled_from([(0, 0), (1, 1), (2, 3), (2, 3), (2, 3), (2, 3)])
    several = few.flatmap(lambda n: st.lists(children, min_size=n[0], max_size=n[1])).map(tuple)
    return st.builds(And, several) | st.builds(Or, several) | st.builds(Not, children)


filters = st.recursive(conditions, _combined, max_leaves=8)
