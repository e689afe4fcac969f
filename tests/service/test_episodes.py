from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory.catalog.projects import EpisodicSwitches
from ekphory.service.episodes import EpisodeMessage, EpisodeQuery, decode_uuid, encode_uuid
from ekphory.service.handles import Place

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def say(service, place, *contents, **fields):
    return service.episodes.add(
        place, [EpisodeMessage(content=each, **fields) for each in contents]
    )


def find(service, place, text, *, short_term=False, **settings):
    query = EpisodeQuery(text=text, **settings)
    return service.episodes.search(place, query, EpisodicSwitches(short_term=short_term))


def texts(episodes):
    return [episode.record.text for episode in episodes]


def test_what_is_sent_again_with_its_time_is_the_same_episode_and_else_another(service, home):
    assert say(service, home, "yes", at=NOON) == say(service, home, "yes", at=NOON)
    assert len({*say(service, home, "yes"), *say(service, home, "yes", "yes")}) == 3
    assert service.episodes.count(home) == 4


def test_the_session_of_the_metadata_is_the_episodes_session(service, home):
    say(service, home, "hello", metadata={"session_id": "s1"})
    with service.memory(home) as memory:
        assert memory.list()[0].session == "s1"


def test_another_project_sees_nothing(service, home):
    say(service, home, "the secret")
    other = Place("home", "work")
    assert find(service, other, "secret", short_term=True).long_term == ()
    assert service.episodes.page(other, "", limit=10, offset=0) == []
    assert service.episodes.count(other) == 0


def test_the_newest_come_as_short_term_and_the_rest_is_ranked(service, home):
    for number, content in enumerate(["tea at home", "rain", "snow"]):
        say(service, home, content, at=NOON + timedelta(hours=number))
    found = find(service, home, "tea", short_term=True, limit=2)
    assert texts(found.short_term) == ["rain", "snow"]
    assert texts(found.long_term) == ["tea at home"]
    assert all(0 <= episode.score <= 1 for episode in (*found.long_term, *found.short_term))


def test_neighbours_of_the_same_session_come_with_what_was_found(service, home):
    say(service, home, *"one two three four five six".split(), metadata={"session_id": "a"})
    say(service, home, "elsewhere", metadata={"session_id": "b"})
    found = find(service, home, "three", limit=4, expand=3)
    assert texts(found.long_term)[:4] == ["two", "three", "four", "five"]
    assert [episode.score is not None for episode in found.long_term][1]


def test_neighbours_said_at_the_same_moment_keep_their_order(service, home):
    say(service, home, "one", "two", "three", at=NOON, metadata={"session_id": "a"})
    found = find(service, home, "two", limit=3, expand=2)
    assert texts(found.long_term) == ["two", "three", "one"]


def test_neighbours_fulfil_the_filter_too(service, home):
    say(service, home, "one", metadata={"user_id": "ben"})
    say(service, home, "two", metadata={"user_id": "eva"})
    found = find(service, home, "two", limit=3, expand=2, filter="m.user_id = 'eva'")
    assert texts(found.long_term) == ["two"]


def test_metadata_may_have_the_names_of_scope_fields(service, home):
    say(service, home, "tea", metadata={"user": "mara", "org": "other", "m:x": "1"})
    assert texts(find(service, home, "tea", filter="m.user = 'mara'").long_term) == ["tea"]
    assert texts(find(service, home, "tea", filter="m.org = 'home'").long_term) == []


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("m.user_id = 'mara'", ["by Python", "over REST"]),
        ("m.user_id != 'mara'", ["as another"]),
        ("NOT m.user_id = 'mara'", ["of nobody", "as another"]),
        ("m.user_id IN ('ben', 'eva', 7)", ["as another"]),
        ("m.user_id CONTAINS 'ar'", ["by Python", "over REST"]),
        ("m.user_id IS NULL", ["of nobody"]),
        ("m.user_id = 7 OR m.user_id IN (7)", []),
        ("m.session_id = 'trip' AND m.agent_id = 'scout'", ["by Python"]),
    ],
)
def test_a_filter_by_user_agent_or_session_finds_what_python_wrote(
    service, home, condition, expected
):
    own = {"user": "mara", "agent": "scout", "session": "trip"}
    # The scope of a memory goes before what its metadata says.
    another = {"user": "ben", "metadata": {"user_id": "mara"}}
    with service.handles.episodes(home) as memory:
        memory.add_many(
            [
                {"text": "by Python", "at": "2026-01-01", **own},
                {"text": "of nobody", "at": "2026-01-02"},
                {"text": "as another", "at": "2026-01-03", **another},
            ]
        )
    say(service, home, "over REST", metadata={"user_id": "mara"})
    assert [
        each.record.text for each in service.episodes.page(home, condition, limit=9, offset=0)
    ] == (expected)


def test_created_at_in_a_filter_is_when_it_was_said(service, home):
    say(service, home, "old", at=NOON)
    say(service, home, "new")
    listed = service.episodes.page(home, "created_at < date('2026-05-02')", limit=5, offset=0)
    assert [each.record.text for each in listed] == ["old"]


def test_a_filter_by_id_takes_the_uuid_that_is_shown(service, home):
    shown = service.uids.shown(home, say(service, home, "one", "two"))
    listed = service.episodes.page(home, f"uid IN ('{shown[0]}')", limit=5, offset=0)
    assert [each.record.text for each in listed] == ["one"]


OWN = "041a1fee8adb7-38a34f2d0d128acd"
CALLERS = "f47ac10b-58cc-4372-a567-0e02b2c3d479"


@given(st.from_regex(r"[0-9a-f]{13}-[0-9a-f]{16}", fullmatch=True))
def test_an_id_of_our_own_is_written_as_a_uuid_and_read_back(own):
    uid = encode_uuid(own)
    assert str(UUID(uid)) == uid
    assert UUID(uid).version == 8
    assert decode_uuid(uid) == own


def test_uuids_of_our_own_sort_by_time_as_the_ids_do():
    earlier, later = "041a1fee8adb7-ffffffffffffffff", "041a1fee8adb8-0000000000000000"
    assert encode_uuid(earlier) < encode_uuid(later)


@pytest.mark.parametrize(
    "memory_id", [OWN, "note-7", "D1:3", CALLERS, encode_uuid(OWN), "a~1", "é"]
)
def test_every_id_is_shown_as_a_uuid_and_found_by_it(service, home, memory_id):
    (uid,) = service.uids.shown(home, [memory_id])
    assert str(UUID(uid)) == uid
    for name in (uid, uid.upper()):
        assert service.uids.stored(home, [name]) == [memory_id]


def test_a_uuid_stands_for_its_id_in_its_project_alone_and_a_callers_for_itself(service, home):
    uids, work = service.uids, Place("home", "work")
    first = uids.shown(home, ["note-1", "note-2"])
    again = uids.shown(home, ["note-2", "note-3"])
    assert uids.stored(home, [*first, *again]) == ["note-1", "note-2", "note-2", "note-3"]
    assert uids.stored(work, first) == first
    assert uids.shown(work, ["note-1"]) != first[:1]
    assert uids.shown(home, [CALLERS]) == [CALLERS]
    # What is no UUID is an id already.
    assert uids.stored(home, ["note-7"]) == ["note-7"]


def test_an_id_of_digits_without_hyphens_is_that_of_its_memory_and_no_uuid(service, home):
    digits = "0123abcd" * 4
    hyphens = "0123abcd-0123-abcd-0123-abcd0123abcd"
    with service.memory(home) as memory:
        memory.add("tea", id=digits)
        memory.add("coffee", id=hyphens)
        service.episodes.delete(home, service.uids.stored(home, [digits]))
        assert [each.id for each in memory.list()] == [hyphens]
