"""A store of LangGraph that is kept in an ekphory store."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from langgraph.store.base import PutOp

from ekphory.errors import InvalidInput
from ekphory.frameworks.langgraph import EkphoryStore
from ekphory.memory import Memory
from ekphory.testing.models import HashEmbedder

NOTES = ("notes", "mara")


@pytest.fixture
def store(memory):
    return EkphoryStore(memory)


def keys(items):
    return [item.key for item in items]


def test_items_survive_a_reopening_of_the_store(store_path):
    value = {"text": "tea ☕", "list": [1, 2.5, None, True], "big": 2**70, "odd": "\x00\ud800"}
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        EkphoryStore(memory).put(NOTES, "drink", value)
        before = EkphoryStore(memory).get(NOTES, "drink")
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        after = EkphoryStore(memory).get(NOTES, "drink")
    assert after == before
    assert after.value == value


def test_a_new_value_keeps_the_moment_of_creation(store):
    start = datetime.now(UTC)
    store.put(NOTES, "drink", {"text": "tea"})
    first = store.get(NOTES, "drink")
    store.put(NOTES, "drink", {"text": "coffee"})
    second = store.get(NOTES, "drink")
    assert start <= first.created_at == first.updated_at
    assert second.created_at == first.created_at
    assert second.updated_at > first.updated_at
    assert second.value == {"text": "coffee"}


def test_overwriting_leaves_no_history_behind(store, memory):
    for number in range(3):
        store.put(NOTES, "count", {"number": number})
    assert memory.health().history == 0
    assert memory.count() == 1


def test_a_search_without_a_query_lists_what_was_put_last_first(store):
    for key in ("one", "two", "three"):
        store.put(NOTES, key, {"text": key})
    store.put(NOTES, "one", {"text": "again"})
    assert keys(store.search(NOTES)) == ["one", "three", "two"]
    assert keys(store.search(NOTES, limit=1, offset=1)) == ["three"]
    assert {item.score for item in store.search(NOTES)} == {None}


def test_a_search_with_a_query_gives_the_likeliest_first_with_its_probability(store):
    store.put(NOTES, "drink", {"text": "Mara drinks green tea"})
    store.put(NOTES, "sport", {"text": "Mara rows on Sundays"})
    first, second = store.search(NOTES, query="green tea")
    assert (first.key, second.key) == ("drink", "sport")
    assert 0 <= second.score < first.score <= 1


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


def test_an_item_that_is_not_indexed_stands_behind_the_others_without_a_score(store):
    store.put(NOTES, "hidden", {"text": "green tea"}, index=False)
    store.put(NOTES, "seen", {"text": "rowing"})
    found = store.search(NOTES, query="green tea")
    assert [(item.key, item.score is None) for item in found] == [("seen", False), ("hidden", True)]
    assert keys(store.search(NOTES, query="green tea", limit=1)) == ["seen"]
    assert store.get(NOTES, "hidden").value == {"text": "green tea"}


def test_items_that_are_not_indexed_fill_the_pages_behind_the_others(store):
    for key in ("one", "two", "three"):
        store.put(NOTES, key, {"text": "green tea"}, index=False)
    store.put(NOTES, "seen", {"text": "rowing"})
    pages = [keys(store.search(NOTES, query="tea", limit=2, offset=at)) for at in (0, 2, 4)]
    assert pages == [["seen", "three"], ["two", "one"], []]


def test_an_item_can_be_searched_once_it_is_indexed(store):
    store.put(NOTES, "note", {"text": "green tea"}, index=False)
    store.put(NOTES, "note", {"text": "green tea"})
    assert store.search(NOTES, query="green tea")[0].score is not None
    store.put(NOTES, "note", {"text": "green tea"}, index=False)
    assert store.search(NOTES, query="green tea")[0].score is None


def test_only_the_named_fields_are_searched(store):
    rest = {"body": "filler words here"}
    store.put(NOTES, "title", {"title": "green tea", **rest}, index=["title"])
    store.put(NOTES, "body", {"title": "green tea", **rest}, index=["body"])
    assert keys(store.search(NOTES, query="green tea")) == ["title", "body"]


def test_the_store_says_which_fields_are_searched_by_default(memory):
    store = EkphoryStore(memory, fields=["title"])
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


def test_items_are_memories_of_the_pool_langgraph(store, memory):
    store.put(NOTES, "drink", {"text": "green tea"})
    (hit,) = memory.search("green tea", pools=["langgraph"])
    assert (hit.text, hit.memory.path) == ("green tea", "notes/mara/")


@pytest.mark.slow
def test_a_text_that_holds_recalled_memories_is_kept_whole(store, memory):
    memory.add("green tea")
    block = memory.search("green tea").to_prompt()
    store.put(NOTES, "answer", {"text": block})
    assert store.get(NOTES, "answer").value == {"text": block}


@pytest.mark.parametrize(
    "value", [{"when": datetime.now(UTC)}, {"set": {1}}, {"nan": float("nan")}], ids=["", "", ""]
)
def test_what_json_cannot_say_is_refused_and_nothing_is_written(store, value):
    ops = [PutOp(NOTES, "good", {"text": "tea"}), PutOp(NOTES, "bad", value)]
    with pytest.raises(InvalidInput, match="must be JSON"):
        store.batch(ops)
    assert store.search(()) == []


def test_a_page_that_there_cannot_be_is_refused(store):
    with pytest.raises(InvalidInput, match="limit=-1: must be 0 or more"):
        store.search((), limit=-1)
    with pytest.raises(InvalidInput, match="offset=-1: must be 0 or more"):
        store.list_namespaces(offset=-1)


def test_fields_are_a_list(memory):
    with pytest.raises(InvalidInput, match="fields='title': must be a list"):
        EkphoryStore(memory, fields="title")


@pytest.mark.slow
def test_threads_that_put_one_item_at_a_time_leave_one_of_their_values(store):
    def put(number):
        store.put(NOTES, "count", {"number": number})

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(put, range(6)))
    (item,) = store.search(NOTES)
    assert item.value["number"] in range(6)
