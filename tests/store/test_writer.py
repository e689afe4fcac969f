"""The one writer of a store: its queue, its lock or lease, its upkeep, and what it wrote last."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import filelock
import numpy as np
import pytest
from tests.store.in_memory import InMemoryStore
from tests.store.store_contract import CONTRACT_IDENTITY

from ekphory.errors import StoreClosed, StoreError, StoreLocked
from ekphory.filters.tree import And, Comparison, Field
from ekphory.memory import Memory
from ekphory.store.blocks import RecentWrites, columns_of, current_within, vectors_of
from ekphory.store.protocol import ScopeColumns
from ekphory.store.writer import (
    LOCK_FILE,
    NOTE_FILE,
    DirectoryLock,
    UpkeepState,
    Writer,
)
from ekphory.testing import HashEmbedder

# Writes run one after another, on one thread, and report back.


@pytest.fixture
def open_writer(tmp_path, close_at_end):
    """Opens writers of a directory, which are closed after the test."""
    return lambda store=None: close_at_end(
        Writer(store or InMemoryStore(CONTRACT_IDENTITY), DirectoryLock(tmp_path))
    )


@pytest.fixture
def writer(open_writer):
    return open_writer()


def test_writes_run_in_order_on_one_thread_and_report_back(writer):
    # A write gives back its result.
    assert writer.submit(lambda: 7).result() == 7
    # Writes run in the order of submission on one thread.
    ran = []
    futures = [
        writer.submit(lambda number=number: ran.append((number, threading.get_ident())))
        for number in range(50)
    ]
    for future in futures:
        future.result()
    assert [number for number, _ in ran] == list(range(50))
    assert len({thread for _, thread in ran}) == 1
    # An error reaches the one who asked and stops nobody else.
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


class Grouped:
    """Writes that were asked for together, and how they were made; `bad` cannot be written."""

    def __init__(self, writer, *wanted):
        self.calls = []
        go_on = _held_up(writer)
        self.futures = [
            writer.submit_to_group(item, self.write, group=group)
            if group
            else writer.submit(lambda: self.calls.append("alone"))
            for group, item in wanted
        ]
        go_on.set()
        self.answers = [future.exception() or future.result() for future in self.futures]

    def write(self, items):
        self.calls.append(list(items))
        if "bad" in items:
            raise StoreError("refused")
        return [item * 10 for item in items]


def test_writes_of_a_group_that_wait_are_made_together_64_at_most(writer):
    together = Grouped(writer, *(("a", number) for number in range(100)))
    assert together.answers == [10 * number for number in range(100)]
    assert [len(items) for items in together.calls] == [64, 36]


def test_writes_of_other_groups_and_of_none_keep_their_turn(writer):
    made = Grouped(writer, ("a", 1), ("a", 2), ("b", 3), (None, None), ("b", 4))
    assert made.calls == [[1, 2], [3], "alone", [4]]


def test_one_write_that_fails_does_not_fail_the_others_of_its_group(writer):
    first, failed, last = Grouped(writer, ("a", 1), ("a", "bad"), ("a", 2)).answers
    assert (first, str(failed), last) == (10, "refused", 20)


def test_closing_finishes_what_is_queued_and_is_told(writer):
    # Closing finishes what is queued.
    futures = [writer.submit(lambda: "written") for _ in range(20)]
    writer.close()
    assert [future.result(timeout=0) for future in futures] == ["written"] * 20
    # A closed writer says so.
    writer.close()
    with pytest.raises(StoreClosed, match="Open it again"):
        writer.submit(lambda: 7)


def test_a_write_holds_the_lock_of_the_directory_and_nothing_does_between_writes(writer, tmp_path):
    def is_locked():
        with pytest.raises(filelock.Timeout):
            filelock.FileLock(tmp_path / LOCK_FILE).acquire(timeout=0)
        return True

    assert writer.submit(is_locked).result()
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


def test_who_waits_is_told_which_process_writes(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("ekphory.store.writer._TOLD_AFTER", 0.01)
    first, second = DirectoryLock(tmp_path), DirectoryLock(tmp_path)
    with (
        first.held(),
        pytest.raises(StoreLocked, match=rf"process {os.getpid()} has been writing"),
        second.held(seconds=0.1),
    ):
        pass
    waiting = f"{tmp_path}: waiting for process {os.getpid()}, which is writing"
    assert caplog.messages == [waiting]


def test_what_cannot_be_locked_is_a_clear_error(tmp_path):
    # A directory that is gone is a clear error.
    writer = Writer(InMemoryStore(CONTRACT_IDENTITY), DirectoryLock(tmp_path / "gone"))
    with pytest.raises(StoreError, match=r"gone: cannot be written.*Check"):
        writer.submit(lambda: 7).result()
    writer.close()
    # A lock file that may not be written is a clear error.
    (tmp_path / LOCK_FILE).mkdir()
    with (
        pytest.raises(StoreError, match=r"cannot be written \(.*Check the disk's space"),
        DirectoryLock(tmp_path).held(),
    ):
        pass


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


def test_an_index_that_was_voided_is_built_again(open_writer, monkeypatch):
    monkeypatch.setattr("ekphory.store.writer._INDEX_PAUSE", 0.01)
    store = StubbornStore(failures=2)
    store.finish.set()
    writer = open_writer(store)
    writer.build_index_soon()
    assert store.building.wait(5)
    writer.close()
    assert (store.attempts, store.due) == (3, False)


def test_an_index_that_cannot_be_built_is_given_up(open_writer, monkeypatch):
    monkeypatch.setattr("ekphory.store.writer._INDEX_PAUSE", 0.001)
    store = StubbornStore(failures=100)
    writer = open_writer(store)
    writer.build_index_soon()
    while writer.is_indexing:
        threading.Event().wait(0.005)
    assert store.attempts == 5


def test_no_files_are_merged_while_the_index_is_built(open_writer):
    store = StubbornStore(failures=0)
    writer = open_writer(store)
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


def test_upkeep_that_fails_is_not_tried_again_at_every_write_but_repaired(open_writer):
    store = _FailingUpkeep()
    writer = open_writer(store)
    for _ in range(20):
        writer.submit(lambda: 7).result()
    assert (store.tries, writer.upkeep_failure.message) == (1, "the disk is full")
    writer.repair()
    assert writer.upkeep_failure is None


# Upkeep that fails is tried again after longer and longer pauses, and says so.


FULL, GONE = StoreError("the disk is full"), StoreError("the disk is gone")


def test_after_each_failure_the_pause_is_twice_as_long_and_ten_minutes_at_most(monkeypatch):
    clock = SimpleNamespace(seconds=100.0, monotonic=lambda: clock.seconds)
    monkeypatch.setattr("ekphory.store.writer.time", clock)
    state = UpkeepState(None)
    assert state.is_due
    pauses = []
    for _ in range(12):
        state.note_failure(FULL)
        before = clock.seconds
        while not state.is_due:
            clock.seconds += 0.5
        pauses.append(clock.seconds - before)
    assert pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]


def test_a_failure_is_told_to_all_until_a_success(tmp_path):
    # A success ends the pause and the failure.
    state = UpkeepState(None)
    state.note_failure(FULL)
    state.note_success()
    assert (state.is_due, state.failure) == (True, None)
    # Another process reads the failure until one succeeds.
    writing, reading = UpkeepState(tmp_path), UpkeepState(tmp_path)
    writing.note_failure(FULL)
    assert reading.failure == writing.failure
    writing.note_success()
    assert reading.failure is None
    # A note that cannot be read is a failure too.
    (tmp_path / NOTE_FILE).write_text("{")
    assert "cannot be read" in UpkeepState(tmp_path).failure.message


@pytest.mark.parametrize("folder", [None, "gone"], ids=["noted nowhere", "not to be noted"])
def test_failures_are_counted_with_the_last_message(tmp_path, folder):
    state = UpkeepState(folder and tmp_path / folder)
    state.note_failure(FULL)
    state.note_failure(GONE)
    assert (state.failure.attempts, state.failure.message) == (2, "the disk is gone")
    assert state.failure.sentence.startswith("Upkeep has failed 2 times since ")


# What a process wrote last is known without a read, for as long as nobody else wrote.


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


def test_only_what_followed_commit_by_commit_up_to_the_newest_is_told():
    recent = RecentWrites()
    recent.note([], before=1, after=2)
    assert recent.since(1, newest=2) is not None
    assert recent.since(1, newest=3) is None
    assert recent.since(0, newest=2) is None
    recent.note([], before=3, after=4)
    recent.note([], before=4, after=6)
    assert recent.since(1, newest=6) is None
    assert recent.since(3, newest=6) is None


def test_only_memories_of_the_scope_are_told(tmp_path):
    a, b = (Memory(tmp_path, project=name, embedder=HashEmbedder()) for name in "ab")
    with a, b:
        version = a._engine.store.version()
        a.add("of a")
        b.add("of b")
        growth = a._engine.store.growth_since(version)
    mine = current_within(growth.memories, Comparison(Field("project"), "eq", "a"))
    assert [each.record.text for each in mine] == ["of a"]


def test_columns_and_vectors_are_those_that_a_read_gives(memory):
    stored = _stored(memory, "the first note", "a second note", "zwei\nZeilen")
    store = memory._engine.store
    told, read = columns_of(stored), store.scan(And(()))
    for name in ScopeColumns.__slots__:
        assert np.array_equal(getattr(told, name), getattr(read, name)), name
    told, read = vectors_of(stored, dimension=32), store.scan_vectors(And(()))
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
    go_on = _held_up(engine.writer)

    def add(number):
        # Two of them are the same memory.
        return memory.add(f"note {number}", id=f"id-{number % 5}")

    with ThreadPoolExecutor(6) as threads:
        adds = [threads.submit(add, number) for number in range(6)]
        while engine.writer._jobs.qsize() < len(adds):
            time.sleep(0.001)
        go_on.set()
    reports = [each.result() for each in adds]
    assert engine.store.version() == version + 1
    assert [report.ids for report in reports] == [(f"id-{number % 5}",) for number in range(6)]
    assert sum(report.added for report in reports) == 5
    assert memory.count() == 6
