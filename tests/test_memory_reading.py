"""`get`, `list` and `count`."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from ekphory.errors import FilterError, InvalidInput, MemoryNotFound
from ekphory.filters.tree import Comparison, Field, In, Not

SOON = timedelta(milliseconds=150)


@pytest.fixture
def diary(memory):
    """Five days, written out of order."""
    days = {3: "rain", 1: "sun", 5: "snow", 2: "wind", 4: "fog"}
    memory.add_many(
        {"id": f"d{day}", "text": text, "at": f"2026-05-0{day}", "metadata": {"day": day}}
        for day, text in days.items()
    )
    return memory


def ids(records):
    return [record.id for record in records]


def test_an_unknown_id_is_a_clear_error(memory):
    with pytest.raises(MemoryNotFound, match=r"id='nobody': no such memory in this scope"):
        memory.get("nobody")


@pytest.mark.parametrize("name", ["", None, 5, "a\x00", "\ud800"])
def test_what_is_no_id_is_a_clear_error(memory, name):
    with pytest.raises(InvalidInput, match=r"^id="):
        memory.get(name)


def test_an_id_that_two_narrower_scopes_use_must_be_told_apart(open_memory):
    open_memory(user="alice").add("hers", id="1")
    open_memory(user="bob").add("his", id="1")
    with pytest.raises(InvalidInput, match=r"2 narrower scopes.*Bind the agent, user or session"):
        open_memory().get("1")


def test_the_newest_are_listed_first(diary):
    assert ids(diary.list()) == ["d5", "d4", "d3", "d2", "d1"]


def test_the_oldest_can_be_listed_first(diary):
    assert ids(diary.list(order="oldest")) == ["d1", "d2", "d3", "d4", "d5"]


def test_they_can_be_listed_in_the_order_of_writing(diary):
    assert ids(diary.list(order="written")) == ["d3", "d1", "d5", "d2", "d4"]


def test_a_list_comes_in_pages(diary):
    assert ids(diary.list(limit=2)) == ["d5", "d4"]
    assert ids(diary.list(limit=2, offset=4)) == ["d1"]
    assert diary.list(offset=5) == []


def test_a_list_and_a_count_can_be_filtered(diary):
    assert ids(diary.list(filter="m.day >= 4")) == ["d5", "d4"]
    assert diary.count(filter="at < date('2026-05-03')") == 2


def test_a_filter_may_be_a_tree(diary):
    assert ids(diary.list(filter=Comparison(Field("text"), "eq", "fog"))) == ["d4"]


def test_an_empty_store_has_nothing_to_list(memory):
    assert (memory.list(), memory.count()) == ([], 0)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": -1}, "limit"),
        ({"limit": True}, "limit"),
        ({"limit": 2.0}, "limit"),
        ({"offset": -1}, "offset"),
        ({"order": "random"}, "order"),
    ],
)
def test_a_page_that_does_not_exist_is_a_clear_error(memory, arguments, field):
    with pytest.raises(InvalidInput, match=f"^{field}="):
        memory.list(**arguments)


def test_a_filter_of_a_thousand_values_may_be_used_in_any_scope(open_memory):
    memory = open_memory(project="p", user="alice")
    memory.add_many({"text": f"row {n}", "id": f"{n}"} for n in range(1_010))
    chosen = In(Field("id"), tuple(f"{n}" for n in range(1_000)))
    assert len(memory.list(filter=chosen, limit=2_000)) == memory.count(filter=chosen) == 1_000
    assert len(memory.search("row", filter=chosen, k=1_000)) == 1_000


def test_a_filter_of_fifty_levels_may_be_used_in_any_scope(open_memory):
    memory = open_memory(project="p", user="alice")
    memory.add("fog")
    tree = Comparison(Field("text"), "eq", "fog")
    for _ in range(50):
        tree = Not(tree)
    assert memory.count(filter=tree) == len(memory.search("fog", filter=tree)) == 1


def test_an_id_longer_than_any_that_can_be_stored_is_not_there(memory):
    with pytest.raises((MemoryNotFound, InvalidInput), match=r"^id="):
        memory.get("x" * 10_001)


@pytest.mark.parametrize("condition", ["", "text", "text = ", "nosuch = 1", 5, "text = 'a' AND"])
def test_a_malformed_filter_is_a_clear_error(memory, condition):
    for read in (memory.list, memory.count):
        with pytest.raises(FilterError, match=r"^filter="):
            read(filter=condition)


@pytest.mark.slow
def test_an_expired_memory_is_hidden_from_every_read(memory):
    # Long enough for a busy machine to read it before.
    ends = datetime.now(UTC) + timedelta(seconds=1)
    memory.add("short", id="1", expires_at=ends)
    assert memory.get("1").text == "short"
    wait_until(ends)
    with pytest.raises(MemoryNotFound):
        memory.get("1")
    assert (memory.list(), memory.count()) == ([], 0)
    assert memory.search("short").hits == ()
    assert memory.search("").hits == ()


def test_an_expired_id_can_be_used_again(memory):
    ends = datetime.now(UTC) + SOON
    memory.add("old", id="1", expires_at=ends)
    wait_until(ends)
    assert memory.add("new", id="1").added == 1
    memory.update("1", text="newer")
    assert (memory.get("1").text, ids(memory.list())) == ("newer", ["1"])


def test_a_search_of_an_earlier_moment_still_finds_what_expired_since(memory):
    ends = datetime.now(UTC) + SOON
    memory.add("short", id="1", expires_at=ends)
    wait_until(ends)
    with pytest.raises(MemoryNotFound):
        memory.get("1")
    assert [hit.id for hit in memory.search("short", now=ends - SOON).hits] == ["1"]


def wait_until(moment):
    while (left := moment - datetime.now(UTC)) >= timedelta(0):
        time.sleep(left.total_seconds())
