"""The text form of filters, read and printed."""

from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

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


def equals(name, value):
    return Comparison(Field(name), "eq", value)


def metadata_equals(key, value):
    return Comparison(MetadataField(key), "eq", value)


@pytest.mark.parametrize(
    ("symbol", "operator"),
    [
        ("=", "eq"),
        ("!=", "ne"),
        ("<>", "ne"),
        (">", "gt"),
        (">=", "ge"),
        ("<", "lt"),
        ("<=", "le"),
    ],
)
def test_each_symbol_is_its_operator_with_and_without_spaces(symbol, operator):
    expected = Comparison(Field("sequence"), operator, 3)
    assert parse_filter(f"sequence {symbol} 3") == expected
    assert parse_filter(f"sequence{symbol}3") == expected


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("'Anna'", "Anna"),
        ("''", ""),
        ("'it''s'", "it's"),
        ("''''", "'"),
        ("'a AND b = (1, \"c\")'", 'a AND b = (1, "c")'),
        ("'100%_\\'", "100%_\\"),
        ("'日本語 😀'", "日本語 😀"),
        ("3", 3),
        ("-3", -3),
        ("+3", 3),
        ("3.0", 3.0),
        (".5", 0.5),
        ("-2.5e-3", -0.0025),
        ("1E3", 1000.0),
        ("007", 7),
        ("9007199254740992", 2**53),
        ("true", True),
        ("FALSE", False),
    ],
)
def test_a_value_keeps_its_kind(written, value):
    parsed = parse_filter(f"m.key = {written}")
    assert repr(parsed) == repr(metadata_equals("key", value))


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("m.city", "city"),
        ("metadata.city", "city"),
        ("m.address.city", "address.city"),
        ("m.größe", "größe"),
        ("m.2024", "2024"),
        ("m.1e5", "1e5"),
        ("m.and", "and"),
        ("m.id", "id"),
        ('m."sp ace"', "sp ace"),
        ('metadata."it\'s"', "it's"),
        ('m."say ""hi"""', 'say "hi"'),
        ('"a-b"', "a-b"),
        ('"m.city"', "m.city"),
    ],
)
def test_a_metadata_key_is_read_as_written(written, key):
    assert parse_filter(f"{written} = 1") == metadata_equals(key, 1)


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("producer_id", "producer"),
        ("produced_for_id", "produced_for"),
        ("producer_role", "role"),
        ("uid", "id"),
    ],
)
def test_the_names_of_memmachine_are_understood(alias, name):
    assert parse_filter(f"{alias} = 'x'") == equals(name, "x")


def test_timestamp_is_the_time_of_the_event():
    moment = datetime(2026, 5, 1, tzinfo=UTC)
    assert parse_filter("timestamp = date('2026-05-01')") == equals("at", moment)


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("date('2026-05-01')", datetime(2026, 5, 1, tzinfo=UTC)),
        ("DATE ( '2026-05-01T10:00:00Z' )", datetime(2026, 5, 1, 10, tzinfo=UTC)),
        ("date('2026-05-01T10:00:00+02:00')", datetime(2026, 5, 1, 8, tzinfo=UTC)),
        ("'2026-05-01T10:00:00.000001'", datetime(2026, 5, 1, 10, 0, 0, 1, tzinfo=UTC)),
        ("'2026-05-01'", datetime(2026, 5, 1, tzinfo=UTC)),
    ],
)
def test_a_moment_is_read_in_utc(written, moment):
    assert parse_filter(f"at = {written}") == equals("at", moment)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("id IN ('a')", In(Field("id"), ("a",))),
        ("id in ('a','b' , 'c')", In(Field("id"), ("a", "b", "c"))),
        ("id NOT IN ('a')", Not(In(Field("id"), ("a",)))),
        ("id IN ()", In(Field("id"), ())),
        ("m.x IN (1, 2.5, 'c', true)", In(MetadataField("x"), (1, 2.5, "c", True))),
        ("at IN ('2026-05-01')", In(Field("at"), (datetime(2026, 5, 1, tzinfo=UTC),))),
        ("text CONTAINS 'a%'", Contains(Field("text"), "a%")),
        ("m.note contains 'x'", Contains(MetadataField("note"), "x")),
        ("text NOT CONTAINS 'x'", Not(Contains(Field("text"), "x"))),
        ("session IS NULL", IsNull(Field("session"))),
        ("m.x is not null", Not(IsNull(MetadataField("x")))),
        ("TRUE", And(())),
        ("not false", Not(Or(()))),
    ],
)
def test_each_other_condition_is_read(text, tree):
    assert repr(parse_filter(text)) == repr(tree)


A, B, C = equals("producer", "a"), equals("role", "b"), equals("path", "c")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
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
    ],
)
def test_and_binds_tighter_than_or_and_not_tightest(text, tree):
    written = text.format(a="producer = 'a'", b="role = 'b'", c="path = 'c'")
    assert parse_filter(written) == tree


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no text to read"),
        (" \n ", "no text to read"),
        ("producer", "no condition at character 9"),
        ("producer =", "value expected at character 11"),
        ("= 'a'", "field expected at character 1"),
        ("producer == 'a'", "value expected at character 11"),
        ("producer = 'a' role = 'b'", "nothing more fits at character 16"),
        ("producer = 'a')", "nothing more fits at character 15"),
        ("(producer = 'a'", r"\) expected at character 16"),
        ("producer = 'a' AND", "field expected at character 19"),
        ("AND producer = 'a'", "unknown field at character 1"),
        ("producer = 'a", "quote never closed at character 12"),
        ("producer = 'a' AND 'b'", "field expected at character 20"),
        ("producer = 'it's'", "quote never closed at character 17"),
        ('m."key = 1', "unknown character at character 3|quote never closed at character 3"),
        ("producer = 'a'; DROP TABLE t", "unknown character at character 15"),
        ("producer = 'a' -- rest", "unknown character at character 16"),
        ("producer & 'a'", "unknown character at character 10"),
        ("producer = Anna", "value expected at character 12"),
        ("producer = NULL", "NULL is not a value"),
        ("producer IS 'a'", "NULL expected"),
        ("producer IN 'a'", r"\( expected"),
        ("producer IN ('a' 'b')", r"\) expected"),
        ("producer IN ('a',)", "value expected"),
        ("producer NOT 'a'", "no condition"),
        ("producer LIKE 'a%'", "no condition"),
        ("text CONTAINS 3", "a text expected at character 15"),
        ("at > date(2026)", "a text expected"),
        ("at > date('2026-05-01'", r"\) expected"),
        ("at > date('yesterday')", "not an ISO 8601 moment at character 11"),
        ("at > '2026-13-01'", "not an ISO 8601 moment at character 6"),
        ("at > '0001-01-01T00:00:00+02:00'", "not an ISO 8601 moment"),
        ("at > 3", "at holds a moment"),
        ("producer = 3", "producer holds a text at character 12"),
        ("producer IN ('a', 3)", "producer holds a text at character 19"),
        ("producer = date('2026-05-01')", "producer holds a text"),
        ("importance = 'high'", "importance holds a number"),
        ("importance = true", "importance holds a number"),
        ("sequence > '3'", "sequence holds a number"),
        ("at CONTAINS '2026'", "at|holds no text"),
        ("m.done > true", "no order"),
        ("m.due > date('2026-05-01')", "metadata holds texts, numbers and booleans only"),
        ("m. = 1", "not a field"),
        ('"" = 1', "not a field"),
        ("m.x = 1e999", "not a finite number"),
        ("m.x = 9007199254740993", "whole number beyond"),
        ("m.x = " + "9" * 5000, "not a finite number"),
        ("m.x = 1.2.3", "value expected"),
        ("m.x = 3abc", "value expected"),
        ("m.x = '\x00'", "NUL"),
        ("m.x = '\ud800'", "lone surrogate"),
        ("vector = 'x'", "unknown field"),
        ("metadata = 'x'", "unknown field"),
    ],
)
def test_what_cannot_be_read_is_a_filter_error_that_says_where(text, message):
    with pytest.raises(FilterError, match=message) as caught:
        parse_filter(text)
    assert caught.value.field == "filter"
    assert caught.value.remedy.endswith(".")


def test_an_unknown_field_names_the_nearest_known_one():
    with pytest.raises(FilterError) as caught:
        parse_filter("role = 'x' AND producr = 'Anna'")
    assert str(caught.value) == (
        "filter='producr': unknown field at character 16. "
        "Did you mean producer? A metadata key is written m.producr."
    )


@pytest.mark.parametrize("text", ["(" * 51 + "id = 'a'" + ")" * 51, "NOT " * 51 + "id = 'a'"])
def test_nesting_deeper_than_fifty_is_refused(text):
    with pytest.raises(FilterError, match="nested deeper than 50"):
        parse_filter(text)


def test_nesting_of_fifty_is_read():
    assert parse_filter("(" * 50 + "producer = 'a'" + ")" * 50) == A


def test_ten_thousand_characters_are_read_and_one_more_is_refused():
    longest = "id = '" + "a" * 9_993 + "'"
    assert parse_filter(longest) == equals("id", "a" * 9_993)
    with pytest.raises(FilterError, match="longer than 10000 characters"):
        parse_filter(longest + " ")


def test_a_thousand_values_are_read_and_one_more_is_refused():
    numbers = ",".join(["1"] * 1_000)
    assert parse_filter(f"m.x IN ({numbers})") == In(MetadataField("x"), (1,) * 1_000)
    with pytest.raises(FilterError, match="more than 1000 values"):
        parse_filter(f"m.x IN ({numbers},1)")


@pytest.mark.parametrize(
    "text", ["m.x = " + "1" * 9_000 + "x", "'" * 9_999, '"' * 9_999, "m.x = " + "1." * 4_000]
)
def test_a_long_malformed_filter_is_refused_quickly(text):
    with pytest.raises(FilterError):
        parse_filter(text)


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

ANNA = Comparison(Field("producer"), "eq", "Anna")
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
        (Comparison(MetadataField('a "b"'), "eq", "it's"), 'm."a ""b""" = \'it\'\'s\''),
        (
            Comparison(Field("at"), "ge", datetime(2026, 5, 1, tzinfo=UTC)),
            "at >= date('2026-05-01T00:00:00+00:00')",
        ),
    ],
)
def test_a_filter_prints_as_a_person_would_write_it(tree, printed):
    assert format_filter(tree) == printed


def test_printing_checks_the_filter():
    with pytest.raises(FilterError, match="unknown field"):
        format_filter(Comparison(Field("colour"), "eq", "red"))
