"""Earlier versions, and decisions on facts that changed, through updates, expiry and crashes."""

import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest

from ekphory.errors import InvalidInput, MemoryNotFound
from ekphory.importers import import_path
from ekphory.memory import Memory
from ekphory.testing import HashEmbedder

SOON = 1.0


def in_seconds(seconds):
    return datetime.now(UTC) + timedelta(seconds=seconds)


@pytest.fixture
def pair(memory):
    """Where somebody lives, told twice."""
    memory.add("Lives in Rome", id="rome", type="semantic")
    memory.add("Lives in Bonn", id="bonn", type="semantic")
    return memory


@pytest.fixture
def elsewhere(tmp_path, close_at_end):
    """Another store."""
    return close_at_end(Memory(tmp_path / "elsewhere", embedder=HashEmbedder()))


def decided(memory):
    return [(each.older.id, each.newer.id) for each in memory.revisions()]


# Several processes.

KILLED_IN_AN_UPDATE = """
import os, sys
from ekphory import Memory
from ekphory.testing import HashEmbedder
memory = Memory(sys.argv[1], embedder=HashEmbedder())
memory._engine.store.supersede = lambda *given: os._exit(9)
memory.update("rome", metadata={"seen": True})
"""


def test_an_update_that_is_killed_leaves_its_decisions_to_no_other_memory(pair, store_path):
    pair.supersede("rome", by="bonn")
    command = [sys.executable, "-c", KILLED_IN_AN_UPDATE, store_path]
    assert subprocess.run(command, env=os.environ, check=False).returncode == 9
    pair.add("The oven is broken", id="oven")
    assert {hit.id: hit.superseded_by for hit in pair.search("oven")} == {
        "oven": None, "bonn": None, "rome": "bonn",
    }  # fmt: skip
    pair.update("rome", metadata={"seen": True})
    assert decided(pair) == [("rome", "bonn")]


WRITES = """
import sys
from ekphory import Memory
from ekphory.testing import HashEmbedder
with Memory(sys.argv[1], embedder=HashEmbedder()) as memory:
    for number in range(100):
        assert memory.add(f"memory {number}", id=f"written-{number}").added == 1
"""


@pytest.mark.slow
def test_what_one_process_writes_while_another_purges_is_all_there(memory, store_path):
    memory.add("seed")
    writing = subprocess.Popen([sys.executable, "-c", WRITES, store_path])
    purges = 0
    while writing.poll() is None:
        memory.add("secret", id=f"secret-{purges}")
        memory.forget(f"secret-{purges}", purge=True)
        purges += 1
    assert (writing.returncode, purges > 3) == (0, True)
    assert memory.count(filter="id CONTAINS 'written-'") == 100


# Expiry.


def test_purging_what_was_written_again_after_it_expired_leaves_no_earlier_version(memory):
    memory.add("the first secret", id="x", expires_at=in_seconds(SOON))
    memory.update("x", text="the second")
    time.sleep(SOON + 0.2)
    memory.add("the third", id="x")
    assert [record.text for record in memory.history("x")] == ["the third"]
    memory.forget("x", purge=True)
    assert memory.health().history == 0


def test_an_earlier_version_goes_when_its_memory_expires(memory):
    memory.add("one", id="x")
    memory.update("x", text="two")
    memory.update("x", expires_at=in_seconds(SOON))
    assert memory.get("x~1").text == "one"
    time.sleep(SOON + 0.2)
    for name in ("x", "x~1", "x~2"):
        with pytest.raises(MemoryNotFound):
            memory.get(name)


def test_an_earlier_version_stays_where_its_memory_was_given_more_time(memory, elsewhere, tmp_path):
    memory.add("one", id="x", expires_at=in_seconds(SOON))
    memory.update("x", text="two")
    memory.update("x", expires_at=in_seconds(3600))
    time.sleep(SOON + 0.2)
    assert memory.get("x~1").text == "one"
    target = tmp_path / "export.jsonl"
    assert memory.export(target).versions == 2
    assert import_path(elsewhere, target).failed == 0
    assert [record.text for record in elsewhere.history("x")] == ["two", "two", "one"]


def test_what_has_expired_ends_no_state_and_takes_no_part(pair):
    pair.supersede("rome", by="bonn")
    pair.update("bonn", expires_at=in_seconds(SOON))
    time.sleep(SOON + 0.2)
    assert pair.revisions() == ()
    assert [state.memory.id for state in pair.timeline("Lives in")] == ["rome"]
    assert [entry.text for entry in pair.profile()] == ["Lives in Rome"]


# Versions and decisions.


def test_a_version_that_was_forgotten_hides_no_other(memory):
    memory.add("one", id="x")
    memory.update("x", text="two")
    memory.update("x", text="three")
    memory.forget("x~2", purge=True)
    assert [record.id for record in memory.history("x")] == ["x", "x~1"]


def test_an_import_in_which_versions_name_each_other_ends(memory):
    version = {
        "id": "x~1", "text": "one", "created_at": "2024-01-01",
        "supersedes": "x~1", "superseded_by": "x",
    }  # fmt: skip
    current = {"id": "x", "text": "two", "created_at": "2024-01-01", "supersedes": "x~1"}
    memory.add_exported([{**current, "versions": [version]}])
    assert [record.text for record in memory.history("x")] == ["two", "one"]


def test_an_import_of_versions_that_its_memory_does_not_name_is_refused(memory):
    version = {"id": "x~1", "text": "one", "created_at": "2024-01-01", "superseded_by": "x"}
    current = {"id": "x", "text": "two", "created_at": "2024-01-01"}
    (failure,) = memory.add_exported([{**current, "versions": [version]}]).failed
    assert failure.message == (
        "supersedes=None: is missing beside earlier versions. Take the file as it was exported"
    )


def test_an_export_has_no_decision_on_what_is_not_there_any_more(pair, elsewhere, tmp_path):
    pair.supersede("rome", by="bonn")
    pair.forget("rome")
    pair.add("The dentist is Silva", id="rome")
    pair.export(tmp_path / "export.jsonl")
    import_path(elsewhere, tmp_path / "export.jsonl")
    assert (elsewhere.count(), decided(elsewhere)) == (2, [])


def test_a_decision_is_taken_back_by_its_first_id_after_an_update(pair):
    told = pair.supersede("rome", by="bonn")
    pair.update("bonn", metadata={"seen": True})
    assert pair.unsupersede(revision=told.id) == 1
    assert decided(pair) == []


def test_what_was_forgotten_is_in_no_circle(pair):
    pair.add("Lives in Oslo", id="oslo")
    pair.supersede("rome", by="oslo")
    pair.supersede("oslo", by="bonn")
    pair.forget("oslo")
    pair.supersede("bonn", by="rome")
    assert decided(pair) == [("bonn", "rome")]


def test_an_earlier_version_is_superseded_by_nothing(pair):
    pair.update("rome", text="Lives in Rome, by the river")
    with pytest.raises(InvalidInput, match=r"old='rome~1': is an earlier version. Name 'rome'"):
        pair.supersede("rome~1", by="bonn")


# Texts that hold nothing but recalled memories.


def test_neither_a_rule_nor_a_mistake_is_made_of_recalled_memories_alone(pair):
    recalled = pair.search("Rome").to_prompt()
    with pytest.raises(InvalidInput, match=r"holds nothing but recalled memories\. Give the rule"):
        pair.add_rule(recalled)
    with pytest.raises(InvalidInput, match=r"what=.*: is empty\. Say what went wrong"):
        pair.learn_mistake(recalled, fix="Restart it")
    with pytest.raises(InvalidInput, match=r"what='': is empty\. Say what went wrong"):
        pair.learn_mistake("", fix="Restart it")
