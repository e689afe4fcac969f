"""Writing: what is checked, what is stored, and when it is there already."""

import itertools
import json
import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from tests.models.tiny_components import write_tiny_embedder

from ekphory.cli.output import plain
from ekphory.errors import InvalidInput, ScopeError
from ekphory.importers.text import read_jsonl
from ekphory.memory import Memory
from ekphory.models.agent_embedder import Embedder
from ekphory.models.onnx_export import ModelDescription, export_embedder
from ekphory.prompting.recall_block import SECURITY_COMMENT
from ekphory.scope import Scope
from ekphory.testing.models import HashEmbedder
from ekphory.write import LONGEST_TEXT, LONGEST_WHOLE, SAMPLED_WINDOWS, make_draft

# Records, checked field by field.

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def drafted(given, **scope):
    return make_draft(given, scope=Scope(**scope), now=NOW)


def test_only_the_text_is_required():
    record = drafted({"text": "hello"}).record
    assert (record.text, record.at, record.created_at) == ("hello", NOW, NOW)


def test_a_value_that_was_predicted_before_keeps_its_mark():
    entry = drafted({"text": "a", "type": "semantic", "importance": 0.7, "predicted": ["type"]})
    assert (entry.record.predicted, entry.left_out) == ({"type"}, frozenset())


def test_a_mark_without_its_value_is_left_to_predict():
    entry = drafted({"text": "a", "importance": 0.7, "predicted": ["type"]})
    assert (entry.record.predicted, entry.left_out) == (frozenset(), {"type"})


def test_the_text_is_kept_as_it_is():
    assert drafted({"text": "  two\n\tlines  "}).record.text == "  two\n\tlines  "


def test_what_is_indexed_names_the_heading_and_the_producer():
    assert drafted({"text": "hello", "producer": "Anna"}).record.indexed_text == "Anna: hello"
    assert drafted({"text": "hello"}).record.indexed_text == "hello"
    assert drafted({"text": "hello", "heading": "A > B"}).record.indexed_text == "A > B: hello"


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
    "metadata": [[], "a=1"],
    "colour": ["red"],
    "created_at": ["2026-01-01"],
    "supersedes": ["x"],
}


@pytest.mark.parametrize(
    ("field", "value"), [(field, value) for field in REFUSED for value in REFUSED[field]]
)
def test_a_value_that_cannot_be_stored_is_named_with_a_remedy(field, value):
    with pytest.raises(InvalidInput) as caught:
        drafted({"text": "hello"} | {field: value})
    assert caught.value.field == field
    assert caught.value.remedy
    assert str(caught.value).startswith(f"{field}=")
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("key", ["", 5, "a\x00"])
def test_a_key_of_metadata_that_cannot_be_stored_is_refused(key):
    with pytest.raises(InvalidInput, match=r"^metadata="):
        drafted({"text": "hello", "metadata": {key: 1}})


@pytest.mark.parametrize(
    "value",
    [None, [1], {"b": 1}, b"x", "\ud800", float("inf"), float("nan"), 2**53 + 1, 10**400],
)
def test_metadata_that_cannot_be_stored_is_named_with_its_key(value):
    with pytest.raises(InvalidInput, match=r"^metadata.a=") as caught:
        drafted({"text": "hello", "metadata": {"a": value}})
    assert caught.value.remedy


@pytest.mark.parametrize("field", ["org", "project", "agent", "user", "session"])
def test_metadata_cannot_set_the_scope(field):
    with pytest.raises(ScopeError, match=f"^metadata.{field}='x': metadata cannot set the scope"):
        drafted({"text": "hello", "metadata": {field: "x"}})


@pytest.mark.parametrize("field", ["org", "project", "agent", "user", "session"])
def test_a_record_cannot_leave_its_scope(field):
    with pytest.raises(ScopeError, match=f"^{field}='theirs': this handle is bound to"):
        drafted({"text": "hello", field: "theirs"}, **{field: "mine"})


def test_a_misspelt_field_is_told_the_nearest_one():
    with pytest.raises(InvalidInput, match=r"Did you mean 'producer'\?"):
        drafted({"text": "hello", "producr": "Anna"})


def test_an_error_shows_only_the_beginning_of_a_long_value():
    with pytest.raises(InvalidInput) as caught:
        drafted({"text": "y" * (LONGEST_TEXT + 1)})
    assert "1,000,001 characters" in str(caught.value)
    assert "y" * 100 not in str(caught.value)
    assert len(drafted({"text": "y" * LONGEST_TEXT}).record.text) == 1_000_000


@pytest.mark.parametrize("given", [None, "hello", 5, ["text"], ("text", "hello")])
def test_a_record_is_a_dict(given):
    with pytest.raises(InvalidInput, match=r"^record=.*a record is a dict"):
        drafted(given)


def test_what_has_a_session_or_a_sequence_belongs_to_a_thread():
    assert drafted({"text": "a"}).thread == 0
    sessions = [drafted({"text": "a", "session": "s"}, user=user) for user in ("a", "b", None)]
    assert len({entry.thread for entry in sessions}) == 3
    assert (
        drafted({"text": "a", "session": "s"}).thread == drafted({"text": "b"}, session="s").thread
    )
    assert (
        drafted({"text": "a", "sequence": 1}).thread == drafted({"text": "b", "sequence": 2}).thread
    )


# `add`: what is written, and when it is there already.

A_DAY = datetime(2026, 5, 8, tzinfo=UTC)


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
    assert memory.add("first", id="2", producer="Anna").added == 1


def test_without_an_id_the_same_record_is_skipped_and_its_id_told(memory):
    first = memory.add("hello", producer="Anna", at="2026-05-08", session="s1", sequence=1)
    again = memory.add("hello", producer="Anna", at="2026-05-08", session="s1", sequence=1)
    assert (again.added, again.skipped, again.ids) == (0, 1, first.ids)


@pytest.mark.parametrize(
    ("difference", "added"),
    [
        ({"producer": "Ben"}, 1),
        ({"at": "2026-05-09"}, 1),
        ({"session": "s2"}, 1),
        ({"sequence": 2}, 1),
        ({"text": "Hello"}, 1),
        ({"pool": "agent_tools"}, 0),
        ({"importance": 0.9}, 0),
        ({"metadata": {"a": 1}}, 0),
        ({"type": "semantic"}, 0),
    ],
)
def test_without_an_id_the_parts_of_the_identity_alone_make_another_memory(
    memory, difference, added
):
    given = {
        "text": "hello", "producer": "Anna", "at": "2026-05-08", "session": "s1", "sequence": 1,
    }  # fmt: skip
    memory.add(**given)
    assert memory.add(**(given | difference)).added == added


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
    report = memory.add_many(rows(600))
    assert (report.added, report.skipped, report.failed) == (600, 0, [])
    report = memory.add_many(rows(600))
    assert (report.added, report.skipped) == (0, 600)
    assert memory.count() == 600


def test_nothing_to_add_is_no_work(memory):
    for report in (memory.add_many([]), memory.add_messages([])):
        assert (report.added, report.skipped, report.failed, report.ids) == (0, 0, [], ())


def test_a_record_that_comes_twice_is_skipped_the_second_time(memory):
    report = memory.add_many([*rows(300), *rows(300)])
    assert (report.added, report.skipped) == (300, 300)


def test_failures_in_the_middle_stop_nothing(memory):
    report = memory.add_many(
        [
            {"text": "first"},
            {"text": " ", "id": "empty"},
            {"text": "second", "colour": "red"},
            "no dict",
            {"text": "third", "metadata": {"n": 2**60}},
            {"text": "fourth", "at": "yesterday"},
            {"text": "last"},
        ]
    )
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
    reports = []

    def endless():
        for number in taken:
            yield {"text": f"row {number}"}

    class Enough(Exception):
        pass

    def stop(report):
        reports.append(report)
        if report.added >= 512:
            raise Enough

    with pytest.raises(Enough):
        memory.add_many(endless(), on_progress=stop)
    assert next(taken) <= 512 + 3 * 256


def test_records_fill_the_fields_that_the_handle_leaves_open(open_memory):
    project = open_memory(project="apollo")
    project.add_many(
        [{"text": "a", "user": "alice", "id": "1"}, {"text": "b", "user": "bob", "id": "1"}]
    )
    assert open_memory(project="apollo", user="alice").get("1").text == "a"
    assert open_memory(project="apollo", user="bob").get("1").text == "b"


def test_none_counts_as_not_given(memory):
    report = memory.add_many([{"text": "a", "id": None, "at": None, "session": None}])
    assert report.added == 1


# `add_messages`: a conversation in the form that chat APIs use.

CHAT = [
    {"role": "user", "content": "Where did you go?"},
    {"role": "assistant", "content": "To Lisbon."},
]


def test_messages_become_memories_in_their_order(memory):
    report = memory.add_messages(CHAT)
    assert (report.added, len(report.ids)) == (2, 2)
    assert [memory.get(name).text for name in report.ids] == ["Where did you go?", "To Lisbon."]


def test_the_role_is_kept_and_is_the_producer(memory):
    first = memory.get(memory.add_messages(CHAT).ids[0])
    assert (first.role, first.producer) == ("user", "user")


def test_a_producer_of_its_own_comes_before_the_role(memory):
    message = {"role": "user", "content": "hi", "producer": "Anna", "metadata": {"n": 1}}
    found = memory.get(memory.add_messages([message]).ids[0])
    assert (found.role, found.producer, found.metadata) == ("user", "Anna", {"n": 1})


def test_session_and_pool_hold_for_all_messages(memory):
    memory.add_messages(CHAT, session="s1", pool="shared_knowledge")
    assert {(entry.session, entry.pool) for entry in memory.list()} == {("s1", "shared_knowledge")}


@pytest.mark.parametrize("session", ["s1", None])
def test_repeating_the_call_adds_nothing(memory, session):
    first = memory.add_messages(CHAT, session=session)
    again = memory.add_messages(CHAT, session=session)
    assert (again.added, again.skipped, again.ids) == (0, 2, first.ids)


def test_a_conversation_that_grew_adds_only_what_is_new(memory):
    memory.add_messages(CHAT, session="s1")
    report = memory.add_messages([*CHAT, {"role": "user", "content": "Nice!"}], session="s1")
    assert (report.added, report.skipped) == (1, 2)


def test_a_message_said_twice_in_one_conversation_is_kept_twice(memory):
    chat = [{"role": "user", "content": "yes"}, {"role": "user", "content": "yes"}]
    assert memory.add_messages(chat).added == 2
    assert memory.add_messages(chat).skipped == 2


def test_a_message_repeated_with_its_id_is_kept_once(memory):
    chat = [{"role": "user", "content": "yes", "id": "m1"}] * 2
    report = memory.add_messages(chat)
    assert (report.added, report.skipped, report.ids) == (1, 1, ("m1", "m1"))


def test_the_same_conversation_in_another_session_is_another_one(memory):
    memory.add_messages(CHAT, session="s1")
    assert memory.add_messages(CHAT, session="s2").added == 2


def test_thousands_of_messages_are_written_in_one_call(memory):
    chat = [{"role": "user", "content": f"turn {n}", "id": f"m{n}"} for n in range(1_500)]
    assert memory.add_messages(chat).added == 1_500
    assert memory.add_messages(chat).skipped == 1_500


@pytest.mark.parametrize(
    ("messages", "field"),
    [
        ([{"role": "user", "content": "fine"}, {"role": "user"}], r"messages\[1\]"),
        ([{"role": "user", "content": "fine"}, "hello"], r"messages\[1\]"),
        ([{"role": "user", "content": "fine"}, {"content": "  "}], "text"),
        ([{"role": "user", "content": "fine"}, {"content": ["part"]}], "text"),
        ([{"role": "user", "content": "fine"}, {"content": "x", "colour": "red"}], "colour"),
        ({"role": "user", "content": "hi"}, "messages"),
        ("hi", "messages"),
        (5, "messages"),
    ],
)
def test_a_message_that_cannot_be_stored_stops_the_whole_call(memory, messages, field):
    with pytest.raises(InvalidInput, match=field):
        memory.add_messages(messages)
    assert memory.count() == 0


def test_an_answer_is_found_through_the_question_before_it(memory):
    for session, question in [("s1", "How was the food?"), ("s2", "Where was the wedding?")]:
        memory.add_messages(
            [{"role": "user", "content": question}, {"role": "assistant", "content": "Lisbon."}],
            session=session,
        )
    answers = [hit for hit in memory.search("place of the wedding").hits if hit.text == "Lisbon."]
    assert [hit.memory.session for hit in answers] == ["s2", "s1"]
    assert [hit.scores["bm25"] for hit in answers] == [0.0, 0.0]
    assert answers[0].scores["lexical"] > answers[1].scores["lexical"] == 0.0


# Texts so long that only some of their windows are embedded.


def long_text(characters):
    """Numbered sentences, so that every window says something else."""
    numbers = range(characters // 25)
    return "".join(f"Station {number} lies behind hill {number}. " for number in numbers)[
        :characters
    ]


class CountingEmbedder:
    """Counts the passages that another one embeds."""

    def __init__(self, embedder):
        self._embedder = embedder
        self.passages = []

    def __getattr__(self, name):
        return getattr(self._embedder, name)

    def encode(self, texts):
        self.passages += texts
        return self._embedder.encode(texts)


@pytest.fixture
def counting(store_path):
    embedder = CountingEmbedder(HashEmbedder())
    with Memory(store_path, embedder=embedder) as memory:
        yield embedder, memory


def test_of_a_very_long_text_some_windows_are_embedded_and_the_report_says_so(counting):
    embedder, memory = counting
    text = long_text(LONGEST_WHOLE + 1)
    report = memory.add(text)
    assert report.sampled == report.ids
    assert len(embedder.passages) == SAMPLED_WINDOWS
    assert text.startswith(embedder.passages[0])
    assert text.rstrip().endswith(embedder.passages[-1])
    assert memory.get(report.ids[0]).text == text


def test_the_windows_are_spread_over_the_text(counting):
    embedder, memory = counting
    text = long_text(1_000_000)
    memory.add(text)
    places = [text.index(passage) for passage in embedder.passages]
    gaps = [later - earlier for earlier, later in itertools.pairwise(places)]
    assert (min(gaps), max(gaps)) == (
        pytest.approx(15_800, rel=0.1),
        pytest.approx(15_800, rel=0.3),
    )


def test_a_shorter_text_is_embedded_whole(counting):
    _, memory = counting
    assert memory.add(long_text(LONGEST_WHOLE)).sampled == ()


def test_words_are_found_wherever_they_stand(counting):
    _, memory = counting
    half = long_text(400_000)
    report = memory.add(f"{half} The heron nests at Grebe Sluice. {half}")
    memory.add("A short note about something else")
    assert memory.search("heron Grebe Sluice").hits[0].id == report.ids[0]


def test_many_texts_are_reported_by_their_ids(counting):
    _, memory = counting
    report = memory.add_many(
        [{"id": "short", "text": "tea"}, {"id": "long", "text": long_text(LONGEST_WHOLE + 1)}]
    )
    assert report.sampled == ("long",)


# Recalled memories that come back as new input are not stored again.


@pytest.fixture
def block(memory):
    """A rendered search result of the same store, which then holds one memory."""
    memory.add("I prefer Python over JavaScript", producer="user")
    return memory.search("Which language?").to_prompt()


def test_a_rendered_result_added_again_is_skipped(memory, block):
    report = memory.add(block)
    assert (report.added, report.skipped, report.failed, report.ids) == (0, 1, [], ())
    assert memory.count() == 1


def test_the_text_around_it_is_stored(memory, block):
    (added,) = memory.add(f"{block}\n\nWhat about Rust?").ids
    assert memory.get(added).text == "What about Rust?"


def test_the_same_text_with_other_recalled_memories_is_the_same_memory(memory, block):
    first = memory.add(f"{block}\nWhat about Rust?", at="2026-05-08")
    memory.add("Rust is fine too")
    again = memory.search("Rust").to_prompt()
    second = memory.add(f"{again}\nWhat about Rust?", at="2026-05-08")
    assert (second.skipped, second.ids) == (1, first.ids)


def test_a_truncated_block_is_skipped(memory, block):
    assert memory.add(block[: len(block) - 40]).skipped == 1
    assert memory.count() == 1


def test_a_conversation_keeps_its_messages_and_skips_the_recalled_ones(memory, block):
    report = memory.add_messages(
        [
            {"role": "system", "content": block},
            {"role": "user", "content": f"{block}\nWhat about Rust?"},
            {"role": "assistant", "content": "You have not said."},
        ],
        session="s1",
    )
    assert (report.added, report.skipped, len(report.ids)) == (2, 1, 2)
    assert [memory.get(name).text for name in report.ids] == [
        "What about Rust?",
        "You have not said.",
    ]


def test_a_batch_counts_them_as_skipped(memory, block):
    seen = []
    records = [{"text": block}, {"text": "new"}, {"text": " "}, {"text": f" {block}\n"}]
    report = memory.add_many(records, on_progress=seen.append)
    assert (report.added, report.skipped, len(report.failed)) == (1, 2, 1)
    assert seen[-1] == report


def test_a_batch_of_nothing_else_stores_nothing(memory, block):
    report = memory.add_many([{"text": block}] * 300)
    assert (report.added, report.skipped, report.failed) == (0, 300, [])


@pytest.mark.parametrize(
    "text",
    [
        "Upstream wraps them in <relevant-memories>…</relevant-memories>.",
        "<relevant-memories>\nmine\n</relevant-memories>",
        f"The comment is {SECURITY_COMMENT}",
    ],
)
def test_text_about_recalled_memories_is_stored_verbatim(memory, text):
    (added,) = memory.add(text).ids
    assert memory.get(added).text == text


# Type and importance that the embedder predicted, told from those that were given.

BOTH = {"type", "importance"}


@pytest.fixture(scope="module")
def embedder(tmp_path_factory):
    """A model with random heads, which tell of "the cat sat" what they do not of "a big dog"."""
    folder = tmp_path_factory.mktemp("model")
    write_tiny_embedder(folder / "torch")
    description = ModelDescription(name="tiny")
    export_embedder(
        folder / "torch", folder / "onnx", description=description, quantisation="float32"
    )
    return Embedder.from_pretrained(folder / "onnx")


@pytest.fixture
def predicting(embedder, tmp_path):
    with Memory(tmp_path / "predicting", embedder=embedder) as opened:
        yield opened


def importance_of(embedder, text):
    return pytest.approx(float(embedder.importance([text])[0]), abs=0.001)


@pytest.mark.parametrize(
    ("given", "predicted"),
    [
        ({}, BOTH),
        ({"type": "semantic"}, {"importance"}),
        ({"importance": 0.9}, {"type"}),
        ({"type": "unknown", "importance": 0.5}, set()),
    ],
)
def test_what_was_not_given_is_marked_as_predicted(predicting, given, predicted):
    predicting.add("the cat sat", id="1", **given)
    assert [record.predicted for record in predicting.list()] == [predicted]
    assert [hit.memory.predicted for hit in predicting.search("cat").hits] == [predicted]


@pytest.mark.parametrize(
    ("given", "changes", "predicted"),
    [
        ({}, {"text": "a big dog"}, BOTH),
        ({"type": "procedural"}, {"text": "a big dog"}, {"importance"}),
        ({}, {"text": "a big dog", "importance": 0.25}, {"type"}),
        ({}, {"metadata": {"k": 1}}, BOTH),
        ({}, {"type": "semantic"}, {"importance"}),
    ],
)
def test_a_change_keeps_what_was_given_and_predicts_the_rest_of_a_new_text(
    predicting, embedder, given, changes, predicted
):
    predicting.add("the cat sat", id="1", **given)
    changed = predicting.update("1", **changes)
    text = changes.get("text", "the cat sat")
    expected = {"type": embedder.memory_type([text])[0]} | given | changes
    importance = changes.get("importance", importance_of(embedder, text))
    assert (changed.type, changed.importance) == (expected["type"], importance)
    assert (changed.predicted, changed) == (predicted, predicting.get("1"))
    assert importance_of(embedder, "a big dog") != embedder.importance(["the cat sat"])[0]


def test_a_model_without_heads_predicts_nothing(memory):
    memory.add("the cat sat", id="1")
    assert memory.get("1").predicted == frozenset()


def test_an_updated_value_counts_as_given_from_then_on(predicting):
    predicting.add("the cat sat", id="1")
    assert predicting.update("1", type="semantic").predicted == {"importance"}
    changed = predicting.update("1", text="a big dog")
    assert (changed.type, changed.predicted) == ("semantic", {"importance"})


def test_an_earlier_version_keeps_its_marks(predicting):
    predicting.add("the cat sat", id="1")
    predicting.update("1", type="semantic", importance=0.9)
    assert [version.predicted for version in predicting.history("1")] == [set(), BOTH]


def test_a_listing_that_is_imported_elsewhere_keeps_values_and_marks(predicting, memory, tmp_path):
    predicting.add("the cat sat", id="1", type="semantic")
    listed = tmp_path / "listing.jsonl"
    listed.write_text(json.dumps(plain(predicting.get("1"))) + "\n")

    memory.add_many(record.fields for record in read_jsonl(listed))

    assert memory.get("1").predicted == {"importance"}
    assert memory.get("1").importance == predicting.get("1").importance


def test_a_new_text_for_a_model_without_heads_drops_what_another_predicted(memory):
    memory.add_many([{"text": "a", "id": "1", "importance": 0.8, "predicted": ["importance"]}])
    changed = memory.update("1", text="b")
    assert (changed.importance, changed.predicted) == (0.5, frozenset())
