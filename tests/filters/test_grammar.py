"""The text form of filters, read and printed."""

from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.cases import read_cases

from ekphory.errors import FilterError
from ekphory.filters.grammar import format_filter, parse_filter
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

from .strategies import filters

CASES = read_cases(__file__)


def equals(name, value):
    return Comparison(Field(name), "eq", value)


def metadata_equals(key, value):
    return Comparison(MetadataField(key), "eq", value)


@pytest.mark.parametrize(("symbol", "operator"), CASES["operators"])
def test_each_symbol_is_its_operator_with_and_without_spaces(symbol, operator):
    expected = Comparison(Field("sequence"), operator, 3)
    assert parse_filter(f"sequence {symbol} 3") == expected
    assert parse_filter(f"sequence{symbol}3") == expected


@pytest.mark.parametrize(("written", "value"), [*CASES["values"], ("9007199254740992", 2**53)])
def test_a_value_keeps_its_kind(written, value):
    parsed = parse_filter(f"m.key = {written}")
    assert repr(parsed) == repr(metadata_equals("key", value))


A, B, C = equals("producer", "a"), equals("role", "b"), equals("path", "c")
MAY = datetime(2026, 5, 1, tzinfo=UTC)
TEN_O_CLOCK = datetime(2026, 5, 1, 10, tzinfo=UTC)
A_THOUSAND = ",".join(["1"] * 1_000)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        *((f"{key} = 1", metadata_equals(name, 1)) for key, name in CASES["metadata keys"]),
        *((f"{name} = 'x'", equals(own, "x")) for name, own in CASES["names of MemMachine"]),
        ("timestamp = date('2026-05-01')", equals("at", MAY)),
        # Moments, in UTC.
        ("at = date('2026-05-01')", equals("at", MAY)),
        ("at = DATE ( '2026-05-01T10:00:00Z' )", equals("at", TEN_O_CLOCK)),
        ("at = date('2026-05-01T12:00:00+02:00')", equals("at", TEN_O_CLOCK)),
        ("at = '2026-05-01T10:00:00.000001'", equals("at", TEN_O_CLOCK.replace(microsecond=1))),
        ("at = '2026-05-01'", equals("at", MAY)),
        # Other conditions.
        ("id IN ('a')", In(Field("id"), ("a",))),
        ("id in ('a','b' , 'c')", In(Field("id"), ("a", "b", "c"))),
        ("id NOT IN ('a')", Not(In(Field("id"), ("a",)))),
        ("id IN ()", In(Field("id"), ())),
        ("m.x IN (1, 2.5, 'c', true)", In(MetadataField("x"), (1, 2.5, "c", True))),
        ("at IN ('2026-05-01')", In(Field("at"), (MAY,))),
        ("text CONTAINS 'a%'", Contains(Field("text"), "a%")),
        ("m.note contains 'x'", Contains(MetadataField("note"), "x")),
        ("text NOT CONTAINS 'x'", Not(Contains(Field("text"), "x"))),
        ("m.labels HAS 'health'", Contains(MetadataField("labels"), "health", whole=True)),
        ("source not has 'x'", Not(Contains(Field("source"), "x", whole=True))),
        ("session IS NULL", IsNull(Field("session"))),
        ("m.x is not null", Not(IsNull(MetadataField("x")))),
        ("TRUE", And(())),
        ("not false", Not(Or(()))),
        # AND binds tighter than OR, and NOT tightest.
        ("{a} AND {b} AND {c}", And((A, B, C))),
        ("{a} OR {b} OR {c}", Or((A, B, C))),
        ("{a} OR {b} AND {c}", Or((A, And((B, C))))),
        ("{a} AND {b} OR {c}", Or((And((A, B)), C))),
        ("({a} OR {b}) AND {c}", And((Or((A, B)), C))),
        ("({a} AND {b}) AND {c}", And((And((A, B)), C))),
        ("NOT {a} AND {b}", And((Not(A), B))),
        ("NOT ({a} AND {b})", Not(And((A, B)))),
        ("NOT NOT {a}", Not(Not(A))),
        ("((({a})))", A),
        ("({a})and({b})", And((A, B))),
        ("{a}\n\tAnd not\u00a0{b}", And((A, Not(B)))),
        # As much as is allowed.
        ("(" * 50 + "{a}" + ")" * 50, A),
        ("id = '" + "a" * 9_993 + "'", equals("id", "a" * 9_993)),
        (f"m.x IN ({A_THOUSAND})", In(MetadataField("x"), (1,) * 1_000)),
    ],
)
def test_a_filter_is_read_as_its_tree(text, tree):
    written = text.format(a="producer = 'a'", b="role = 'b'", c="path = 'c'")
    assert repr(parse_filter(written)) == repr(tree)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *CASES["what cannot be read"],
        ("m.x = " + "9" * 5000, "not a finite number"),
        ("m.x = '\ud800'", "lone surrogate"),
        ("(" * 51 + "id = 'a'" + ")" * 51, "nested deeper than 50"),
        ("NOT " * 51 + "id = 'a'", "nested deeper than 50"),
        ("id = '" + "a" * 9_993 + "' ", "longer than 10000 characters"),
        (f"m.x IN ({A_THOUSAND},1)", "more than 1000 values"),
        # Long and malformed: at once.
        ("m.x = " + "1" * 9_000 + "x", "value expected"),
        ("'" * 9_999, "quote never closed"),
        ('"' * 9_999, "quote never closed|unknown character"),
        ("m.x = " + "1." * 4_000, "value expected"),
    ],
)
def test_what_cannot_be_read_is_a_filter_error_that_says_where(text, message):
    with pytest.raises(FilterError, match=message) as caught:
        parse_filter(text)
    assert caught.value.field == "filter"
    assert caught.value.remedy.endswith(".")


def test_printing_checks_the_filter():
    with pytest.raises(FilterError, match="unknown field"):
        format_filter(equals("colour", "red"))


@pytest.mark.parametrize(
    ("text", "message"), CASES["an unknown field or type names the nearest known one"]
)
def test_an_unknown_field_or_type_names_the_nearest_known_one(text, message):
    with pytest.raises(FilterError) as caught:
        parse_filter(text)
    assert str(caught.value) == message


PIECES = [
    "producer", "at", "m.a", '"b c"', "=", "<>", "<=", "!", "'x'", "'", '"', "''", "3", "-1.5e3",
    "(", ")", ",", "IN", "NOT", "AND", "or", "IS", "NULL", "CONTAINS", "date(", "'2026-05-01'",
    "true", "\x00", "\ud800", "٣", ".", "m.", "--", ";",
]  # fmt: skip
any_text = st.text(max_size=60) | st.text(st.characters(categories=["Cs", "Cc", "P", "N"]))
grammar_like = st.lists(st.sampled_from(PIECES), max_size=25).map(" ".join)


@given(text=any_text | grammar_like)
@example(text="m.x = ٣")
def test_any_text_is_a_filter_or_a_filter_error(text):
    try:
        parse_filter(text)
    except FilterError:
        return


# Printing.

ANNA = equals("producer", "Anna")
AGE = Comparison(MetadataField("age"), "gt", 3)
SESSION = Comparison(Field("session"), "ne", "s")


@given(tree=filters)
def test_a_printed_filter_reads_back_as_its_normal_form(tree):
    normal_form = check_filter(tree)
    # repr tells 3 from 3.0 and from True, which == does not.
    assert repr(parse_filter(format_filter(tree))) == repr(normal_form)


@given(tree=filters)
def test_the_normal_form_is_its_own_normal_form(tree):
    assert repr(check_filter(check_filter(tree))) == repr(check_filter(tree))


@pytest.mark.parametrize(
    ("tree", "printed"),
    [
        (And((ANNA, AGE)), "producer = 'Anna' AND m.age > 3"),
        (Or((And((ANNA, AGE)), SESSION)), "producer = 'Anna' AND m.age > 3 OR session != 's'"),
        (And((ANNA, Or((AGE, SESSION)))), "producer = 'Anna' AND (m.age > 3 OR session != 's')"),
        (Not(Or((ANNA, AGE))), "NOT (producer = 'Anna' OR m.age > 3)"),
        (Not(In(Field("id"), ("a", "b"))), "id NOT IN ('a', 'b')"),
        (And(()), "TRUE"),
        (Or(()), "FALSE"),
        (metadata_equals('a "b"', "it's"), 'm."a ""b""" = \'it\'\'s\''),
        (Comparison(Field("at"), "ge", MAY), "at >= date('2026-05-01T00:00:00+00:00')"),
    ],
)
def test_a_filter_prints_as_a_person_would_write_it(tree, printed):
    assert format_filter(tree) == printed
