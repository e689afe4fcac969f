"""Records as a caller gives them: checked field by field."""

from datetime import UTC, datetime

import pytest

from ekphory.errors import InvalidInput, ScopeError
from ekphory.scope import Scope
from ekphory.write import LONGEST_TEXT, make_draft

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


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("text", ""),
        ("text", " \n\t"),
        ("text", None),
        ("text", 5),
        ("text", b"bytes"),
        ("text", "a\x00b"),
        ("text", "half \ud83d"),
        ("text", "x" * 10_000_000),
        ("id", ""),
        ("id", 5),
        ("id", "a\x00"),
        ("id", "x" * 10_001),
        ("at", "yesterday"),
        ("at", "2026-13-01"),
        ("at", "0000-01-01"),
        ("at", "9999-01-01"),
        ("at", "10000-01-01"),
        ("at", "2026-05-08T10:00 Mars/Olympus"),
        ("at", "2026-05-08T10:00+99:00"),
        ("at", "0001-01-01T00:00+14:00"),
        ("at", 1_700_000_000),
        ("at", datetime(9999, 1, 1, tzinfo=UTC)),
        ("expires_at", "2020-01-01"),
        ("expires_at", "soon"),
        ("importance", -0.1),
        ("predicted", "type"),
        ("predicted", ["text"]),
        ("predicted", [["type"]]),
        ("predicted", 1),
        ("importance", 1.1),
        ("importance", float("nan")),
        ("importance", True),
        ("importance", "high"),
        ("type", "dream"),
        ("type", ["semantic"]),
        ("pool", ""),
        ("pool", "two words"),
        ("pool", "x" * 101),
        ("pool", "a'b"),
        ("pool", 5),
        ("sequence", 1.5),
        ("sequence", True),
        ("sequence", "1"),
        ("sequence", 2**62),
        ("producer", 5),
        ("role", "a\x00"),
        ("source", "\udc00"),
        ("user", ""),
        ("user", " "),
        ("project", 5),
        ("metadata", []),
        ("metadata", "a=1"),
        ("colour", "red"),
        ("created_at", "2026-01-01"),
        ("supersedes", "x"),
    ],
)
def test_a_value_that_cannot_be_stored_is_named_with_a_remedy(field, value):
    with pytest.raises(InvalidInput) as caught:
        drafted({"text": "hello"} | {field: value})
    assert caught.value.field == field
    assert caught.value.remedy
    assert str(caught.value).startswith(f"{field}=")
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        ({"": 1}, "metadata"),
        ({5: 1}, "metadata"),
        ({"a\x00": 1}, "metadata"),
        ({"a": None}, "metadata.a"),
        ({"a": [1]}, "metadata.a"),
        ({"a": {"b": 1}}, "metadata.a"),
        ({"a": b"x"}, "metadata.a"),
        ({"a": "\ud800"}, "metadata.a"),
        ({"a": float("inf")}, "metadata.a"),
        ({"a": float("nan")}, "metadata.a"),
        ({"a": 2**53 + 1}, "metadata.a"),
        ({"a": 10**400}, "metadata.a"),
    ],
)
def test_metadata_that_cannot_be_stored_is_named_with_its_key(entry, field):
    with pytest.raises(InvalidInput) as caught:
        drafted({"text": "hello", "metadata": entry})
    assert caught.value.field == field
    assert caught.value.remedy


@pytest.mark.parametrize("field", ["org", "project", "agent", "user", "session"])
def test_metadata_cannot_set_the_scope(field):
    with pytest.raises(ScopeError, match=f"^metadata.{field}='x': metadata cannot set the scope"):
        drafted({"text": "hello", "metadata": {field: "x"}})


@pytest.mark.parametrize("field", ["org", "project", "agent", "user", "session"])
def test_a_record_cannot_leave_its_scope(field):
    with pytest.raises(ScopeError, match=f"^{field}='theirs': this handle is bound to"):
        drafted({"text": "hello", field: "theirs"}, **{field: "mine"})


def test_a_record_may_fill_what_is_unbound():
    record = drafted({"text": "hello", "agent": "a", "user": "mine"}, user="mine").record
    assert (record.agent, record.user) == ("a", "mine")


def test_a_misspelt_field_is_told_the_nearest_one():
    with pytest.raises(InvalidInput, match=r"Did you mean 'producer'\?"):
        drafted({"text": "hello", "producr": "Anna"})


def test_an_error_shows_only_the_beginning_of_a_long_value():
    with pytest.raises(InvalidInput) as caught:
        drafted({"text": "y" * (LONGEST_TEXT + 1)})
    assert "1,000,001 characters" in str(caught.value)
    assert "y" * 100 not in str(caught.value)


def test_the_longest_text_is_accepted():
    assert len(drafted({"text": "y" * LONGEST_TEXT}).record.text) == 1_000_000


@pytest.mark.parametrize("given", [None, "hello", 5, ["text"], ("text", "hello")])
def test_a_record_is_a_dict(given):
    with pytest.raises(InvalidInput, match=r"^record=.*a record is a dict"):
        drafted(given)


def test_what_has_a_session_or_a_sequence_belongs_to_a_thread():
    assert drafted({"text": "a"}).thread == 0
    assert (
        drafted({"text": "a", "session": "s"}).thread == drafted({"text": "b"}, session="s").thread
    )
    assert (
        drafted({"text": "a", "sequence": 1}).thread == drafted({"text": "b", "sequence": 2}).thread
    )


def test_the_same_session_name_of_another_owner_is_another_thread():
    threads = {
        drafted({"text": "a", "session": "s"}, user=user).thread for user in ("a", "b", None)
    }
    assert len(threads) == 3


def test_a_callers_id_needs_no_fingerprint():
    assert drafted({"text": "a", "id": "1"}).fingerprint is None
    assert drafted({"text": "a"}).fingerprint is not None
