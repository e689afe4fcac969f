"""Writes run one after another, on one thread, and report back."""

import os
import signal
import threading
import time

import filelock
import pytest

from ekphory.errors import StoreClosed, StoreError, StoreLocked
from ekphory.store.in_memory import InMemoryStore
from ekphory.store.writer import LOCK_FILE, DirectoryLock, Writer
from ekphory.testing.store_contract import CONTRACT_IDENTITY


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
