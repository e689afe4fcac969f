"""Writing and reading processes share one directory."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from ekphory.memory import Memory
from ekphory.testing.models import HashEmbedder


def share_a_directory(path, seconds, readers, start_child):
    """Let two writers and some readers begin at once on a store that is not there yet."""
    writers = [start_child("writer.py", path, name, seconds) for name in ("w0", "w1")]
    readers = [start_child("reader.py", path, seconds) for _ in range(readers)]
    for child in (*writers, *readers):
        child.go()
    patience = seconds + 60
    return [[child.finished(patience)[-1] for child in children] for children in (writers, readers)]


def assert_nothing_lost_or_doubled(path, wrote):
    rounds = [report["rounds"] for report in wrote]
    with Memory(path, embedder=HashEmbedder()) as memory:
        ids = Counter(entry.id for entry in memory.list(limit=10**6))
        assert set(ids.values()) == {1}
        assert [report["own"] for report in wrote] == [16 * number for number in rounds]
        assert [report["single"] for report in wrote] == rounds
        assert sum(report["shared"] for report in wrote) == 16 * max(rounds)
        assert memory.count() == 16 * (sum(rounds) + max(rounds)) + sum(rounds)
        assert len(memory.search("turn 3", k=1_000)) == min(1_000, memory.count())


def check(path, seconds, readers, start_child):
    wrote, read = share_a_directory(path, seconds, readers, start_child)
    assert_nothing_lost_or_doubled(path, wrote)
    assert all(report["rounds"] > 0 for report in read)


@pytest.mark.slow
def test_readers_see_no_error_while_another_process_purges_and_repairs(start_child, store_path):
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        memory.add_many({"text": f"row {number}", "id": f"{number}"} for number in range(400))
        child = start_child("purger.py", store_path)
        assert child.next_report() == {"ready": True}
        child.go()
        while child.process.poll() is None:
            assert len(memory.search("row", k=50)) == 50
            assert len(memory.list(limit=300)) == 300
            assert memory.count() >= 394
            assert memory.get("399").text == "row 399"
        assert child.finished(10) == [{"done": True}]
        assert memory.count() == 394


@pytest.mark.slow
def test_two_writers_and_four_readers_for_ten_seconds(start_child, store_path):
    check(store_path, 10, 4, start_child)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_two_writers_and_four_readers_for_a_minute(start_child, store_path):
    check(store_path, 60, 4, start_child)


@pytest.mark.parametrize(
    "read",
    [
        "get",
        pytest.param("list", marks=pytest.mark.slow),
        pytest.param("search", marks=pytest.mark.slow),
    ],
)
def test_a_memory_that_is_changed_meanwhile_is_read_under_its_own_id(store_path, read):
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        memory.add("count 0", id="count")
        reading = {
            "get": lambda: [memory.get("count")],
            "list": lambda: memory.list(limit=5),
            "search": lambda: [hit.memory for hit in memory.search("count")],
        }[read]
        with ThreadPoolExecutor(1) as thread:
            changes = thread.submit(change_twelve_times, memory)
            while not changes.done():
                (found,) = reading()
                assert (found.id, found.superseded_by) == ("count", None)
            changes.result()
        assert memory.get("count").text == "count 12"


def change_twelve_times(memory):
    for number in range(1, 13):
        memory.update("count", text=f"count {number}")
