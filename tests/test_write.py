"""Writing: what is checked, what is stored, and when it is there already."""

import itertools
import threading
import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from tests.cases import read_cases

from ekphory.errors import InvalidInput, ScopeError
from ekphory.scope import Scope
from ekphory.write import LONGEST_TEXT, make_draft, prepare, submit

CASES = read_cases(__file__)

# Records, checked field by field.

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def drafted(given, **scope):
    return make_draft(given, scope=Scope(**scope), now=NOW)


def test_only_the_text_is_required_and_kept_as_it_is():
    record = drafted({"text": "  two\n\tlines  ", "id": None, "at": None, "session": None}).record
    assert (record.text, record.at, record.created_at) == ("  two\n\tlines  ", NOW, NOW)


@pytest.mark.parametrize(
    ("given", "predicted", "left_out"),
    [({"type": "semantic"}, {"type"}, set()), ({}, set(), {"type"})],
    ids=["its value was given", "without its value"],
)
def test_a_value_that_was_predicted_before_keeps_its_mark(given, predicted, left_out):
    entry = drafted({"text": "a", "importance": 0.7, "predicted": ["type"]} | given)
    assert (entry.record.predicted, entry.left_out) == (predicted, left_out)


def test_what_is_indexed_names_the_heading_and_the_producer():
    assert drafted({"text": "hello", "producer": "Anna"}).record.indexed_text == "Anna: hello"
    assert drafted({"text": "hello"}).record.indexed_text == "hello"
    assert drafted({"text": "hello", "heading": "A > B"}).record.indexed_text == "A > B: hello"


BEYOND = [float("nan"), 2**53 + 1, 10**400]
REFUSED = {
    "text": ["", " \n\t", None, 5, b"bytes", "a\x00b", "half \ud83d", "x" * 10_000_000],
    "id": ["", 5, "a\x00", "x" * 10_001],
    "at": [
        "yesterday",
        "2026-13-01",
        "0000-01-01",
        "9999-01-01",
        "10000-01-01",
        "2026-05-08T10:00 Mars/Olympus",
        "2026-05-08T10:00+99:00",
        "0001-01-01T00:00+14:00",
        1700000000,
        datetime(9999, 1, 1, tzinfo=UTC),
    ],
    "expires_at": ["2020-01-01", "soon"],
    "importance": [-0.1, 1.1, float("nan"), True, "high"],
    "predicted": ["type", ["text"], [["type"]], 1],
    "type": ["dream", ["semantic"]],
    "pool": ["", "two words", "x" * 101, "a'b", 5],
    "sequence": [1.5, True, "1", 2**62],
    "producer": [5],
    "role": ["a\x00"],
    "source": ["\udc00"],
    "user": ["", " "],
    "project": [5],
    "metadata": [[], "a=1", {"": 1}, {5: 1}, {"a\x00": 1}],
    "metadata.a": [None, [1], {"b": 1}, b"x", "\ud800", float("inf"), *BEYOND],
    "record": [None, "hello", 5, ["text"], ("text", "hello")],
    "colour": ["red"],
    "producr": ["Anna"],
    "created_at": ["2026-01-01"],
    "supersedes": ["x"],
}


@pytest.mark.parametrize(
    ("field", "value"), [(field, value) for field in REFUSED for value in REFUSED[field]]
)
def test_a_value_that_cannot_be_stored_is_named_with_a_remedy(field, value):
    given = {"text": "hello", field: value}
    if field == "metadata.a":
        given = {"text": "hello", "metadata": {"a": value}}
    elif field == "record":
        given = value
    with pytest.raises(InvalidInput) as caught:
        drafted(given)
    assert caught.value.field == field
    assert caught.value.remedy
    assert str(caught.value).startswith(f"{field}=")
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("field", ["org", "project", "agent", "user", "session"])
def test_neither_a_record_nor_its_metadata_can_leave_the_scope(field):
    with pytest.raises(ScopeError, match=f"^metadata.{field}='x': metadata cannot set the scope"):
        drafted({"text": "hello", "metadata": {field: "x"}})
    with pytest.raises(ScopeError, match=f"^{field}='theirs': this handle is bound to"):
        drafted({"text": "hello", field: "theirs"}, **{field: "mine"})


def test_an_error_shows_the_beginning_of_a_long_value_and_the_nearest_field():
    with pytest.raises(InvalidInput) as caught:
        drafted({"text": "y" * (LONGEST_TEXT + 1)})
    assert "1,000,001 characters" in str(caught.value)
    assert "y" * 100 not in str(caught.value)
    assert len(drafted({"text": "y" * LONGEST_TEXT}).record.text) == 1_000_000
    with pytest.raises(InvalidInput, match=r"Did you mean 'producer'\?"):
        drafted({"text": "hello", "producr": "Anna"})


def test_what_has_a_session_or_a_sequence_belongs_to_a_thread():
    def thread(text, *, session=None, **scope):
        return drafted({"text": text, "session": session}, **scope).thread

    assert thread("a") == 0
    assert len({thread("a", session="s", user=user) for user in ("a", "b", None)}) == 3
    assert thread("a", session="s") == drafted({"text": "b"}, session="s").thread
    one, two = (drafted({"text": text, "sequence": n}) for n, text in enumerate("ab"))
    assert one.thread == two.thread != 0


# `add`: what is written, and when it is there already.

A_DAY = datetime(2026, 5, 8, tzinfo=UTC)


def test_every_field_comes_back(memory):
    given = dict(CASES["every field"])
    memory.add(**given)
    found = memory.get("rule 1")
    assert {name: getattr(found, name) for name in given} == given


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


def test_with_an_id_the_id_alone_decides_within_its_scope(memory, open_memory):
    memory.add("first", id="1", producer="Anna")
    report = memory.add("second", id="1", producer="Ben", session="s9")
    assert (report.added, report.skipped, report.ids) == (0, 1, ("1",))
    assert [entry.text for entry in memory.list()] == ["first"]
    assert memory.add("first", id="2", producer="Anna").added == 1
    memory.forget("1")
    assert memory.add("hello again", id="1").added == 1
    assert memory.get("1").text == "hello again"
    project = open_memory(project="apollo")
    project.add_many([{"text": name, "user": name, "id": "1"} for name in ("alice", "bob")])
    for name in ("alice", "bob"):
        assert open_memory(project="apollo", user=name).get("1").text == name


def written_together(*writes):
    """Write one record by each handle, all in one commit; return how many each added."""
    busy, engine = threading.Event(), writes[0][0]._engine
    engine.writer.submit(busy.wait)
    waiting = []
    for memory, given in writes:
        draft = make_draft(given, scope=memory.scope, now=NOW)
        waiting.append(submit(engine, memory.scope, prepare(engine.embedder, [draft])))
    busy.set()
    return [future.result().added for future in waiting]


def test_an_id_that_two_sessions_use_in_one_commit_is_of_both(open_memory):
    first, second = open_memory(session="s1"), open_memory(session="s2")
    writes = [(first, {"text": "one", "id": "k"}), (second, {"text": "two", "id": "k"})]
    assert written_together(*writes) == [1, 1]
    assert [first.get("k").text, second.get("k").text] == ["one", "two"]


def test_a_handle_of_no_session_does_not_add_the_id_of_a_session_in_one_commit(open_memory):
    bound, unbound = open_memory(session="s1"), open_memory()
    writes = [(bound, {"text": "one", "id": "k"}), (unbound, {"text": "two", "id": "k"})]
    assert written_together(*writes) == [1, 0]


@pytest.mark.parametrize(
    ("given", "again"),
    [
        ({}, {}),
        ({"at": "2026-05-08T02:00:00+02:00"}, {"at": A_DAY}),
        *[({"producer": "Anna", "at": A_DAY, "session": "s1", "sequence": 1},) * 2],
    ],
    ids=["at no moment", "at the same moment, written in two ways", "with all of its identity"],
)
def test_without_an_id_the_same_record_is_skipped_and_its_id_told(memory, given, again):
    first = memory.add("hello", **given)
    report = memory.add("hello", **again)
    assert (report.added, report.skipped, report.ids) == (0, 1, first.ids)


@pytest.mark.parametrize(("difference", "added"), CASES["identity"])
def test_without_an_id_the_parts_of_the_identity_alone_make_another_memory(
    memory, difference, added
):
    given = {
        "text": "hello", "producer": "Anna", "at": "2026-05-08", "session": "s1", "sequence": 1,
    }  # fmt: skip
    memory.add(**given)
    assert memory.add(**(given | difference)).added == added


def test_a_record_that_was_changed_since_is_not_added_again(memory):
    first = memory.add("hello", at="2026-05-08").ids[0]
    memory.update(first, text="changed")
    report = memory.add("hello", at="2026-05-08")
    assert (report.skipped, report.ids) == (1, (first,))
    assert [entry.text for entry in memory.list()] == ["changed"]


def test_a_record_whose_first_version_was_forgotten_is_not_added_again(memory):
    first = memory.add("hello", at="2026-05-08").ids[0]
    memory.update(first, text="changed")
    memory.forget(f"{first}~1")
    report = memory.add("hello", at="2026-05-08")
    assert (report.added, report.skipped, report.ids) == (0, 1, (first,))
    assert memory.get(first).text == "changed"


def test_a_record_that_came_back_with_its_id_is_not_added_again_without_one(memory):
    first = memory.add("hello", at="2026-05-08").ids[0]
    memory.forget(first)
    told = [{"id": first, "text": "hello"}, {"text": "hello", "at": "2026-05-08"}]
    report = memory.add_many(told)
    assert (report.added, report.skipped) == (1, 1)
    assert memory.add("hello", at="2026-05-08").ids == (first,)


@pytest.mark.parametrize("named", ["org", "project"])
@pytest.mark.parametrize(
    "order", [(None, "default"), ("default", None)], ids=["none first", "default first"]
)
def test_what_names_none_and_what_names_default_cannot_have_one_id(open_memory, named, order):
    reports = [open_memory(**{named: name}).add("hello", id="x") for name in order]
    assert [(report.added, report.skipped) for report in reports] == [(1, 0), (0, 1)]
    assert open_memory(**{named: "default"}).get("x").text == "hello"


@pytest.mark.parametrize("changes", [[], [{"importance": 0.9}]], ids=["once", "twice"])
def test_a_record_that_was_changed_and_then_expired_can_be_added_again(memory, changes):
    first = memory.add("hello", at="2026-05-08").ids[0]
    for change in changes:
        memory.update(first, **change)
    memory.update(first, expires_at=datetime.now(UTC) + timedelta(milliseconds=150))
    time.sleep(0.2)
    assert memory.add("hello", at="2026-05-08").added == 1
    assert (memory.count(), memory.health().memories) == (1, 1)


def test_what_has_expired_of_another_owner_stays_when_its_id_is_written_anew(memory):
    ended = datetime.now(UTC) + timedelta(seconds=1)
    memory.add_many([{"id": "x", "text": "tea", "user": "a", "expires_at": ended.isoformat()}])
    time.sleep(1)
    assert memory.add_many([{"id": "x", "text": "tea", "user": "b"}]).added == 1
    assert memory.health().memories == 2


def test_the_bound_scope_is_filled_in(open_memory):
    open_memory(org="acme", project="apollo", agent="planner", user="alice", session="s1").add("x")
    found = open_memory().list()[0]
    assert (found.org, found.project, found.agent) == ("acme", "apollo", "planner")
    assert (found.user, found.session) == ("alice", "s1")


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


# `add_many`: any number of records, streamed, with a report.


def rows(count):
    return ({"text": f"row {number}", "id": f"r{number}"} for number in range(count))


def test_repeating_the_call_skips_all(memory):
    report = memory.add_many([*rows(600), *rows(300)])
    assert (report.added, report.skipped, report.failed) == (600, 300, [])
    report = memory.add_many(rows(600))
    assert (report.added, report.skipped) == (0, 600)
    assert memory.count() == 600
    for report in (memory.add_many([]), memory.add_messages([])):
        assert (report.added, report.skipped, report.failed, report.ids) == (0, 0, [], ())


def test_failures_in_the_middle_stop_nothing(memory):
    failing = [
        {"text": " ", "id": "empty"},
        {"text": "second", "colour": "red"},
        "no dict",
        {"text": "third", "metadata": {"n": 2**60}},
        {"text": "fourth", "at": "yesterday"},
    ]
    report = memory.add_many([{"text": "first"}, *failing, {"text": "last"}])
    assert (report.added, report.skipped) == (2, 0)
    assert [(entry.index, entry.id, entry.field) for entry in report.failed] == [
        (1, "empty", "text"),
        (2, None, "colour"),
        (3, None, "record"),
        (4, None, "metadata.n"),
        (5, None, "at"),
    ]
    assert report.failed[0].message == "text=' ': is empty. Give the text to remember"
    assert sorted(entry.text for entry in memory.list()) == ["first", "last"]


def test_progress_is_told_after_every_batch_and_never_ahead_of_the_disk(memory, open_memory):
    reports = []

    def note(report):
        reports.append((report.added, open_memory().count()))

    memory.add_many(rows(600), on_progress=note)
    assert [added for added, _ in reports] == sorted(added for added, _ in reports)
    assert reports[-1] == (600, 600)
    assert all(on_disk >= added for added, on_disk in reports)


def test_what_was_acknowledged_stays_when_the_source_breaks(memory):
    acknowledged = []

    def broken():
        yield from rows(600)
        raise OSError("the source broke")

    with pytest.raises(OSError, match="the source broke"):
        memory.add_many(broken(), on_progress=lambda report: acknowledged.append(report.added))
    kept = memory.count()
    assert kept >= acknowledged[-1] > 0
    assert memory.add_many(rows(600)).added == 600 - kept
    assert memory.count() == 600


def test_a_source_without_end_is_read_only_as_far_as_it_is_written(memory):
    taken = itertools.count()

    class Enough(Exception):
        pass

    def stop(report):
        if report.added >= 512:
            raise Enough

    with pytest.raises(Enough):
        memory.add_many(({"text": f"row {number}"} for number in taken), on_progress=stop)
    assert next(taken) <= 512 + 3 * 256
