"""A backup is one moment of a whole store, taken while others write, and proven when restored."""

import json
import os
import shutil
import stat
import tarfile

import lancedb
import pytest
from lancedb.index import BTree

from ekphory.backup import back_up, restore
from ekphory.catalog.database import Database
from ekphory.catalog.projects import Project, Projects
from ekphory.errors import InvalidInput, StoreError
from ekphory.memory import Memory
from ekphory.store.lance_snapshot import hold_newest_state
from ekphory.testing import HashEmbedder

CONTENTS = "ekphory-backup.json"
TARGETS = ("backup", "backup.tar")


@pytest.fixture(scope="module")
def kitchen(tmp_path_factory):
    """A store with a changed memory, a forgotten one, an index and a catalog."""
    store = tmp_path_factory.mktemp("kitchen") / "store"
    with Memory(store, embedder=HashEmbedder()) as memory:
        memory.add_many({"id": f"{number}", "text": f"note {number}"} for number in range(20))
        lancedb.connect(store).open_table("memories").create_index("key", config=BTree())
        memory.add_many([{"id": "oven", "text": "The oven is broken", "project": "home"}])
        memory.update("oven", text="The oven is repaired")
        memory.forget("7")
    database = Database(store / "catalog.sqlite3")
    Projects(database).create(Project(org="o", project="home", description="d", config={}))
    database.close()
    return store


@pytest.fixture(scope="module")
def folder(kitchen, tmp_path_factory):
    """A backup of the kitchen in a folder."""
    target = tmp_path_factory.mktemp("folder") / "backup"
    back_up(kitchen, target)
    return target


def everything(store):
    with Memory(store, embedder=HashEmbedder()) as memory:
        listed = memory.list(limit=10**6, order="written")
        return [memory.history(record.id) for record in listed]


def test_stores_of_other_embedders_are_part_of_it(tmp_path):
    store, other = tmp_path / "store", HashEmbedder(dimension=16)
    with Memory(store, embedder=HashEmbedder()) as memory:
        memory.add("tea")
    with Memory(store / "embedders" / "other", embedder=other) as memory:
        memory.add_many([{"text": "jazz"}, {"text": "pasta"}])
    assert back_up(store, tmp_path / "backup").memories == 3
    assert restore(tmp_path / "backup", tmp_path / "copy").memories == 3
    with Memory(tmp_path / "copy" / "embedders" / "other", embedder=other) as memory:
        assert sorted(record.text for record in memory.list()) == ["jazz", "pasta"]


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_what_is_restored_is_what_was_backed_up(kitchen, tmp_path, name):
    copy = tmp_path / "copy"
    copy.mkdir()  # an empty folder is taken over
    taken, put_back = back_up(kitchen, tmp_path / name), restore(tmp_path / name, copy)
    for report in (taken, put_back):
        assert (report.memories, report.history, report.catalog) == (20, 1, True)
    assert everything(copy) == everything(kitchen)
    with Memory(copy, embedder=HashEmbedder()) as memory:
        assert memory.add("written afterwards").added == 1
        assert memory.health().memories == 21
    database = Database(copy / "catalog.sqlite3")
    assert Projects(database).get("o", "home").description == "d"
    database.close()


def test_a_backup_holds_the_files_of_one_state_alone(kitchen):
    with hold_newest_state(kitchen) as state:
        paths = [held.path.split("/") for held in state.files]
        folders = [path[1] for path in paths if path[0] == "memories.lance"]
        assert [path[1] for path in paths if path[0] == "revisions.lance"].count("_versions") == 1
    assert folders.count("_versions") == 1
    assert folders.count("_indices") > 0
    assert folders.count("_deletions") > 0
    on_disk = len(list((kitchen / "memories.lance" / "_versions").glob("*.manifest")))
    assert on_disk > 1


def test_the_index_is_restored_too(folder, tmp_path):
    restore(folder, tmp_path / "copy")
    table = lancedb.connect(tmp_path / "copy").open_table("memories")
    assert [list(index.columns) for index in table.list_indices()] == [["key"]]
    assert table.index_stats("key_idx").num_indexed_rows > 0


@pytest.mark.long
@pytest.mark.parametrize("name", ["backup", pytest.param("backup.tar", marks=pytest.mark.slow)])
def test_a_backup_beside_a_writer_holds_what_was_acknowledged_and_one_moment(
    store_path, tmp_path, start_child, name
):
    child = start_child("importer.py", store_path, "s")
    child.go()
    while not (acknowledged := child.next_report()["added"]):
        pass
    report = back_up(store_path, tmp_path / name)
    child.next_report()
    child.kill()
    restore(tmp_path / name, tmp_path / "copy")
    with Memory(tmp_path / "copy", embedder=HashEmbedder()) as memory:
        ids = {record.id for record in memory.list(limit=10**6)}
        # The importer writes in order, so that a moment is a beginning of what it wrote.
        assert ids == {f"s {number}" for number in range(len(ids))}
        assert len(ids) == memory.count() == report.memories >= acknowledged
        assert len(memory.search("turn 7", k=50)) == 50


def test_a_backup_stays_whole_when_its_files_are_purged_meanwhile(store_path, tmp_path):
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        memory.add_many({"id": f"{number}", "text": f"note {number}"} for number in range(9))
        memory.update("3", text="changed")
        purged = []

        def purge_once(done, total):
            if not purged:
                purged.append(memory.forget("5", purge=True))

        back_up(store_path, tmp_path / "backup", on_progress=purge_once)
    restore(tmp_path / "backup", tmp_path / "copy")
    assert purged == [1]
    assert len(everything(tmp_path / "copy")) == 9


@pytest.mark.long
def test_backups_beside_a_process_that_purges_and_repairs_are_all_whole(
    store_path, tmp_path, start_child
):
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        memory.add_many({"text": f"row {number}", "id": f"{number}"} for number in range(400))
    child = start_child("purger.py", store_path)
    child.next_report()
    child.go()
    taken = 0
    while child.process.poll() is None:
        report = back_up(store_path, tmp_path / f"b{taken}")
        assert restore(tmp_path / f"b{taken}", tmp_path / f"s{taken}").memories == report.memories
        assert report.memories >= 394
        taken += 1
    assert taken > 0


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def first(folder, pattern):
    return sorted(folder.rglob(pattern))[0]


def name_other_file(path):
    """Return what lets a backup name another file in place of its first."""

    def change(copy):
        contents = json.loads((copy / CONTENTS).read_text())
        contents["files"][0]["path"] = path
        (copy / CONTENTS).write_text(json.dumps(contents))

    return change


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda copy: flip(first(copy, "data/*.lance")), "is not what was backed up"),
        (lambda copy: first(copy, "data/*.lance").unlink(), "is missing"),
        (lambda copy: flip(copy / "catalog.sqlite3"), "is not what was backed up"),
        (lambda copy: (copy / CONTENTS).write_text("{"), f"{CONTENTS} is damaged"),
        *(
            (name_other_file(path), "is damaged")
            for path in ("../x", "/etc/x", "memories.lance/../../x", "other", "C:\\x")
        ),
    ],
)
def test_a_damaged_backup_is_refused_and_leaves_nothing(folder, tmp_path, damage, said):
    copy = tmp_path / "backup"
    shutil.copytree(folder, copy)
    damage(copy)
    with pytest.raises(StoreError, match=said):
        restore(copy, tmp_path / "copy")
    assert [entry.name for entry in tmp_path.iterdir()] == ["backup"]


def test_an_archive_that_is_cut_off_is_refused(kitchen, tmp_path):
    back_up(kitchen, tmp_path / "b.tar")
    content = (tmp_path / "b.tar").read_bytes()
    (tmp_path / "b.tar").write_bytes(content[: len(content) // 2])
    with pytest.raises((StoreError, InvalidInput), match=r"b\.tar"):
        restore(tmp_path / "b.tar", tmp_path / "copy")
    assert [entry.name for entry in tmp_path.iterdir()] == ["b.tar"]


def test_what_is_no_backup_is_refused(tmp_path):
    (tmp_path / "notes").mkdir()
    with tarfile.open(tmp_path / "other.tar", "w"):
        pass
    for name in ("notes", "other.tar", "nowhere"):
        with pytest.raises(InvalidInput, match="Name what `ekphory backup` wrote"):
            restore(tmp_path / name, tmp_path / "copy")


def test_a_target_that_holds_something_is_refused_and_left_alone(kitchen, folder, tmp_path):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "note").write_text("mine")
    (tmp_path / "taken.tar").write_text("mine")
    for name in ("taken", "taken.tar"):
        with pytest.raises(InvalidInput, match="there is something already"):
            back_up(kitchen, tmp_path / name)
    with pytest.raises(InvalidInput, match="there is something already"):
        restore(folder, tmp_path / "taken")
    assert sorted(entry.name for entry in tmp_path.rglob("*")) == ["note", "taken", "taken.tar"]


@pytest.mark.parametrize("name", TARGETS)
def test_an_interrupted_backup_leaves_nothing(kitchen, tmp_path, name):
    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        back_up(kitchen, tmp_path / name, on_progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_a_backup_in_the_store_itself_and_of_no_store_are_refused(kitchen, tmp_path):
    target = tmp_path / "backup"
    for store, place, said in (
        (kitchen, kitchen / "backup", "lies in the store"),
        (tmp_path / "nowhere", target, "there is no store"),
        ("s3://bucket/store", target, "is on object storage"),
    ):
        with pytest.raises(InvalidInput, match=said):
            back_up(store, place)
    assert list(tmp_path.iterdir()) == []


def test_the_catalog_is_restored_to_a_place_of_its_own(folder, tmp_path):
    elsewhere = tmp_path / "server" / "sessions.sqlite3"
    assert restore(folder, tmp_path / "copy", catalog=elsewhere).catalog
    assert not (tmp_path / "copy" / "catalog.sqlite3").exists()
    database = Database(elsewhere)
    assert [each.project for each in Projects(database).all()] == ["home"]
    database.close()
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o600
    with pytest.raises(InvalidInput, match=r"catalog=.*there is something already"):
        restore(folder, tmp_path / "again", catalog=elsewhere)
    with Memory(tmp_path / "plain", embedder=HashEmbedder()) as memory:
        memory.add("tea")
    back_up(tmp_path / "plain", tmp_path / "without.tar")
    with pytest.raises(InvalidInput, match=r"catalog=.*the backup holds no catalog"):
        restore(tmp_path / "without.tar", tmp_path / "again", catalog=tmp_path / "other.sqlite3")
    assert not (tmp_path / "again").exists()


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX rights")
def test_only_its_owner_can_read_a_backup_and_the_catalog(kitchen, folder, tmp_path):
    back_up(kitchen, tmp_path / "b.tar")
    restore(folder, tmp_path / "copy")
    modes = [
        stat.S_IMODE(path.stat().st_mode)
        for path in (folder, tmp_path / "b.tar", tmp_path / "copy" / "catalog.sqlite3")
    ]
    assert modes == [0o700, 0o600, 0o600]
