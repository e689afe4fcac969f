"""Handles: any number of them, of any scope, in any number of threads, on one directory."""

import os
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from ekphory.errors import InvalidInput, StoreClosed, StoreError
from ekphory.memory import Memory
from ekphory.testing.models import HashEmbedder


@pytest.fixture
def background_threads():
    """Names of ekphory's threads that were started since the test began."""
    before = set(threading.enumerate())

    def names():
        started = (thread for thread in threading.enumerate() if thread not in before)
        return [thread.name for thread in started if thread.name.startswith("ekphory")]

    return names


def test_what_one_handle_writes_another_sees_at_once(open_memory):
    first, second = open_memory(), open_memory()
    first.add("kangaroo", id="1")
    assert second.get("1").text == "kangaroo"
    assert [hit.id for hit in second.search("kangaroo").hits] == ["1"]


def test_many_handles_share_one_writer(open_memory, background_threads):
    handles = [open_memory(user=f"u{number}") for number in range(12)]
    for handle in handles:
        handle.add("hello")
    assert background_threads() == ["ekphory-writer"]
    assert [handle.count() for handle in handles] == [1] * 12


def test_the_last_handle_that_closes_ends_the_background_work(open_memory, background_threads):
    first, second = open_memory(), open_memory()
    first.add("hello")
    first.close()
    assert background_threads() == ["ekphory-writer"]
    second.close()
    assert background_threads() == []


def test_a_handle_that_only_reads_starts_no_background_work(memory, background_threads):
    memory.search("hello")
    assert background_threads() == []


def test_a_with_block_closes_its_handle(store_path, background_threads):
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        memory.add("hello")
    assert background_threads() == []
    with pytest.raises(StoreClosed, match="was closed"):
        memory.count()


def test_closing_twice_does_nothing(open_memory):
    first, second = open_memory(), open_memory()
    first.close()
    first.close()
    assert second.add("hello").added == 1


@pytest.mark.parametrize(
    "use",
    [
        lambda memory: memory.add("x"),
        lambda memory: memory.add_many([{"text": "x"}]),
        lambda memory: memory.add_messages([{"role": "user", "content": "x"}]),
        lambda memory: memory.search("x"),
        lambda memory: memory.search(""),
        lambda memory: memory.get("1"),
        lambda memory: memory.list(),
        lambda memory: memory.count(),
        lambda memory: memory.history("1"),
        lambda memory: memory.update("1", text="x"),
        lambda memory: memory.forget("1"),
        lambda memory: memory.health(),
        lambda memory: memory.repair(),
    ],
)
def test_a_closed_handle_says_so(memory, use):
    memory.close()
    with pytest.raises(StoreClosed, match="Open the store again"):
        use(memory)


def test_what_was_written_is_there_when_opened_again(store_path):
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        memory.add("hello", id="1")
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        assert memory.get("1").text == "hello"


def test_closing_waits_for_what_is_being_written(store_path):
    memory = Memory(store_path, embedder=HashEmbedder())
    started = threading.Event()
    reports = []

    def rows():
        for number in range(1_000):
            started.set()
            yield {"text": f"row {number}"}

    def write():
        try:
            reports.append(memory.add_many(rows()).added)
        except StoreClosed:
            reports.append(None)

    writer = threading.Thread(target=write)
    writer.start()
    started.wait()
    memory.close()
    writer.join()
    with Memory(store_path, embedder=HashEmbedder()) as again:
        assert again.count() >= (reports[0] or 0)


def test_several_spellings_of_a_path_are_one_store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "store")
    spellings = [
        "store",
        "./store/",
        tmp_path / "store",
        "other/../store",
        "link",
        f"file://{tmp_path}/store",
    ]
    handles = [Memory(path, embedder=HashEmbedder()) for path in spellings]
    handles[0].add("hello", id="1")
    assert [handle.add("hello", id="1").skipped for handle in handles] == [1] * 6
    for handle in handles:
        handle.close()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["link", "store"]


def test_the_path_may_start_in_the_home_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with Memory("~/memories", embedder=HashEmbedder()) as memory:
        memory.add("hello")
    assert (tmp_path / "memories").is_dir()


def test_missing_directories_are_made(tmp_path):
    with Memory(tmp_path / "a" / "b" / "c", embedder=HashEmbedder()) as memory:
        assert memory.add("hello").added == 1


def test_deleting_the_directory_of_an_idle_store_raises_nothing(
    open_memory, store_path, background_threads
):
    memory = open_memory()
    memory.add("hello")
    memory.search("hello")
    shutil.rmtree(store_path)
    memory.close()
    assert background_threads() == []


@pytest.mark.slow
def test_a_deleted_directory_stays_deleted_while_the_handle_is_idle(
    open_memory, store_path, caplog
):
    memory = open_memory()
    memory.add("hello")
    shutil.rmtree(store_path)
    time.sleep(1.3)  # files are merged in a quiet moment, a second after the last write
    memory.close()
    assert not store_path.exists()
    assert caplog.messages == []


def test_a_store_whose_directory_is_gone_says_so(open_memory, store_path):
    memory = open_memory()
    memory.add("hello")
    shutil.rmtree(store_path)
    for use in (lambda: memory.add("again"), lambda: memory.search("hello"), memory.count):
        with pytest.raises(StoreError, match=str(store_path)):
            use()


def test_a_directory_can_be_used_anew_after_it_was_deleted(store_path):
    for _ in range(2):
        with Memory(store_path, embedder=HashEmbedder()) as memory:
            assert memory.add("hello", id="1").added == 1
        shutil.rmtree(store_path)


def test_two_stores_are_two_worlds(tmp_path):
    with (
        Memory(tmp_path / "a", embedder=HashEmbedder()) as first,
        Memory(tmp_path / "b", embedder=HashEmbedder()) as second,
    ):
        first.add("hello", id="1")
        assert (first.count(), second.count()) == (1, 0)


def in_threads(work, arguments):
    """Run `work` on each argument, all at the same time, and give the results."""
    with ThreadPoolExecutor(len(arguments)) as threads:
        return list(threads.map(work, arguments))


@pytest.mark.slow
def test_threads_may_share_one_handle(memory):
    memory.add_many({"text": f"shared {n}", "id": f"s{n}"} for n in range(50))

    def work(thread):
        for number in range(5):
            name = f"{thread}-{number}"
            assert memory.add(f"shared by {name}", id=name).added == 1
            assert memory.get(name).text == f"shared by {name}"
            assert len(memory.search("shared", k=20)) == 20
            if number % 3 == 0:
                memory.update(name, text=f"changed {name}")
            if number % 5 == 4:
                memory.forget(name)

    in_threads(work, range(4))
    assert memory.count() == 50 + 4 * 4


def test_one_id_written_by_many_threads_is_one_memory(open_memory):
    handles = [open_memory() for _ in range(8)]
    reports = in_threads(lambda handle: handle.add("hello", id="1"), handles)
    assert sum(report.added for report in reports) == 1
    assert handles[0].count() == 1


def test_handles_may_be_opened_and_closed_by_threads_at_the_same_time(store_path):
    def work(number):
        for turn in range(4):
            with Memory(store_path, embedder=HashEmbedder()) as memory:
                memory.add("hello", id=f"{number}-{turn}")

    in_threads(work, range(4))
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        assert memory.count() == 16


FORGETFUL = """
import sys
from ekphory import Memory
from ekphory.testing import HashEmbedder
memory = Memory(sys.argv[1], embedder=HashEmbedder())
print(memory.add("hello", id="1").added)
"""


@pytest.mark.slow
def test_a_process_that_never_closes_its_handle_ends_by_itself(store_path):
    command = [sys.executable, "-W", "error", "-c", FORGETFUL, str(store_path)]
    child = subprocess.run(command, capture_output=True, text=True, timeout=60, env=os.environ)
    assert (child.returncode, child.stdout, child.stderr) == (0, "1\n", "")


FORGETFUL_AND_QUICK = """
import sys
from ekphory import Memory
from ekphory.testing import HashEmbedder
memory = Memory(sys.argv[1], embedder=HashEmbedder())
for number in range(10):
    memory.add(f"hello {number}")
"""


@pytest.mark.slow
def test_a_process_that_ends_without_closing_still_merges_what_it_wrote(store_path):
    command = [sys.executable, "-W", "error", "-c", FORGETFUL_AND_QUICK, str(store_path)]
    child = subprocess.run(command, capture_output=True, text=True, timeout=60, env=os.environ)
    assert (child.returncode, child.stderr) == (0, "")
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        assert (memory.count(), memory.health().fragments) == (10, 1)


@pytest.mark.parametrize("path", ["", "  ", None, 5, "a\x00b"])
def test_what_names_no_store_is_a_clear_error(path):
    with pytest.raises(InvalidInput, match=r"^path="):
        Memory(path, embedder=HashEmbedder())
