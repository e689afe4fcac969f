"""The ledger of revisions: rows that are only added, of which the last one counts."""

from datetime import UTC, datetime

import pytest

from ekphory.errors import StoreError
from ekphory.store.ledger import FOREVER, Ledger, LedgerEntry, RevisionLink, RevisionLinks
from ekphory.types import Revision

THEN = datetime(2026, 1, 5, tzinfo=UTC)


def entry(name, *, state="active", keys=(1, 2)):
    revision = Revision(
        id=name, batch="b", older="o", newer="n", kind="replaces", probability=0.9,
        decided_by="caller", decided_at=THEN, state=state,
    )  # fmt: skip
    return LedgerEntry(
        revision=revision, owner=(None, "p", None, "mara"), pool="agent_memory",
        keys=keys, since=THEN, until=None,
    )  # fmt: skip


@pytest.fixture
def ledger(tmp_path):
    made = Ledger(str(tmp_path))
    made.make(judged_to=5)
    return made


def test_a_store_without_a_ledger_has_no_entries(tmp_path):
    state = Ledger(str(tmp_path)).read()
    assert (dict(state.entries), state.judged_to) == ({}, None)
    assert list(tmp_path.iterdir()) == []


def test_entries_are_read_back_as_they_were_added(ledger, tmp_path):
    ledger.append([entry("a"), entry("b")], judged_to=9)
    state = Ledger(str(tmp_path)).read()
    assert dict(state.entries) == {"a": entry("a"), "b": entry("b")}
    assert state.judged_to == 9


def test_of_the_rows_of_one_decision_the_last_one_counts(ledger, tmp_path):
    ledger.append([entry("a")])
    ledger.append([entry("a", state="undone")])
    for each in (ledger, Ledger(str(tmp_path))):
        assert each.read().entries["a"].revision.state == "undone"


def test_what_another_handle_adds_is_read(ledger, tmp_path):
    other = Ledger(str(tmp_path))
    assert dict(other.read().entries) == {}
    ledger.append([entry("a")])
    assert list(other.read().entries) == ["a"]
    other.append([entry("b")], judged_to=7)
    assert (list(ledger.read().entries), ledger.read().judged_to) == (["a", "b"], 7)


def test_how_far_memories_were_compared_never_goes_back(ledger):
    ledger.append([], judged_to=20)
    ledger.append([], judged_to=10)
    assert ledger.read().judged_to == 20


def test_making_a_ledger_again_leaves_it_as_it_is(ledger):
    ledger.append([entry("a")], judged_to=20)
    ledger.make(judged_to=3)
    assert (list(ledger.read().entries), ledger.read().judged_to) == (["a"], 20)


def test_many_commits_are_merged_and_nothing_is_lost(ledger, tmp_path):
    for number in range(200):
        ledger.append([entry(f"e{number}")])
    assert len(Ledger(str(tmp_path)).read().entries) == 200
    assert len(list((tmp_path / "revisions.lance" / "data").iterdir())) < 100


def test_what_was_added_before_a_purge_is_read_by_who_had_not_read_it(ledger, tmp_path):
    ledger.append([entry("a"), entry("z")])
    other = Ledger(str(tmp_path))
    assert list(other.read().entries) == ["a", "z"]
    ledger.append([entry("b")])
    ledger.append([entry("a", state="undone")])
    ledger.purge(lambda each: each.revision.id != "z")
    found = other.read().entries
    assert found["a"].revision.state == "undone"
    other.purge(lambda each: each.revision.id != "z")
    assert sorted(Ledger(str(tmp_path)).read().entries) == ["a", "b"]


def test_what_is_decided_again_is_the_newest_decision(ledger, tmp_path):
    ledger.append([entry("a"), entry("b")])
    ledger.append([entry("a")])
    for each in (ledger, Ledger(str(tmp_path))):
        assert list(each.read().entries) == ["b", "a"]


def test_a_purge_leaves_no_byte_of_what_is_not_kept(ledger, tmp_path):
    ledger.append([entry("secret-decision", keys=(3, 4)), entry("kept")], judged_to=9)
    ledger.purge(lambda each: each.keys[0] != 3)
    assert (list(ledger.read().entries), ledger.read().judged_to) == (["kept"], 9)
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(b"secret-decision" in content for content in files)
    assert any(b"kept" in content for content in files)


def test_adding_without_a_ledger_is_refused(tmp_path):
    with pytest.raises(StoreError, match="the ledger of revisions is gone"):
        Ledger(str(tmp_path)).append([entry("a")])


def test_a_damaged_ledger_is_named(ledger, tmp_path):
    for path in (tmp_path / "revisions.lance" / "_versions").iterdir():
        path.write_bytes(b"broken")
    with pytest.raises(StoreError, match=r"revisions\.lance: cannot read"):
        Ledger(str(tmp_path)).read()


def link(kind, older, newer, *, probability=0.9, until=FOREVER):
    return RevisionLink(older, newer, kind, probability, 10, until, "n", "r", acts=True)


def links(*given):
    return RevisionLinks._by_row(given)


def test_what_an_exception_was_found_to_supersede_stands_again_once_it_is_over():
    told = links(link("excepts", 0, 2, until=50), link("replaces", 1, 2))
    assert told.in_force(20).successor(1) is not None
    assert told.in_force(50).successor(1) is None
    # The exception itself is still known to have been one.
    assert [each.kind for each in told.in_force(50).of_rows([2])] == ["excepts"]


def test_what_a_caller_decided_outlasts_an_exception():
    told = links(link("excepts", 0, 2, until=50), link("replaces", 1, 2, probability=1.0))
    assert told.in_force(50).successor(1) is not None


def test_an_exception_that_is_over_and_lets_nothing_lapse_costs_no_search_a_thing():
    told = links(link("excepts", 0, 2, until=50), link("replaces", 1, 3))
    assert told.in_force(60) is told


def test_decisions_that_have_not_taken_effect_are_left_out():
    told = links(link("replaces", 1, 2))
    assert told.in_force(9).successor(1) is None
    assert told.in_force(10).successor(1) is not None
