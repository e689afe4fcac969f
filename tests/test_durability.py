"""What was acknowledged is there once, whatever is killed and whoever writes beside."""

import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from ekphory.memory import Memory
from ekphory.testing import HashEmbedder

# What was acknowledged survives `kill -9`, and the store opens without repair.


def ids_of(memory, session):
    return [entry.id for entry in memory.list(filter=f"session = '{session}'", limit=10**6)]


def kill_an_import(child, chance):
    """Kill an import, perhaps before it has acknowledged anything, and give what it reported."""
    child.go()
    reports = [child.next_report() for _ in range(chance.randrange(5))]
    time.sleep(chance.random() * 0.15)
    return max([0, *(told["added"] for told in reports + child.kill())])


def import_kills(path, kills, *, chance, start_child):
    acknowledged = {}
    # Started ahead, since starting Python takes longer than the import.
    waiting = []
    for number in range(kills):
        while len(waiting) < min(3, kills - number):
            session = f"s{number + len(waiting)}"
            waiting.append((session, start_child("importer.py", path, session)))
        session, child = waiting.pop(0)
        acknowledged[session] = kill_an_import(child, chance)
    return acknowledged


def assert_acknowledged_once(path, acknowledged):
    with Memory(path, embedder=HashEmbedder()) as memory:
        for session, added in acknowledged.items():
            stored = ids_of(memory, session)
            assert len(stored) == len(set(stored)) >= added
            assert {f"{session} {number}" for number in range(added)} <= set(stored)
        assert len(memory.search("turn 7", k=50)) == min(50, memory.count())


def assert_resuming_adds_nothing_twice(path, acknowledged):
    with Memory(path, embedder=HashEmbedder()) as memory:
        for session, added in acknowledged.items():
            present = len(ids_of(memory, session))
            records = [
                {"id": f"{session} {number}", "text": f"turn {number % 50}", "session": session}
                for number in range(present + 20)
            ]
            report = memory.add_many(records)
            assert (report.added, report.skipped) == (20, present)
            assert Counter(ids_of(memory, session)) == Counter(record["id"] for record in records)
            assert present >= added


LONG = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("kills", "seed"),
    [pytest.param(10, 1, marks=pytest.mark.slow), pytest.param(50, 2, marks=LONG)],
)
def test_an_import_killed_at_many_moments_loses_and_doubles_nothing(
    store_path, start_child, kills, seed
):
    acknowledged = import_kills(
        store_path, kills, chance=random.Random(seed), start_child=start_child
    )
    assert_acknowledged_once(store_path, acknowledged)
    assert_resuming_adds_nothing_twice(store_path, acknowledged)


POSSIBLE = {
    "added": {"first", "second"},
    "updated": {"second"},
    "forgetting": {"second", None},
    "forgotten": {None},
}
"""What a memory may be after the kill, by the last thing that was reported of it."""


def assert_every_change_is_whole(path, kill, reports):
    last_state = {told["id"]: told["state"] for told in reports}
    with Memory(path, embedder=HashEmbedder()) as memory:
        texts = {entry.id: entry.text for entry in memory.list(limit=10**6)}
        assert len(texts) == memory.count()
        for name, state in last_state.items():
            assert texts.get(name) in POSSIBLE[state]
        for name, text in texts.items():
            assert len(memory.history(name)) == (2 if text == "second" else 1)
        assert memory.add("written afterwards", id=f"after kill {kill}").added == 1
        assert len(memory.search("afterwards", k=1_000)) == min(1_000, len(texts) + 1)


@pytest.mark.long
@pytest.mark.parametrize(
    ("kills", "seed"), [pytest.param(4, 3, marks=pytest.mark.slow), pytest.param(20, 4, marks=LONG)]
)
def test_changes_killed_at_many_moments_are_made_wholly_or_not_at_all(
    store_path, start_child, kills, seed
):
    chance = random.Random(seed)
    children = [start_child("changer.py", store_path, f"c{number}") for number in range(kills)]
    for number, child in enumerate(children):
        child.go()
        reports = [child.next_report() for _ in range(chance.randrange(1, 30))]
        time.sleep(chance.random() * 0.05)
        assert_every_change_is_whole(store_path, number, reports + child.kill())


@pytest.mark.slow
def test_a_killed_writer_leaves_no_lock_behind(store_path, start_child):
    child = start_child("importer.py", store_path, "s")
    child.go()
    child.next_report()
    child.kill()
    started = time.monotonic()
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        assert memory.add("hello").added == 1
    assert time.monotonic() - started < 5


# Writing and reading processes share one directory.


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


@pytest.mark.long
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


@pytest.mark.long
@pytest.mark.parametrize(
    "seconds", [pytest.param(10, marks=pytest.mark.slow), pytest.param(60, marks=LONG)]
)
def test_two_writers_and_four_readers_lose_and_double_nothing(start_child, store_path, seconds):
    wrote, read = share_a_directory(store_path, seconds, 4, start_child)
    assert_nothing_lost_or_doubled(store_path, wrote)
    assert all(report["rounds"] > 0 for report in read)


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
