from datetime import UTC, datetime

import pytest
from hypothesis import given

from ekphory.errors import FilterError
from ekphory.filters.grammar import format_filter, parse_filter
from ekphory.filters.tree import And, Comparison, Field, In, MetadataField, Not, Or, check_filter

from .strategies import filters

A = Comparison(Field("producer"), "eq", "Anna")
B = Comparison(MetadataField("age"), "gt", 3)
C = Comparison(Field("session"), "ne", "s")


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
        (And((A, B)), "producer = 'Anna' AND m.age > 3"),
        (Or((And((A, B)), C)), "producer = 'Anna' AND m.age > 3 OR session != 's'"),
        (And((A, Or((B, C)))), "producer = 'Anna' AND (m.age > 3 OR session != 's')"),
        (Not(Or((A, B))), "NOT (producer = 'Anna' OR m.age > 3)"),
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
