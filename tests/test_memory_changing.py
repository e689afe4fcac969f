"""`update`, `history` and `forget`."""

import shutil
import threading

import pytest

from ekphory.errors import InvalidInput, MemoryNotFound
from ekphory.memory import Memory
from ekphory.testing.models import HashEmbedder


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A store of a memory that was changed twice."""
    path = tmp_path_factory.mktemp("moved") / "store"
    with Memory(path, embedder=HashEmbedder()) as memory:
        memory.add("Lives in Rome", id="home", at="2026-05-01", producer="Anna", metadata={"n": 1})
        memory.update("home", text="Lives in Oslo")
        memory.update("home", text="Lives in Bonn", importance=0.9)
    return path


@pytest.fixture
def moved(written, store_path, open_memory):
    """A handle on a copy of it."""
    shutil.copytree(written, store_path)
    return open_memory()


def texts(records):
    return [record.text for record in records]


def test_an_update_replaces_the_given_fields_and_keeps_the_others(moved):
    found = moved.get("home")
    assert (found.text, found.importance) == ("Lives in Bonn", 0.9)
    assert (found.producer, found.metadata, found.at.day) == ("Anna", {"n": 1}, 1)


def test_an_update_gives_the_new_version(memory):
    memory.add("a", id="1")
    changed = memory.update("1", text="b")
    assert changed == memory.get("1")
    assert changed.superseded_by is None
    assert changed.supersedes is not None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("text", "b"),
        ("type", "semantic"),
        ("importance", 0.9),
        ("metadata", {"k": "v"}),
    ],
)
def test_each_field_can_be_changed_alone(memory, field, value):
    memory.add("a", id="1")
    memory.update("1", **{field: value})
    assert getattr(memory.get("1"), field) == value


def test_moments_can_be_changed(memory):
    memory.add("a", id="1")
    changed = memory.update("1", at="2020-02-02", expires_at="2900-01-01")
    assert (changed.at.year, changed.expires_at.year) == (2020, 2900)


def test_earlier_versions_are_kept_as_history(moved):
    assert texts(moved.history("home")) == ["Lives in Bonn", "Lives in Oslo", "Lives in Rome"]
    assert [version.superseded_by for version in moved.history("home")] == [None, "home", "home"]


def test_a_memory_that_was_never_changed_is_its_own_history(memory):
    memory.add("a", id="1")
    assert texts(memory.history("1")) == ["a"]


def test_each_version_can_be_read_by_its_own_id(moved):
    for version in moved.history("home"):
        assert moved.get(version.id) == version


def test_earlier_versions_are_out_of_the_default_view(moved):
    assert (moved.count(), texts(moved.list())) == (1, ["Lives in Bonn"])
    assert [hit.text for hit in moved.search("Lives in Rome").hits] == ["Lives in Bonn"]


def test_an_updated_text_is_found_by_its_new_words(moved):
    hit = moved.search("Bonn").hits[0]
    assert hit.scores["bm25"] > 0
    assert moved.search("Rome").hits[0].scores["bm25"] == 0


def test_an_earlier_version_cannot_be_changed(moved):
    earlier = moved.history("home")[1].id
    with pytest.raises(InvalidInput, match=r"is an earlier version. Update 'home' instead"):
        moved.update(earlier, text="x")


def test_an_update_without_changes_is_a_clear_error(memory):
    memory.add("a", id="1")
    with pytest.raises(InvalidInput, match="nothing to change"):
        memory.update("1")


def test_updating_what_is_not_there_is_a_clear_error(memory):
    with pytest.raises(MemoryNotFound, match="id='1'"):
        memory.update("1", text="b")


@pytest.mark.parametrize(
    ("changes", "field"),
    [({"text": " "}, "text"), ({"importance": 2}, "importance"), ({"at": "soon"}, "at")],
)
def test_an_update_that_cannot_be_stored_changes_nothing(memory, changes, field):
    memory.add("a", id="1")
    with pytest.raises(InvalidInput, match=f"^{field}="):
        memory.update("1", **changes)
    assert texts(memory.history("1")) == ["a"]


def test_updates_at_the_same_time_all_count(memory):
    memory.add("a", id="1")
    changes = [{"text": "b"}, {"importance": 0.9}, {"type": "semantic"}, {"metadata": {"k": 1}}]
    threads = [threading.Thread(target=memory.update, args=["1"], kwargs=c) for c in changes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = memory.get("1")
    assert (found.text, found.importance, found.type, found.metadata) == (
        "b", 0.9, "semantic", {"k": 1},
    )  # fmt: skip
    assert len(memory.history("1")) == 5


def test_a_long_memory_can_become_short(memory):
    memory.add("word " * 350 + "kangaroo", id="1")
    memory.update("1", text="short")
    assert [hit.text for hit in memory.search("kangaroo").hits] == ["short"]


def test_a_callers_id_that_looks_like_a_version_is_a_memory_of_its_own(moved):
    taken = moved.history("home")[1].id
    assert moved.add("mine", id=taken).added == 1
    assert moved.get(taken).text == "mine"
    assert texts(moved.history("home"))[0] == "Lives in Bonn"


def test_forgetting_hides_at_once(memory):
    memory.add("a", id="1")
    assert memory.forget("1") == 1
    with pytest.raises(MemoryNotFound):
        memory.get("1")
    assert (memory.list(), memory.count(), memory.search("a").hits) == ([], 0, ())


def test_forgetting_takes_the_history_along(moved):
    versions = [version.id for version in moved.history("home")]
    assert moved.forget("home") == 1
    for name in versions:
        with pytest.raises(MemoryNotFound):
            moved.get(name)
    assert moved.health().history == 0


def test_one_version_of_the_history_can_be_forgotten(moved):
    newest, middle, _ = moved.history("home")
    assert moved.forget(middle.id) == 1
    assert moved.get("home") == newest
    with pytest.raises(MemoryNotFound):
        moved.get(middle.id)


def test_forgetting_what_is_not_there_is_a_clear_error(memory):
    with pytest.raises(MemoryNotFound, match="id='1'"):
        memory.forget("1")


def test_all_that_match_a_filter_can_be_forgotten(memory):
    memory.add_many({"text": f"row {n}", "metadata": {"n": n}} for n in range(10))
    assert memory.forget(filter="m.n < 4") == 4
    assert memory.count() == 6


def test_forgetting_by_filter_counts_memories_and_not_their_versions(moved):
    assert moved.forget(filter="producer = 'Anna'") == 1
    assert moved.health().history == 0


def test_a_filter_that_only_an_earlier_version_matches_forgets_nothing(moved):
    assert moved.forget(filter="text CONTAINS 'Rome'") == 0
    assert len(moved.history("home")) == 3


def test_a_filter_that_matches_nothing_forgets_nothing(memory):
    memory.add("a")
    assert memory.forget(filter="producer = 'nobody'") == 0
    assert memory.count() == 1


def test_thousands_can_be_forgotten_at_once(memory):
    memory.add_many({"text": f"row {n}", "id": f"{n}", "producer": "Anna"} for n in range(1_500))
    assert memory.forget(filter="producer = 'Anna'") == 1_500
    assert memory.count() == 0


@pytest.mark.parametrize("arguments", [{}, {"id": "1", "filter": "text = 'a'"}])
def test_forgetting_needs_an_id_or_a_filter(memory, arguments):
    memory.add("a", id="1")
    with pytest.raises(InvalidInput, match="give an id or a filter, not both"):
        memory.forget(**arguments)
    assert memory.count() == 1


def test_what_was_forgotten_does_not_come_back_with_the_next_memory(memory):
    memory.add("alpha first", id="1")
    memory.add("alpha secret", id="2")
    assert len(memory.search("alpha").hits) == 2
    memory.forget("2")
    memory.add("alpha third", id="3")
    assert sorted(hit.text for hit in memory.search("alpha").hits) == ["alpha first", "alpha third"]
