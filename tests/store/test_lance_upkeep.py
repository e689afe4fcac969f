"""Upkeep of the Lance table: files merged and removed, the index built; no row changed."""

from dataclasses import replace

import numpy as np
import pytest
from tests.store.store_contract import CONTRACT_IDENTITY, contract_record, contract_row

from ekphory.errors import StoreError, StoreLocked
from ekphory.filters.tree import And, Comparison, Field
from ekphory.memory import Memory
from ekphory.store import lance, lance_upkeep
from ekphory.store.lance import LanceStore
from ekphory.store.lance_snapshot import LanceSnapshot, StateGone
from ekphory.store.lance_table import list_needed_files
from ekphory.store.lance_upkeep import index_lock, sweep_table
from ekphory.testing import HashEmbedder

EVERYTHING = And(())


@pytest.fixture
def store(tmp_path):
    return LanceStore.open(str(tmp_path), CONTRACT_IDENTITY)


def write_one_by_one(store, count):
    for key in range(1, count + 1):
        store.append([contract_row(key)])


def test_without_upkeep_and_after_a_few_commits_every_commit_is_a_file(store, tmp_path):
    write_one_by_one(store, 3)
    store.maintain()
    health = store.health()
    assert (health.fragments, health.small_fragments) == (3, 3)
    assert health.bytes == sum(
        each.stat().st_size for each in tmp_path.rglob("*") if each.is_file()
    )


def test_repairing_merges_the_files_and_drops_the_versions(store):
    write_one_by_one(store, 8)
    store.delete([3])
    store.repair()
    health = store.health()
    assert (health.fragments, health.memories) == (1, 7)
    assert health.versions <= 2


def test_a_version_that_was_dropped_before_it_is_opened_is_told_as_gone(store, tmp_path):
    write_one_by_one(store, 2)
    dropped = LanceSnapshot(str(tmp_path)).version
    write_one_by_one(store, 2)
    store.repair()
    with pytest.raises(StateGone, match=f"while version {dropped} of it was being read"):
        LanceSnapshot(str(tmp_path), version=dropped)


@pytest.mark.slow
def test_many_commits_are_merged(store):
    write_one_by_one(store, 70)
    store.maintain()
    assert store.health().fragments < 10


def test_a_large_table_is_due_only_once_it_has_grown(tmp_path, store, monkeypatch):
    monkeypatch.setattr(lance_upkeep, "_SMALL_TABLE", 0)
    for module in (lance, lance_upkeep):
        monkeypatch.setattr(module, "WHEN_BUSY", (4, 0.25))
    store.append([contract_row(key) for key in range(1, 101)])
    for key in range(101, 105):
        store.append([contract_row(key)])
    other = LanceStore.open(str(tmp_path), CONTRACT_IDENTITY)
    # Not counted yet, so it has to be looked at.
    assert other.upkeep_is_due()
    other.maintain()
    assert (other.upkeep_is_due(), other.health().fragments) == (False, 5)
    other.append([contract_row(key) for key in range(105, 145)])
    assert other.upkeep_is_due()
    other.maintain()
    assert (other.upkeep_is_due(), other.health().fragments) == (False, 1)


def test_commits_of_handles_that_wrote_once_each_are_merged_as_well(tmp_path):
    for key in range(1, 11):
        handle = LanceStore.open(str(tmp_path), CONTRACT_IDENTITY)
        handle.append([contract_row(key)])
    assert handle.health().fragments == 10
    handle.tidy()
    assert (handle.health().fragments, handle.health().memories) == (1, 10)


def indexed_store(path):
    """1,500 vectors in two scopes, of which the first 1,200 are in the index."""
    store = LanceStore.open(str(path), CONTRACT_IDENTITY)
    generator = np.random.default_rng(5)
    vectors = generator.standard_normal((1_500, 32)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = [_row(key, vectors[key - 1]) for key in range(1, 1_501)]
    store.append(rows[:1_200])
    store.nearest(EVERYTHING, vectors[0], limit=1)
    assert store.index_is_due()
    store.build_index()
    store.append(rows[1_200:])
    return store, vectors


@pytest.fixture(scope="module")
def indexed(tmp_path_factory):
    """Such a store, to be searched only."""
    return indexed_store(tmp_path_factory.mktemp("indexed"))


def _row(key, vector):
    record = replace(contract_record(key), id=f"r{key}", user="even" if key % 2 == 0 else "odd")
    return replace(contract_row(key, record), vectors=vector[None, :])


def recall(store, vectors, where, keys):
    """Share of the ten exactly nearest among the 300 that the index gives, over twenty queries."""
    hits = 0
    for query in vectors[::75]:
        exact = keys[np.argsort(-(vectors[keys - 1] @ query))[:10]]
        found = store.nearest(where, query, limit=300)
        assert len(found) == 300
        hits += len(np.intersect1d(found, exact))
    return hits / 200


def test_an_index_is_built_once_a_search_has_missed_it_and_a_purge_keeps_it(tmp_path):
    store, vectors = indexed_store(tmp_path)
    assert store.health().vector_index_rows == 1_200
    assert not store.index_is_due()
    store.delete([8])
    store.purge()
    assert store.health().vector_index_rows == 1_499
    assert 8 not in store.nearest(EVERYTHING, vectors[7], limit=5)


@pytest.mark.slow
def test_the_index_finds_nearly_all_of_the_nearest(indexed):
    store, vectors = indexed
    assert recall(store, vectors, EVERYTHING, np.arange(1, 1_501)) >= 0.95


def test_the_index_finds_the_nearest_of_one_scope_and_what_came_later(indexed):
    # The index finds nearly all of the nearest of one scope.
    store, vectors = indexed
    even = Comparison(Field("user"), "eq", "even")
    assert recall(store, vectors, even, np.arange(2, 1_501, 2)) >= 0.95
    # What was appended after the index is found at once.
    assert 1_401 in store.nearest(EVERYTHING, vectors[1_400], limit=10)


# Removing what no version of a table needs.


@pytest.fixture
def table(store_path):
    """The table of a store of twenty memories, of which the first has been forgotten."""
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        memory.add_many({"id": str(number), "text": f"note {number}"} for number in range(20))
        memory.forget("0")
    return store_path / "memories.lance"


def kept_versions(table):
    return {2**64 - 1 - int(path.stem) for path in (table / "_versions").glob("*.manifest")}


def newest(table):
    return max(kept_versions(table))


def texts(store_path):
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        return sorted(record.text for record in memory.list(limit=100))


def test_the_newest_version_alone_is_kept_and_reads_as_before(table, store_path):
    before = texts(store_path)
    left = [table / "data" / ".tmpABC", table / "data" / "orphan.lance", table / "x.txn"]
    for path in left:
        path.write_bytes(b"left behind")
    sweep_table(table, keep_from=newest(table))
    assert [path for path in left if path.exists()] == []
    assert len(kept_versions(table)) == 1
    sweep_table(table, keep_from=newest(table) + 100)
    assert texts(store_path) == before
    assert len(before) == 19


def test_versions_from_the_named_one_on_are_kept(table):
    last = newest(table)
    sweep_table(table, keep_from=last - 1)
    assert kept_versions(table) == {last, last - 1}


def test_deletions_of_the_newest_version_are_kept_and_older_ones_go(table, store_path):
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        memory.forget("1")
    sweep_table(table, keep_from=newest(table))
    assert len(list((table / "_deletions").iterdir())) == 1
    assert "note 1" not in texts(store_path)


def test_several_versions_need_what_each_of_them_needs(table, store_path):
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        memory.forget("2")
        memory.add("one more note")
    manifests = [path.read_bytes() for path in (table / "_versions").glob("*.manifest")]
    of_each = {path for manifest in manifests for path in list_needed_files(table, manifest)}
    assert set(list_needed_files(table, *manifests)) == of_each
    assert {path.parent.name for path in of_each} >= {"data", "_deletions", "_transactions"}
    named = [path for path in table.rglob("*") if path.suffix in (".lance", ".txn")]
    by_text = {path for path in named if any(path.name.encode() in each for each in manifests)}
    assert {path for path in of_each if path.suffix in (".lance", ".txn")} == by_text


@pytest.mark.parametrize("version", ["7", "1000", "1000000"])
@pytest.mark.parametrize("before", [b"", b"X", b"H1P0X9"])
def test_a_file_is_needed_whatever_stands_before_its_name_in_the_manifest(
    tmp_path, version, before
):
    # The number of its field is the letter b, and its length one or a hyphen; values stand before.
    name = f"{version}-0f8fad5b-d9cb-469f-a165-70867728950e.txn"
    manifest = before + b"b" + bytes([len(name)]) + name.encode()
    needed = tmp_path / "_transactions" / name
    needed.parent.mkdir()
    needed.touch()
    (tmp_path / "_transactions" / "1000001-7c9e6679-7425-40de-944b-e07fc1f90ae7.txn").touch()
    assert list(list_needed_files(tmp_path, manifest)) == [needed]


def test_what_was_outdated_for_a_minute_is_swept_once_a_minute(store, tmp_path, monkeypatch):
    now = 100.0
    monkeypatch.setattr(lance_upkeep.time, "monotonic", lambda: now)
    orphan = tmp_path / "memories.lance" / "data" / "orphan.lance"
    left = []
    for now in (100.0, 130.0, 161.0, 200.0, 222.0):  # noqa: B007  read by the clock above
        write_one_by_one(store, 8)
        orphan.touch()
        store.tidy()
        left.append(orphan.exists())
    assert left == [True, True, False, True, False]


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
