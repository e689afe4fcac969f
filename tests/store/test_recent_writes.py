"""What a process wrote last is known without a read, for as long as nobody else wrote."""

import threading
import time

import numpy as np
import pytest

from ekphory.filters.tree import And, Comparison, Field
from ekphory.memory import Memory
from ekphory.store.protocol import ScopeColumns
from ekphory.store.writer import RecentWrites, columns_of, vectors_of
from ekphory.testing.models import HashEmbedder

EVERYTHING = And(())


def _stored(memory, *texts):
    """Add memories, and return them as they lie in the store."""
    store = memory._engine.store
    before = store.version()
    for text in texts:
        memory.add(text)
    return store.growth_since(before).memories


def test_what_was_added_since_a_version_is_told(memory):
    store = memory._engine.store
    memory.add("one")
    version = store.version()
    memory.add("two")
    memory.add("three")
    growth = store.growth_since(version)
    assert growth.version == store.version()
    assert [each.record.text for each in growth.memories] == ["two", "three"]
    assert store.growth_since(growth.version).memories == ()


@pytest.mark.parametrize(
    "change",
    [
        lambda memory: memory.update("known", text="another"),
        lambda memory: memory.forget("known"),
        lambda memory: memory.forget("known", purge=True),
    ],
)
def test_after_any_other_change_nothing_is_told(memory, change):
    memory.add("one", id="known")
    version = memory._engine.store.version()
    change(memory)
    assert memory._engine.store.growth_since(version) is None


def test_after_a_commit_that_is_not_ours_nothing_is_told():
    recent = RecentWrites()
    recent.note([], before=1, after=2)
    recent.note([], before=3, after=4)
    recent.note([], before=4, after=6)
    assert recent.since(1, newest=6) is None
    assert recent.since(3, newest=6) is None


def test_what_is_newer_than_the_last_commit_is_not_told():
    recent = RecentWrites()
    recent.note([], before=1, after=2)
    assert recent.since(1, newest=2) is not None
    assert recent.since(1, newest=3) is None
    assert recent.since(0, newest=2) is None


def test_only_memories_of_the_scope_are_told(tmp_path):
    a, b = (Memory(tmp_path, project=name, embedder=HashEmbedder()) for name in "ab")
    with a, b:
        version = a._engine.store.version()
        a.add("of a")
        b.add("of b")
        growth = a._engine.store.growth_since(version)
    mine = growth.within(Comparison(Field("project"), "eq", "a"))
    assert [each.record.text for each in mine] == ["of a"]


def test_columns_and_vectors_are_those_that_a_read_gives(memory):
    stored = _stored(memory, "the first note", "a second note", "zwei\nZeilen")
    store = memory._engine.store
    told, read = columns_of(stored), store.scan(EVERYTHING)
    for name in ScopeColumns.__slots__:
        assert np.array_equal(getattr(told, name), getattr(read, name)), name
    told, read = vectors_of(stored, dimension=32), store.scan_vectors(EVERYTHING)
    assert np.array_equal(told.keys, read.keys)
    assert np.array_equal(told.vectors, read.vectors)


def test_records_are_those_that_a_read_gives(memory, open_memory):
    stored = _stored(memory, "the first note", "a second note")
    keys = [each.key for each in stored]
    told = memory._engine.store.fetch(keys)
    memory.close()
    assert open_memory()._engine.store.fetch(keys) == told


def test_adds_that_wait_for_one_another_are_one_commit_and_each_is_told_its_own_id(memory):
    memory.add("before")
    engine = memory._engine
    version = engine.store.version()
    go_on, begun = threading.Event(), threading.Event()
    engine.writer.submit(lambda: begun.set() or go_on.wait(10))
    begun.wait(10)
    reports = {}

    def add(number):
        # Two of them are the same memory.
        reports[number] = memory.add(f"note {number}", id=f"id-{number % 5}")

    threads = [threading.Thread(target=add, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    while engine.writer._jobs.qsize() < len(threads):
        time.sleep(0.001)
    go_on.set()
    for thread in threads:
        thread.join()
    assert engine.store.version() == version + 1
    assert {number: report.ids for number, report in reports.items()} == {
        number: (f"id-{number % 5}",) for number in range(6)
    }
    assert sum(report.added for report in reports.values()) == 5
    assert memory.count() == 6
