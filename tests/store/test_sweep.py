"""Removing what no version of a table needs."""

import pytest

from ekphory.errors import StoreError, StoreLocked
from ekphory.memory import Memory
from ekphory.store import lance_upkeep
from ekphory.store.lance_upkeep import index_lock, sweep_table
from ekphory.testing.models import HashEmbedder


@pytest.fixture
def table(store_path):
    """The table of a store of twenty memories, of which the first has been forgotten."""
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        memory.add_many({"id": str(number), "text": f"note {number}"} for number in range(20))
        memory.forget("0")
    return store_path / "memories.lance"


def newest(table):
    return max(2**64 - 1 - int(path.stem) for path in (table / "_versions").glob("*.manifest"))


def texts(store_path):
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        return sorted(record.text for record in memory.list(limit=100))


def test_what_a_killed_write_left_is_removed(table):
    left = [table / "data" / ".tmpABC", table / "data" / "orphan.lance", table / "x.txn"]
    for path in left:
        path.write_bytes(b"left behind")
    sweep_table(table, keep_from=newest(table))
    assert [path for path in left if path.exists()] == []


def test_the_newest_version_reads_as_before(table, store_path):
    before = texts(store_path)
    sweep_table(table, keep_from=newest(table))
    assert texts(store_path) == before
    assert len(before) == 19


def test_older_versions_go_by_their_number(table):
    sweep_table(table, keep_from=newest(table))
    assert len(list((table / "_versions").glob("*.manifest"))) == 1


def test_versions_from_the_named_one_on_are_kept(table):
    last = newest(table)
    sweep_table(table, keep_from=last - 1)
    kept = {2**64 - 1 - int(path.stem) for path in (table / "_versions").glob("*.manifest")}
    assert kept == {last, last - 1}


def test_a_number_above_the_newest_keeps_the_newest(table, store_path):
    sweep_table(table, keep_from=newest(table) + 100)
    assert len(texts(store_path)) == 19


def test_deletions_of_the_newest_version_are_kept_and_older_ones_go(table, store_path):
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        memory.forget("1")
    sweep_table(table, keep_from=newest(table))
    assert len(list((table / "_deletions").iterdir())) == 1
    assert "note 1" not in texts(store_path)


def test_nothing_is_removed_while_an_index_is_built(table):
    left = table / "data" / ".tmpABC"
    left.write_bytes(b"left behind")
    with index_lock(table.parent).held(), pytest.raises(StoreLocked):
        sweep_table(table, keep_from=newest(table), seconds=0)
    assert left.exists()


def test_a_table_without_versions_loses_nothing(table):
    for path in (table / "_versions").glob("*.manifest"):
        path.unlink()
    files = sorted((table / "data").iterdir())
    with pytest.raises(StoreError, match="holds no version"):
        sweep_table(table, keep_from=1)
    assert sorted((table / "data").iterdir()) == files


def test_a_file_that_cannot_be_removed_is_named(table, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    (table / "data" / ".tmpABC").write_bytes(b"left behind")
    monkeypatch.setattr(lance_upkeep.Path, "unlink", refuse)
    with pytest.raises(StoreError, match="cannot be removed"):
        sweep_table(table, keep_from=newest(table))
