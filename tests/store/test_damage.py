"""What is damaged on disk is told by a StoreError, and never taken for an empty store."""

import json
import shutil

import pytest

from ekphory.errors import StoreError
from ekphory.memory import Memory
from ekphory.store.lance_table import STATE_FILE
from ekphory.testing.models import HashEmbedder


@pytest.fixture
def opened(store_path):
    return lambda: Memory(store_path, embedder=HashEmbedder())


@pytest.fixture
def table(store_path, opened):
    with opened() as memory:
        memory.add("the first memory", id="first", metadata={"n": 1})
        memory.add("the second memory", id="second", metadata={"n": 2})
        memory.forget("first")
    return store_path / "memories.lance"


def newest_manifest(table):
    return min((table / "_versions").glob("*.manifest"))


def replace(path, old, new):
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new))


def test_a_store_without_versions_is_refused_and_left_as_it_is(table, opened):
    shutil.rmtree(table / "_versions")
    with pytest.raises(StoreError, match=r"_versions: holds no version .*ekphory restore"):
        opened()
    assert not (table / "_versions").exists()


def test_a_store_without_versions_is_refused_if_it_never_had_a_note(table, opened, store_path):
    shutil.rmtree(table / "_versions")
    (store_path / STATE_FILE).unlink()
    with pytest.raises(StoreError, match=r"though .*\.lance shows that the store held memories"):
        opened()


def test_a_store_whose_table_is_gone_is_refused(table, opened):
    shutil.rmtree(table)
    with pytest.raises(StoreError, match=r"\.ekphory\.state\.json shows that the store held"):
        opened()
    assert not table.exists()


def test_a_store_whose_newest_version_is_gone_is_refused(table, opened):
    newest_manifest(table).unlink()
    with pytest.raises(StoreError, match=r"\.manifest: is gone, so what was written after"):
        opened()


def test_a_folder_in_which_a_store_was_only_begun_is_no_lost_store(store_path, opened):
    store_path.mkdir()
    (store_path / ".ekphory.lock").touch()
    (store_path / "memories.lance" / "_transactions").mkdir(parents=True)
    (store_path / "memories.lance" / "_transactions" / "0-killed.txn").touch()
    with opened() as memory:
        assert memory.count() == 0


def test_a_flipped_byte_of_a_manifest_is_told_with_its_name(table, opened):
    manifest = newest_manifest(table)
    replace(manifest, b"string", b"strijg")
    with pytest.raises(StoreError, match=rf"{manifest.name}: was damaged since it was written"):
        opened()


def test_a_panic_of_lance_is_told_as_an_error_of_the_store(table, opened, store_path):
    replace(newest_manifest(table), b"string", b"strijg")
    (store_path / STATE_FILE).unlink()
    with pytest.raises(StoreError, match=r"a file of it is damaged.*ekphory doctor --verify"):
        opened()


def test_a_damaged_list_of_deleted_rows_is_told(store_path, opened):
    with opened() as memory:
        memory.add_many({"text": f"memory {number}"} for number in range(20))
        memory.forget(memory.list()[3].id)
        (deletions,) = store_path.glob("memories.lance/_deletions/*")
        content = bytearray(deletions.read_bytes())
        content[len(content) // 2] ^= 1
        deletions.write_bytes(content)
    with pytest.raises(StoreError, match="or a list of deleted rows that it names was"):
        opened()


def test_a_list_of_deleted_rows_that_a_killed_writer_had_begun_is_no_damage(store_path, opened):
    with opened() as memory:
        memory.add_many({"id": str(number), "text": f"note {number}"} for number in range(20))
        memory.forget("3")
        (store_path / "memories.lance" / "_deletions" / ".tmp4Hq1zX").write_bytes(b"begun")
    with opened() as memory:
        assert memory.count() == 19


def test_a_damaged_row_is_told_when_it_is_read(table, opened):
    for path in table.glob("data/*.lance"):
        path.write_bytes(path.read_bytes().replace(b'"metadata"', b'"metadava"'))
    with (
        opened() as memory,
        pytest.raises(StoreError, match=r"a row of memories\.lance is damaged .*metadava"),
    ):
        memory.list()


def test_a_note_that_is_garbage_is_told_with_the_remedy(table, opened, store_path):
    (store_path / STATE_FILE).write_bytes(b"\xff\x00{")
    with pytest.raises(StoreError, match=r"\.ekphory\.state\.json: cannot be read .*Remove it"):
        opened()
    (store_path / STATE_FILE).unlink()
    with opened() as memory:
        assert [record.id for record in memory.list()] == ["second"]


def test_a_note_that_is_older_than_the_newest_version_holds_nothing_up(table, opened, store_path):
    noted = (store_path / STATE_FILE).read_bytes()
    with opened() as memory:
        memory.add("the third memory", id="third")
    (store_path / STATE_FILE).write_bytes(noted)
    with opened() as memory:
        assert {record.id for record in memory.list()} == {"second", "third"}


def test_every_write_notes_the_newest_version(table, opened, store_path):
    noted = []
    with opened() as memory:
        for write in (
            lambda: memory.add("the third memory", id="third"),
            lambda: memory.update("third", text="the third, changed"),
            lambda: memory.forget("third"),
            lambda: memory.forget("second", purge=True),
            memory.repair,
        ):
            write()
            note = json.loads((store_path / STATE_FILE).read_text())
            noted.append(2**64 - 1 - note["version"] == int(newest_manifest(table).stem))
    assert noted == [True] * 5


def test_a_repair_removes_the_parts_of_notes_that_killed_writers_left(table, opened, store_path):
    (store_path / f"{STATE_FILE}.77.88").write_text("{")
    with opened() as memory:
        memory.repair()
    assert list(store_path.glob(f"{STATE_FILE}.*")) == []


def test_a_note_of_failed_upkeep_with_other_types_is_told_as_unreadable(table, opened, store_path):
    (store_path / ".ekphory.upkeep.json").write_text('{"message": 1, "attempts": "x", "since": ""}')
    with opened() as memory:
        assert "cannot be read" in memory.health().upkeep_failure
