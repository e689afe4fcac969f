"""A scope: what it restricts, what it fills in, what it refuses."""

from dataclasses import replace

import pytest
from tests.cases import read_cases
from tests.store.store_contract import contract_record

from ekphory.errors import InvalidInput, ScopeError
from ekphory.filters.grammar import parse_filter
from ekphory.filters.lance_sql import matches
from ekphory.scope import Scope

CASES = read_cases(__file__)

FIELDS = ["org", "project", "agent", "user", "session"]
PRIVATE_POOLS = ["agent_memory", "agent_tools", "agent_mistakes", "my own"]
SHARED_POOLS = [
    "shared_mistakes", "shared_knowledge", "shared_rules", "reference_library", "reference_code",
]  # fmt: skip


def record(**fields):
    return replace(contract_record(1), **fields)


@pytest.mark.parametrize("field", FIELDS)
def test_a_bound_field_must_be_equal(field):
    predicate = Scope(**{field: "a"}).predicate()
    assert matches(predicate, record(**{field: "a"}))
    assert not matches(predicate, record(**{field: "b"}))
    assert not matches(predicate, record(**{field: None}))


@pytest.mark.parametrize("other", ["A", " a", "a ", "á", "a%", "' OR TRUE --", "aa"])
def test_only_exactly_the_same_name_is_equal(other):
    assert not matches(Scope(user="a").predicate(), record(user=other))


def test_an_unbound_field_is_no_restriction_and_what_a_scope_owns_is_one():
    # An unbound field does not restrict.
    predicate = Scope(project="p").predicate()
    assert matches(predicate, record(project="p", agent="a", user="u", session="s", org="o"))
    assert matches(Scope().predicate(), record())
    # What a scope owns is restricted in every pool.
    predicate = Scope(user="a").own_predicate()
    assert not matches(predicate, record(user="b", pool="shared_rules"))


@pytest.mark.parametrize("field", ["agent", "user", "session"])
@pytest.mark.parametrize("pool", SHARED_POOLS)
def test_the_whole_project_sees_shared_and_reference_pools(field, pool):
    predicate = Scope(project="p", **{field: "a"}).predicate()
    assert matches(predicate, record(project="p", pool=pool, **{field: "b"}))
    assert matches(predicate, record(project="p", pool=pool))


@pytest.mark.parametrize("field", ["org", "project"])
@pytest.mark.parametrize("pool", SHARED_POOLS)
def test_nobody_else_sees_them(field, pool):
    predicate = Scope(**{field: "a"}, user="u").predicate()
    assert not matches(predicate, record(pool=pool, user="u", **{field: "b"}))


@pytest.mark.parametrize("pool", PRIVATE_POOLS)
def test_other_pools_are_seen_by_their_own_agent_alone(pool):
    # Other pools are seen by their own agent alone.
    predicate = Scope(project="p", agent="a").predicate()
    assert matches(predicate, record(project="p", pool=pool, agent="a"))
    assert not matches(predicate, record(project="p", pool=pool, agent="b"))
    assert not matches(predicate, record(project="p", pool=pool))
    # Without an agent bound all agents are seen.
    assert matches(Scope(project="p").predicate(), record(project="p", pool=pool, agent="a"))


def test_a_bound_field_is_filled_in_and_cannot_be_changed():
    # A bound field is filled in.
    scope = Scope(user="a")
    assert (scope.fill("user", None), scope.fill("user", "a"), scope.fill("agent", "x")) == (
        "a", "a", "x",
    )  # fmt: skip
    # A bound field cannot be changed.
    with pytest.raises(ScopeError, match=r"user='b': this handle is bound to user='a'. Open a"):
        Scope(user="a").fill("user", "b")


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", ["", "  ", 5, b"a", "a\x00", "\ud800", "x" * 10_001])
def test_what_is_no_name_is_refused(field, value):
    with pytest.raises(InvalidInput, match=f"^{field}=.*Leave it out to unbind"):
        Scope(**{field: value})


@pytest.mark.parametrize("text", CASES["filters that leave"])
def test_a_filter_that_asks_for_another_project_or_org_is_refused(text):
    with pytest.raises(ScopeError, match=r"='q': the filter leaves the scope.*Open a handle"):
        Scope(org="o", project="p").refuse_leaving(parse_filter(text))


@pytest.mark.parametrize("text", CASES["filters that stay"])
def test_a_filter_that_stays_within_the_scope_is_not_refused(text):
    Scope(org="o", project="p", user="alice").refuse_leaving(parse_filter(text))


def test_an_unbound_scope_may_be_asked_for_any_project():
    Scope().refuse_leaving(parse_filter("project = 'q'"))
