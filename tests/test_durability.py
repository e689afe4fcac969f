"""What was acknowledged survives `kill -9`, is there once, and the store opens without repair."""

import random
import time
from collections import Counter

import pytest

from ekphory.memory import Memory
from ekphory.testing.models import HashEmbedder


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


def check_kills(path, kills, *, seed, start_child):
    chance = random.Random(seed)
    acknowledged = import_kills(path, kills, chance=chance, start_child=start_child)
    assert_acknowledged_once(path, acknowledged)
    assert_resuming_adds_nothing_twice(path, acknowledged)


@pytest.mark.slow
def test_an_import_killed_at_ten_moments_loses_and_doubles_nothing(store_path, start_child):
    check_kills(store_path, 10, seed=1, start_child=start_child)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_an_import_killed_at_fifty_moments_loses_and_doubles_nothing(store_path, start_child):
    check_kills(store_path, 50, seed=2, start_child=start_child)


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


def check_killed_changes(path, kills, *, seed, start_child):
    chance = random.Random(seed)
    children = [start_child("changer.py", path, f"c{number}") for number in range(kills)]
    for number, child in enumerate(children):
        child.go()
        reports = [child.next_report() for _ in range(chance.randrange(1, 30))]
        time.sleep(chance.random() * 0.05)
        assert_every_change_is_whole(path, number, reports + child.kill())


@pytest.mark.slow
def test_changes_killed_at_four_moments_are_made_wholly_or_not_at_all(store_path, start_child):
    check_killed_changes(store_path, 4, seed=3, start_child=start_child)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_changes_killed_at_twenty_moments_are_made_wholly_or_not_at_all(store_path, start_child):
    check_killed_changes(store_path, 20, seed=4, start_child=start_child)


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
