"""`add`: what is written, and when it is there already."""

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest

A_DAY = datetime(2026, 5, 8, tzinfo=UTC)


def test_a_text_is_remembered(memory):
    report = memory.add("I prefer Python over JavaScript")
    assert (report.added, report.skipped, report.failed) == (1, 0, [])
    assert memory.get(report.ids[0]).text == "I prefer Python over JavaScript"


def test_every_field_comes_back(memory):
    memory.add(
        "Use tabs",
        id="rule 1",
        at="2026-05-08T10:00:00+02:00",
        producer="Anna",
        produced_for="Ben",
        role="user",
        session="s1",
        sequence=4,
        pool="shared_rules",
        type="procedural",
        importance=0.8,
        expires_at="2900-01-01",
        source="handbook",
        metadata={"team": "core", "votes": 3, "share": 0.5, "final": True},
    )
    found = memory.get("rule 1")
    assert (found.producer, found.produced_for, found.role) == ("Anna", "Ben", "user")
    assert (found.session, found.sequence, found.pool) == ("s1", 4, "shared_rules")
    assert (found.type, found.importance, found.source) == ("procedural", 0.8, "handbook")
    assert found.at == datetime(2026, 5, 8, 8, tzinfo=UTC)
    assert found.expires_at == datetime(2900, 1, 1, tzinfo=UTC)
    assert found.metadata == {"team": "core", "votes": 3, "share": 0.5, "final": True}


def test_what_is_not_given_has_a_default(memory):
    before = datetime.now(UTC)
    memory.add("hello", id="1")
    found = memory.get("1")
    assert (found.pool, found.type, found.importance) == ("agent_memory", "unknown", 0.5)
    assert (found.producer, found.sequence, found.metadata) == ("", None, {})
    assert before <= found.created_at == found.at <= datetime.now(UTC)


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("2026-05-08", A_DAY),
        ("2026-05-08T00:00:00Z", A_DAY),
        ("2026-05-07T20:00:00.000000-04:00", A_DAY),
        (" 2026-05-08T00:00 ", A_DAY),
        (datetime(2026, 5, 8), A_DAY),
        (datetime(2026, 5, 8, 9, tzinfo=timezone(timedelta(hours=9))), A_DAY),
        ("0001-01-01", datetime(1, 1, 1, tzinfo=UTC)),
        ("9998-12-31T23:59:59.999999Z", datetime(9998, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
    ],
)
def test_moments_are_kept_in_utc_to_the_microsecond(memory, given, stored):
    memory.add("hello", id="1", at=given)
    found = memory.get("1").at
    assert (found, found.utcoffset()) == (stored, timedelta(0))


@pytest.mark.parametrize(
    "name",
    ["1", " ", "a b", "it's", 'q"uo', "日本", "😀", "x" * 10_000, "' OR TRUE --", "\n", "id~1"],
)
def test_an_id_may_be_any_text_and_comes_back_verbatim(memory, name):
    assert memory.add("hello", id=name).ids == (name,)
    assert memory.get(name).id == name


def test_ids_of_our_own_sort_by_the_moment_they_are_about(memory):
    moments = ["0001-01-01", "1969-12-31", "1970-01-01", "2026-05-08", "2026-05-09", "9998-12-31"]
    ids = [memory.add("hello", at=moment).ids[0] for moment in moments]
    assert ids == sorted(ids)


def test_with_an_id_the_id_alone_decides(memory):
    memory.add("first", id="1", producer="Anna")
    report = memory.add("second", id="1", producer="Ben", session="s9")
    assert (report.added, report.skipped, report.ids) == (0, 1, ("1",))
    assert [entry.text for entry in memory.list()] == ["first"]


def test_the_same_text_under_two_ids_is_two_memories(memory):
    memory.add("same", id="1")
    assert memory.add("same", id="2").added == 1


def test_without_an_id_the_same_record_is_skipped_and_its_id_told(memory):
    first = memory.add("hello", producer="Anna", at="2026-05-08", session="s1", sequence=1)
    again = memory.add("hello", producer="Anna", at="2026-05-08", session="s1", sequence=1)
    assert (again.added, again.skipped, again.ids) == (0, 1, first.ids)


@pytest.mark.parametrize(
    "difference",
    [
        {"producer": "Ben"},
        {"at": "2026-05-09"},
        {"session": "s2"},
        {"sequence": 2},
        {"text": "Hello"},
    ],
)
def test_without_an_id_any_part_of_the_identity_makes_another_memory(memory, difference):
    given = {
        "text": "hello", "producer": "Anna", "at": "2026-05-08", "session": "s1", "sequence": 1,
    }  # fmt: skip
    memory.add(**given)
    assert memory.add(**(given | difference)).added == 1


@pytest.mark.parametrize(
    "difference",
    [{"pool": "agent_tools"}, {"importance": 0.9}, {"metadata": {"a": 1}}, {"type": "semantic"}],
)
def test_without_an_id_other_fields_do_not_make_another_memory(memory, difference):
    memory.add("hello", at="2026-05-08")
    assert memory.add("hello", at="2026-05-08", **difference).skipped == 1


def test_the_same_moment_written_in_two_ways_is_the_same_moment(memory):
    memory.add("hello", at="2026-05-08T02:00:00+02:00")
    assert memory.add("hello", at=A_DAY).skipped == 1


def test_without_a_moment_the_same_text_is_the_same_memory_later_too(memory):
    memory.add("hello")
    assert memory.add("hello").skipped == 1


def test_another_scope_may_use_the_same_id(open_memory):
    alice, bob = open_memory(user="alice"), open_memory(user="bob")
    alice.add("mine", id="1")
    assert bob.add("also mine", id="1").added == 1
    assert (alice.get("1").text, bob.get("1").text) == ("mine", "also mine")


def test_what_was_forgotten_can_be_added_again(memory):
    memory.add("hello", id="1")
    memory.forget("1")
    assert memory.add("hello again", id="1").added == 1
    assert memory.get("1").text == "hello again"


def test_a_record_that_was_changed_since_is_not_added_again(memory):
    first = memory.add("hello", at="2026-05-08").ids[0]
    memory.update(first, text="changed")
    report = memory.add("hello", at="2026-05-08")
    assert (report.skipped, report.ids) == (1, (first,))
    assert [entry.text for entry in memory.list()] == ["changed"]


def test_a_record_that_was_changed_and_then_expired_can_be_added_again(memory):
    first = memory.add("hello", at="2026-05-08").ids[0]
    memory.update(first, expires_at=datetime.now(UTC) + timedelta(milliseconds=150))
    time.sleep(0.2)
    assert memory.add("hello", at="2026-05-08").added == 1
    assert memory.count() == 1


def test_the_bound_scope_is_filled_in(open_memory):
    open_memory(org="acme", project="apollo", agent="planner", user="alice", session="s1").add("x")
    found = open_memory().list()[0]
    assert (found.org, found.project, found.agent) == ("acme", "apollo", "planner")
    assert (found.user, found.session) == ("alice", "s1")


def test_an_unbound_session_may_be_given(memory):
    memory.add("hello", id="1", session="s7")
    assert memory.get("1").session == "s7"


def test_a_memory_is_searchable_at_once(memory):
    for number in range(8):
        memory.add(f"the colour number {number} is zzyzx{number}")
        assert memory.search(f"zzyzx{number}", k=1).hits[0].text.endswith(f"zzyzx{number}")


@pytest.mark.slow
def test_many_single_adds_are_merged_into_few_files(memory):
    for number in range(80):
        memory.add(f"fact {number}")
    assert memory.health().fragments < 70
    assert memory.count() == 80
