"""A store of LangGraph that is kept in an ekphory store."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import MatchCondition, PutOp

from ekphory.errors import InvalidInput
from ekphory.filters.lance_sql import matches
from ekphory.frameworks.langgraph import (
    EkphoryStore,
    ItemSpace,
    check_item,
    decode_id,
    encode_namespace,
    extract_text,
    fits,
)
from ekphory.scope import Scope
from ekphory.types import EPOCH, MemoryRecord, now_utc

NOTES = ("notes", "mara")


@pytest.fixture
def store(memory):
    return EkphoryStore(memory)


def keys(items):
    return [item.key for item in items]


def test_items_survive_a_reopening_of_the_store(open_memory):
    value = {"text": "tea ☕", "list": [1, 2.5, None, True], "big": 2**70, "odd": "\x00\ud800"}
    with open_memory() as memory:
        EkphoryStore(memory).put(NOTES, "drink", value)
        before = EkphoryStore(memory).get(NOTES, "drink")
    after = EkphoryStore(open_memory()).get(NOTES, "drink")
    assert after == before
    assert after.value == value


def test_a_new_value_keeps_the_moment_of_creation_and_leaves_no_history(store, memory):
    start = datetime.now(UTC)
    store.put(NOTES, "drink", {"text": "tea"})
    first = store.get(NOTES, "drink")
    store.put(NOTES, "drink", {"text": "coffee"})
    second = store.get(NOTES, "drink")
    assert start <= first.created_at == first.updated_at
    assert second.created_at == first.created_at
    assert second.updated_at > first.updated_at
    assert second.value == {"text": "coffee"}
    assert (memory.health().history, memory.count()) == (0, 1)


def test_a_search_without_a_query_lists_what_was_put_last_first(store):
    for key in ("one", "two", "three"):
        store.put(NOTES, key, {"text": key})
    store.put(NOTES, "one", {"text": "again"})
    assert keys(store.search(NOTES)) == ["one", "three", "two"]
    assert keys(store.search(NOTES, limit=1, offset=1)) == ["three"]
    assert {item.score for item in store.search(NOTES)} == {None}


def test_a_search_with_a_query_gives_the_likeliest_first_with_its_probability(store, memory):
    store.put(NOTES, "drink", {"text": "Mara drinks green tea"})
    store.put(NOTES, "sport", {"text": "Mara rows on Sundays"})
    first, second = store.search(NOTES, query="green tea")
    assert (first.key, second.key) == ("drink", "sport")
    assert 0 <= second.score < first.score <= 1
    best = memory.search("green tea", pools=["langgraph"]).hits[0]
    assert (best.text, best.memory.path) == ("Mara drinks green tea", "notes/mara/")


def test_a_query_keeps_to_its_namespace_and_filter(store):
    store.put(NOTES, "drink", {"text": "green tea", "year": 2025})
    store.put(NOTES, "old", {"text": "green tea", "year": 2019})
    store.put((*NOTES, "work"), "kitchen", {"text": "green tea", "year": 2026})
    store.put(("notes", "jon"), "drink", {"text": "green tea", "year": 2026})
    found = store.search(NOTES, query="green tea", filter={"year": {"$gt": 2020}})
    assert sorted(keys(found)) == ["drink", "kitchen"]
    assert {item.namespace for item in found} == {NOTES, (*NOTES, "work")}


@pytest.mark.slow
def test_pages_of_a_query_follow_one_another(store):
    for number in range(6):
        store.put(NOTES, str(number), {"text": "tea " * number + "word"})
    whole = keys(store.search(NOTES, query="tea"))
    pages = [keys(store.search(NOTES, query="tea", limit=2, offset=at)) for at in (0, 2, 4)]
    assert [key for page in pages for key in page] == whole
    assert sorted(whole) == ["0", "1", "2", "3", "4", "5"]


def test_items_that_are_not_indexed_fill_the_pages_behind_the_others_without_a_score(store):
    for key in ("one", "two", "three"):
        store.put(NOTES, key, {"text": "green tea"}, index=False)
    store.put(NOTES, "seen", {"text": "rowing"})
    pages = [store.search(NOTES, query="tea", limit=2, offset=at) for at in (0, 2, 4)]
    assert [keys(page) for page in pages] == [["seen", "three"], ["two", "one"], []]
    assert [item.score is None for item in pages[0]] == [False, True]
    assert store.get(NOTES, "one").value == {"text": "green tea"}
    # An item can be searched once it is indexed.
    store.put(NOTES, "one", {"text": "green tea"})
    assert store.search(NOTES, query="green tea")[0].score is not None
    store.put(NOTES, "one", {"text": "green tea"}, index=False)
    assert keys(store.search(NOTES, query="green tea"))[0] == "seen"


def test_only_the_named_fields_are_searched(store, memory):
    rest = {"body": "filler words here"}
    store.put(NOTES, "title", {"title": "green tea", **rest}, index=["title"])
    store.put(NOTES, "body", {"title": "green tea", **rest}, index=["body"])
    assert keys(store.search(NOTES, query="green tea")) == ["title", "body"]
    with pytest.raises(InvalidInput, match="fields='title': must be a list"):
        EkphoryStore(memory, fields="title")
    # The store says which fields are searched by default.
    store = EkphoryStore(memory, fields=["title"])
    for key in ("title", "body"):
        store.delete(NOTES, key)
    store.put(NOTES, "one", {"title": "rowing", "body": "green tea"})
    store.put(NOTES, "two", {"body": "green tea"})
    one, two = store.search(NOTES, query="green tea")
    assert (one.key, two.key, two.score) == ("one", "two", None)


@pytest.mark.slow
def test_more_matching_items_than_a_condition_names_are_still_ranked(store):
    ops = [PutOp(("many",), str(number), {"text": f"item {number}"}) for number in range(1000)]
    store.batch(ops)
    store.put(("many",), "tea", {"text": "green tea"})
    found = store.search(("many",), query="green tea", filter={"text": {"$ne": "x"}}, limit=1001)
    assert found[0].key == "tea"
    assert len(found) == 1001


def test_scopes_are_kept_apart(open_memory):
    mara, jon = (EkphoryStore(open_memory(user=name)) for name in ("mara", "jon"))
    mara.put(NOTES, "drink", {"text": "tea"})
    jon.put(NOTES, "drink", {"text": "coffee"})
    assert mara.get(NOTES, "drink").value == {"text": "tea"}
    assert [item.value for item in jon.search((), query="tea")] == [{"text": "coffee"}]
    jon.delete(NOTES, "drink")
    assert mara.list_namespaces() == [NOTES]
    assert jon.list_namespaces() == []


def test_a_wider_scope_has_items_of_its_own(open_memory):
    whole, mara = EkphoryStore(open_memory()), EkphoryStore(open_memory(user="mara"))
    for store, text in ((mara, "tea"), (whole, "coffee"), (mara, "green tea"), (whole, "milk")):
        store.put(NOTES, "drink", {"text": text})
    assert [item.value for item in mara.search(())] == [{"text": "green tea"}]
    assert [item.value for item in whole.search((), query="tea")] == [{"text": "milk"}]
    whole.delete(NOTES, "drink")
    assert whole.list_namespaces() == []
    assert mara.get(NOTES, "drink").value == {"text": "green tea"}


def test_memories_that_are_no_items_are_neither_seen_nor_deleted(store, memory):
    memory.add("green tea", id='[{}, "notes", "mara", "drink"]')
    assert store.get(NOTES, "drink") is None
    assert store.search((), query="green tea") == []
    assert store.list_namespaces() == []
    store.delete(NOTES, "drink")
    assert memory.count() == 1


@pytest.mark.slow
def test_a_text_that_holds_recalled_memories_is_kept_whole(store, memory):
    memory.add("green tea")
    block = memory.search("green tea").to_prompt()
    store.put(NOTES, "answer", {"text": block})
    assert store.get(NOTES, "answer").value == {"text": block}


@pytest.mark.parametrize(
    "value",
    [{"what": object()}, {"parts": [{"what": object()}]}, {"set": {object}}],
    ids=["", "", ""],
)
def test_what_cannot_be_kept_is_refused_and_nothing_is_written(store, value):
    ops = [PutOp(NOTES, "good", {"text": "tea"}), PutOp(NOTES, "bad", value)]
    with pytest.raises(InvalidInput, match="cannot be kept"):
        store.batch(ops)
    assert store.search(()) == []


def test_a_page_that_there_cannot_be_is_refused(store):
    with pytest.raises(InvalidInput, match="limit=-1: must be 0 or more"):
        store.search((), limit=-1)
    with pytest.raises(InvalidInput, match="offset=-1: must be 0 or more"):
        store.list_namespaces(offset=-1)


@pytest.mark.slow
def test_threads_that_put_one_item_at_a_time_leave_one_of_their_values(store):
    def put(number):
        store.put(NOTES, "count", {"number": number})

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(put, range(6)))
    (item,) = store.search(NOTES)
    assert item.value["number"] in range(6)


PLACE = (NOTES, "drink")
TEA = {"text": "tea"}
SHORT = 0.3 / 60
"""Minutes: 0.3 seconds."""
LONG = 0.5
"""Minutes: 30 seconds, of which a read after 0.35 s gives enough back to be written."""


@pytest.fixture
def lasting(store):
    """Puts items that live so many minutes, and returns the store."""

    def put(minutes, *keys, value=TEA):
        for key in keys or ("drink",):
            store.put(NOTES, key, value, ttl=minutes)
        return store

    return put


def wait_until_expired():
    time.sleep(0.35)


def expires_at(memory):
    (record,) = memory.list()
    return record.expires_at


def test_an_item_that_has_expired_is_gone_at_once_and_can_be_put_anew(lasting):
    lasting(SHORT)
    store = lasting(None, "other")
    wait_until_expired()
    assert store.get(*PLACE) is None
    assert keys(store.search(NOTES)) == keys(store.search(NOTES, query="tea")) == ["other"]
    now = datetime.now(UTC)
    store.put(*PLACE, TEA)
    assert store.get(*PLACE).created_at > now


def test_a_sweep_deletes_what_has_expired(memory):
    store = EkphoryStore(memory, ttl={"default_ttl": SHORT})
    store.put(*PLACE, TEA)
    store.put(NOTES, "kept", TEA, ttl=None)
    wait_until_expired()
    assert [store.sweep_ttl(), store.sweep_ttl()] == [1, 0]
    assert keys(store.search(NOTES)) == ["kept"]


def test_a_sweep_leaves_other_scopes_alone(open_memory):
    jon = open_memory(user="jon")
    EkphoryStore(jon).put(*PLACE, TEA, ttl=SHORT)
    wait_until_expired()
    assert EkphoryStore(open_memory(user="mara")).sweep_ttl() == 0
    assert EkphoryStore(open_memory()).sweep_ttl() == 0
    assert EkphoryStore(jon).sweep_ttl() == 1


@pytest.mark.slow
def test_reading_lets_an_item_live_on(lasting, memory):
    store = lasting(LONG)
    before, first = store.get(*PLACE, refresh_ttl=False), expires_at(memory)
    time.sleep(0.35)
    assert store.get(*PLACE) == before
    second = expires_at(memory)
    time.sleep(0.35)
    assert [item.updated_at for item in store.search(NOTES)] == [before.updated_at]
    assert first < second < expires_at(memory)
    assert memory.health().history == 0


@pytest.mark.slow
def test_an_item_lives_on_only_when_that_is_wanted(memory):
    store = EkphoryStore(memory, ttl={"refresh_on_read": False})
    store.put(*PLACE, TEA, ttl=LONG)
    before = expires_at(memory)
    time.sleep(0.35)
    store.get(*PLACE)
    store.search(NOTES)
    assert expires_at(memory) == before
    store.get(*PLACE, refresh_ttl=True)
    assert expires_at(memory) > before


def test_a_lifetime_that_is_hardly_shorter_is_not_written_anew(lasting, memory):
    store, before = lasting(600), expires_at(memory)
    store.get(*PLACE)
    assert expires_at(memory) == before
    # An item that is put without a lifetime stays.
    lasting(None, value={"text": "coffee"})
    assert expires_at(memory).year == 9998
    assert store.get(*PLACE).value == {"text": "coffee"}
    # The longest lifetimes are as good as for ever.
    assert lasting(1e300).get(*PLACE).value == TEA


@pytest.mark.parametrize("minutes", [0, -1, float("nan"), float("inf"), True, "5"])
def test_what_is_no_lifetime_is_refused(lasting, minutes):
    with pytest.raises(InvalidInput, match="ttl="):
        lasting(minutes)


def test_the_sweeper_deletes_in_the_background_until_it_is_stopped(memory):
    store = EkphoryStore(memory, ttl={"default_ttl": 0.1 / 60, "sweep_interval_minutes": 0.1 / 60})
    store.put(*PLACE, TEA)
    store.start_ttl_sweeper()
    deadline = time.monotonic() + 5
    while memory.health().memories and time.monotonic() < deadline:
        time.sleep(0.05)
    assert memory.health().memories == 0
    assert store.stop_ttl_sweeper()


EVERY_FIVE = {"sweep_interval_minutes": 5}


def test_a_sweeper_needs_an_interval_and_none_at_all_is_not_the_one_of_the_store(memory):
    for store, minutes in ((EkphoryStore(memory), None), (EkphoryStore(memory, ttl=EVERY_FIVE), 0)):
        with pytest.raises(InvalidInput, match=f"sweep_interval_minutes={minutes}"):
            store.start_ttl_sweeper(minutes)
        assert store.stop_ttl_sweeper()


PLAN = {
    "title": "Plan",
    "steps": [{"do": "pack", "hours": 2}, {"do": "leave", "done": False}],
    "note": None,
}
LEAVES = "title: Plan\nsteps.do: pack\nsteps.hours: 2\nsteps.do: leave\nsteps.done: false"


@pytest.mark.parametrize(
    ("value", "fields", "text"),
    [
        (PLAN, ("$",), LEAVES),
        ({"content": {"text": "She likes tea"}}, ("$",), "She likes tea"),
        (PLAN, ("title", "steps[*].do"), "Plan\npack\nleave"),
        (PLAN, ("steps[-1].do",), "leave"),
        ({"a": "one\x00two \ud800"}, ("$",), "one two ?"),
        *((PLAN, fields, None) for fields in (("missing",), ("note",), ("title.part",), ())),
        *((empty, ("$",), None) for empty in ({}, {"a": None}, {"a": "  "}, {"a": []})),
    ],
)
def test_the_text_that_is_searched_is_that_of_the_named_fields(value, fields, text):
    assert extract_text(value, fields) == text


def test_more_text_than_a_memory_holds_is_refused_with_the_remedy():
    with pytest.raises(InvalidInput, match=r"has 1,000,001 characters.*index="):
        extract_text({"a": "x" * 1_000_001}, ("$",))


def test_a_value_that_is_nested_too_deeply_is_refused():
    value = {"a": "leaf"}
    for _ in range(5_000):
        value = {"a": value}
    with pytest.raises(InvalidInput, match=r"is nested too deeply to be kept\. Give up to 250 lev"):
        check_item(PutOp(NOTES, "deep", value), name="x", fields=("$",), now=now_utc())


def test_fields_to_search_that_are_one_text_are_refused_with_the_remedy():
    op = PutOp(NOTES, "one", {"text": "tea"}, index="text")
    with pytest.raises(
        InvalidInput, match=r"index='text': must be a list of fields. Give \['text'\]"
    ):
        check_item(op, name="x", fields=("$",), now=now_utc())


# Few characters, so that labels often share their beginnings; all that paths and ids are made of.
LABELS = st.text(alphabet='ab./%0"\\\x00\ud800é', max_size=4)
SPACE = ItemSpace(Scope())
NAMESPACES = st.lists(LABELS, max_size=4).map(tuple)


def lies_beneath(prefix, namespace):
    path = encode_namespace(namespace)
    record = MemoryRecord(id="1", text="a", at=EPOCH, created_at=EPOCH, pool="langgraph", path=path)
    return matches(SPACE.filter_beneath(prefix), record)


@given(NAMESPACES, NAMESPACES)
def test_an_item_lies_beneath_a_prefix_when_its_labels_begin_with_it(prefix, namespace):
    assert lies_beneath(prefix, namespace) == (namespace[: len(prefix)] == prefix)


@given(NAMESPACES, LABELS)
def test_an_id_gives_its_namespace_and_key_back(namespace, key):
    assert decode_id(SPACE.encode_id(namespace, key)) == (namespace, key)


@given(NAMESPACES, NAMESPACES)
def test_no_two_namespaces_have_one_path(one, other):
    assert (encode_namespace(one) == encode_namespace(other)) == (one == other)


def test_a_path_is_the_labels_with_a_slash_behind_each():
    assert encode_namespace(("users", "mara", "a/b 50%")) == "users/mara/a%2Fb 50%25/"
    # An id says whose the item is.
    space = ItemSpace(Scope(project="home", user="mara"))
    name = '[{"project": "home", "user": "mara"}, "notes", "drink"]'
    assert space.encode_id(("notes",), "drink") == name
    assert decode_id(name) == (("notes",), "drink")
    # A condition of another kind is refused.
    with pytest.raises(InvalidInput, match="match_type='infix': is unknown"):
        fits(MatchCondition("infix", ("a",)), ("a",))


@pytest.mark.parametrize("namespace", ["users", ("users", 1), (None,), {"users": 1}])
def test_what_is_no_tuple_of_texts_is_refused(namespace):
    with pytest.raises(InvalidInput, match="namespace="):
        encode_namespace(namespace)


def test_a_namespace_that_no_filter_could_name_is_refused():
    with pytest.raises(InvalidInput, match=r"is too long\b"):
        encode_namespace(("a" * 10_000,))
    with pytest.raises(InvalidInput, match="is too long with its namespace"):
        SPACE.encode_id(("a",), "k" * 10_000)
