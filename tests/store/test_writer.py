"""The one writer of a store: its queue, its lock or lease, its upkeep, and what it wrote last."""

import os
import signal
import threading
import time

import filelock
import numpy as np
import pytest
from tests.store.in_memory import InMemoryStore
from tests.store.store_contract import CONTRACT_IDENTITY

from ekphory.errors import StoreClosed, StoreError, StoreLocked
from ekphory.filters.tree import And, Comparison, Field
from ekphory.memory import Memory
from ekphory.store.protocol import ScopeColumns
from ekphory.store.writer import (
    LOCK_FILE,
    NOTE_FILE,
    DirectoryLock,
    RecentWrites,
    UpkeepState,
    Writer,
    columns_of,
    vectors_of,
)
from ekphory.testing.models import HashEmbedder

# Writes run one after another, on one thread, and report back.


@pytest.fixture
def writer(tmp_path):
    writer = Writer(InMemoryStore(CONTRACT_IDENTITY), DirectoryLock(tmp_path))
    yield writer
    writer.close()


def test_a_write_gives_back_its_result(writer):
    assert writer.submit(lambda: 7).result() == 7


def test_writes_run_in_the_order_of_submission_on_one_thread(writer):
    ran = []
    futures = [
        writer.submit(lambda number=number: ran.append((number, threading.get_ident())))
        for number in range(50)
    ]
    for future in futures:
        future.result()
    assert [number for number, _ in ran] == list(range(50))
    assert len({thread for _, thread in ran}) == 1


def test_an_error_reaches_the_one_who_asked_and_stops_nobody_else(writer):
    failed = writer.submit(lambda: [][0])
    succeeded = writer.submit(lambda: "written")
    with pytest.raises(IndexError):
        failed.result()
    assert succeeded.result() == "written"


def _held_up(writer):
    """Keep the writer busy until the event that is returned is set."""
    go_on, begun = threading.Event(), threading.Event()
    writer.submit(lambda: begun.set() or go_on.wait(10))
    begun.wait(10)
    return go_on


def test_writes_of_a_group_that_wait_are_made_together(writer):
    calls = []

    def write(items):
        calls.append(list(items))
        return [item * 10 for item in items]

    go_on = _held_up(writer)
    futures = [writer.submit_to_group(number, write, group="a") for number in (1, 2, 3)]
    go_on.set()
    assert [future.result() for future in futures] == [10, 20, 30]
    assert calls == [[1, 2, 3]]


def test_writes_of_other_groups_and_of_none_keep_their_turn(writer):
    calls = []

    def write(items):
        calls.append(list(items))
        return items

    go_on = _held_up(writer)
    futures = [writer.submit_to_group(number, write, group="a") for number in (1, 2)]
    futures.append(writer.submit_to_group(3, write, group="b"))
    futures.append(writer.submit(lambda: calls.append("alone")))
    futures.append(writer.submit_to_group(4, write, group="b"))
    go_on.set()
    for future in futures:
        future.result()
    assert calls == [[1, 2], [3], "alone", [4]]


def test_at_most_64_writes_are_made_together(writer):
    calls = []
    go_on = _held_up(writer)
    futures = [
        writer.submit_to_group(number, lambda items: calls.append(len(items)) or items, group="a")
        for number in range(100)
    ]
    go_on.set()
    assert [future.result() for future in futures] == list(range(100))
    assert calls == [64, 36]


def test_one_write_that_fails_does_not_fail_the_others_of_its_group(writer):
    def write(items):
        if "bad" in items:
            raise StoreError("refused")
        return items

    go_on = _held_up(writer)
    futures = [writer.submit_to_group(item, write, group="a") for item in ("1", "bad", "2")]
    go_on.set()
    assert futures[0].result() == "1"
    with pytest.raises(StoreError, match="refused"):
        futures[1].result()
    assert futures[2].result() == "2"


def test_closing_finishes_what_is_queued(tmp_path):
    writer = Writer(InMemoryStore(CONTRACT_IDENTITY), DirectoryLock(tmp_path))
    futures = [writer.submit(lambda: "written") for _ in range(20)]
    writer.close()
    assert [future.result(timeout=0) for future in futures] == ["written"] * 20


def test_a_closed_writer_says_so(writer):
    writer.close()
    with pytest.raises(StoreClosed, match="Open it again"):
        writer.submit(lambda: 7)


def test_a_write_holds_the_lock_of_the_directory(writer, tmp_path):
    def is_locked():
        with pytest.raises(filelock.Timeout):
            filelock.FileLock(tmp_path / LOCK_FILE).acquire(timeout=0)
        return True

    assert writer.submit(is_locked).result()


def test_no_lock_is_held_between_writes(writer, tmp_path):
    writer.submit(lambda: 7).result()
    with filelock.FileLock(tmp_path / LOCK_FILE).acquire(timeout=10):
        pass


def test_a_lock_that_another_process_keeps_is_a_clear_error(writer, tmp_path, monkeypatch):
    monkeypatch.setattr("ekphory.store.writer.LOCK_SECONDS", 0.1)
    with (
        filelock.FileLock(tmp_path / LOCK_FILE),
        pytest.raises(StoreLocked, match=r"another process has been writing.*Wait for it"),
    ):
        writer.submit(lambda: 7).result()
    assert writer.submit(lambda: 7).result() == 7


def test_a_directory_that_is_gone_is_a_clear_error(tmp_path):
    writer = Writer(InMemoryStore(CONTRACT_IDENTITY), DirectoryLock(tmp_path / "gone"))
    with pytest.raises(StoreError, match=r"gone: cannot be written.*Check"):
        writer.submit(lambda: 7).result()
    writer.close()


class StubbornStore(InMemoryStore):
    """Fails to build its index so many times, and notes what was running beside."""

    def __init__(self, failures):
        super().__init__(CONTRACT_IDENTITY)
        self.failures, self.attempts, self.due = failures, 0, True
        self.building, self.merged_while_building = threading.Event(), False
        self.finish = threading.Event()

    def index_is_due(self):
        return self.due

    def build_index(self):
        self.attempts += 1
        if self.attempts <= self.failures:
            raise StoreError("another process merged files")
        self.building.set()
        self.finish.wait(5)
        self.due = False

    def maintain(self):
        self.merged_while_building |= self.building.is_set() and self.due


def test_an_index_that_was_voided_is_built_again(tmp_path):
    store = StubbornStore(failures=2)
    store.finish.set()
    writer = Writer(store, DirectoryLock(tmp_path), index_pause=0.01)
    writer.build_index_soon()
    assert store.building.wait(5)
    writer.close()
    assert (store.attempts, store.due) == (3, False)


def test_an_index_that_cannot_be_built_is_given_up(tmp_path):
    store = StubbornStore(failures=100)
    writer = Writer(store, DirectoryLock(tmp_path), index_pause=0.001)
    writer.build_index_soon()
    while writer.is_indexing:
        threading.Event().wait(0.005)
    writer.close()
    assert store.attempts == 5


def test_no_files_are_merged_while_the_index_is_built(tmp_path):
    store = StubbornStore(failures=0)
    writer = Writer(store, DirectoryLock(tmp_path))
    writer.build_index_soon()
    assert store.building.wait(5)
    for _ in range(5):
        writer.submit(lambda: None).result()
    store.finish.set()
    writer.close()
    assert not store.merged_while_building


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_process_forked_during_a_write_does_not_keep_the_lock(tmp_path):
    with DirectoryLock(tmp_path).held():
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
    try:
        with filelock.FileLock(tmp_path / LOCK_FILE).acquire(timeout=0):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_lock_file_that_may_not_be_written_is_a_clear_error(tmp_path):
    (tmp_path / LOCK_FILE).mkdir()
    with (
        pytest.raises(StoreError, match=r"cannot be written \(.*Check the disk's space"),
        DirectoryLock(tmp_path).held(),
    ):
        pass


class _FailingUpkeep(InMemoryStore):
    """A store whose upkeep is always due and always fails."""

    def __init__(self):
        super().__init__(CONTRACT_IDENTITY)
        self.tries = 0

    def upkeep_is_due(self):
        return True

    def maintain(self):
        self.tries += 1
        raise StoreError("the disk is full")


def test_upkeep_that_fails_is_not_tried_again_at_every_write(tmp_path):
    store = _FailingUpkeep()
    writer = Writer(store, DirectoryLock(tmp_path))
    for _ in range(20):
        writer.submit(lambda: 7).result()
    failure = writer.upkeep_failure
    writer.close()
    assert store.tries == 1
    assert failure.message == "the disk is full"


def test_upkeep_that_was_repaired_is_no_failure_any_more(tmp_path):
    store = _FailingUpkeep()
    writer = Writer(store, DirectoryLock(tmp_path))
    writer.submit(lambda: 7).result()
    writer.submit(lambda: 7).result()
    writer.repair()
    failure = writer.upkeep_failure
    writer.close()
    assert failure is None


# Upkeep that fails is tried again after longer and longer pauses, and says so.


class Clock:
    def __init__(self):
        self.seconds = 100.0

    def __call__(self):
        return self.seconds


def test_upkeep_is_due_at_first():
    assert UpkeepState(None).is_due


def test_after_each_failure_the_pause_is_twice_as_long():
    clock = Clock()
    state = UpkeepState(None, clock=clock)
    pauses = []
    for _ in range(4):
        state.note_failure(StoreError("the disk is full"))
        before = clock.seconds
        while not state.is_due:
            clock.seconds += 0.5
        pauses.append(clock.seconds - before)
    assert pauses == [1.0, 2.0, 4.0, 8.0]


def test_no_pause_is_longer_than_ten_minutes():
    clock = Clock()
    state = UpkeepState(None, clock=clock)
    for _ in range(40):
        state.note_failure(StoreError("the disk is full"))
    clock.seconds += 599
    assert not state.is_due
    clock.seconds += 1
    assert state.is_due


def test_a_success_ends_the_pause_and_the_failure():
    state = UpkeepState(None)
    state.note_failure(StoreError("the disk is full"))
    state.note_success()
    assert state.is_due
    assert state.failure is None


def test_failures_are_counted_with_the_last_message():
    state = UpkeepState(None)
    state.note_failure(StoreError("the disk is full"))
    state.note_failure(StoreError("the disk is gone"))
    assert state.failure.attempts == 2
    assert state.failure.message == "the disk is gone"
    assert state.failure.sentence.startswith("Upkeep has failed 2 times since ")


def test_another_process_reads_the_failure_until_one_succeeds(tmp_path):
    writing, reading = UpkeepState(tmp_path), UpkeepState(tmp_path)
    writing.note_failure(StoreError("the disk is full"))
    assert reading.failure == writing.failure
    writing.note_success()
    assert reading.failure is None


def test_a_note_that_cannot_be_read_is_a_failure_too(tmp_path):
    (tmp_path / NOTE_FILE).write_text("{")
    assert "cannot be read" in UpkeepState(tmp_path).failure.message


def test_where_nothing_can_be_noted_this_process_tells_it(tmp_path):
    state = UpkeepState(tmp_path / "gone")
    state.note_failure(StoreError("the disk is gone"))
    assert state.failure.attempts == 1


# What a process wrote last is known without a read, for as long as nobody else wrote.

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
