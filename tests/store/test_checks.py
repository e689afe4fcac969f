"""Checksums of rows, and what the state of a store means."""

from dataclasses import replace

import pytest
from tests.store.store_contract import CONTRACT_IDENTITY, contract_row, full_record

from ekphory.filters.tree import And, Comparison, Field
from ekphory.memory import Memory
from ekphory.store.checks import examine
from ekphory.store.lance import LanceStore
from ekphory.store.protocol import StoreHealth
from ekphory.testing import HashEmbedder
from ekphory.types import ignore_progress


@pytest.fixture
def store(store_path):
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        for number in range(3):
            memory.add(
                f"the colour of number {number} is teal",
                id=f"memory-{number}",
                metadata={"place": f"Oslo{number}", "n": 1.5, "done": True},
                importance=1,
                at="2026-11-24T08:00:00+01:00",
            )
        memory.update("memory-0", text="the colour of number 0 is grey")
        memory.forget("memory-1")
    return store_path


def damage(store_path, old, new=None):
    """Flip the first byte of `old` in the data files, or put something else in its place."""
    new = bytes([old[0] ^ 1]) + old[1:] if new is None else new
    changed = 0
    for path in store_path.glob("memories.lance/data/*.lance"):
        content = path.read_bytes()
        changed += old in content
        path.write_bytes(content.replace(old, new))
    assert changed


def verified(store_path):
    told = []
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        found = memory.verify(on_progress=lambda *progress: told.append(progress))
    assert told[-1] == (found.rows, found.rows)
    return found


def test_rows_of_every_kind_are_what_was_written_and_progress_is_told(store):
    found = verified(store)
    assert (found.rows, found.unverified, found.damage) == (3, 0, ())


@pytest.mark.parametrize("old", [b"number 2 is teal", b"Oslo2", b"memory-2"])
def test_a_flip_is_found_with_the_memory_and_the_file(store, old):
    damage(store, old)
    found = verified(store).damage
    assert {each.problem for each in found} == {"is not what was written"}
    assert all(len(each.ids) == 1 and each.ids[0][-1] == "2" for each in found)
    assert all((store / each.file).is_file() for each in found)


def test_a_flip_in_a_vector_is_found(store):
    with Memory(store, embedder=HashEmbedder()) as memory:
        (key,) = memory._engine.store.keys(Comparison(Field("id"), "eq", "memory-2"))
        vector = memory._engine.store.vectors_of([key]).vectors.tobytes()
    damage(store, vector)
    assert [each.ids for each in verified(store).damage] == [("memory-2",)]


def test_a_row_that_cannot_be_read_is_told_and_the_others_are_verified(store):
    damage(store, b'{"id":"memory-2"', b'{"id":"memory-2!')
    (found,) = verified(store).damage
    assert (found.ids, found.rows) == (("memory-2",), 1)


def test_a_file_that_is_gone_is_named(store):
    with Memory(store, embedder=HashEmbedder()) as memory:
        memory.add("the last one", id="last")
        newest = max(store.glob("memories.lance/data/*"), key=lambda path: path.stat().st_mtime)
        newest.unlink()
        (found,) = memory.verify().damage
    assert (found.file, found.rows) == (f"memories.lance/data/{newest.name}", 1)
    assert found.problem.startswith("cannot be read")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_rows_of_earlier_stores_are_unverified_until_a_repair(store_path, version):
    earlier = replace(CONTRACT_IDENTITY, schema_version=version)
    store = LanceStore.open(str(store_path), earlier)
    store.append([contract_row(1), contract_row(2, windows=3)])
    found = store.verify(ignore_progress)
    assert (found.rows, found.unverified, found.damage) == (4, 4, ())
    before = store.fetch([1, 2])
    store.repair()
    found = store.verify(ignore_progress)
    assert (found.rows, found.unverified, found.damage) == (4, 0, ())
    store.append([contract_row(3)])
    reopened = LanceStore.open(str(store_path), CONTRACT_IDENTITY)
    assert reopened.identity.schema_version == 4
    assert reopened.verify(ignore_progress).unverified == 0
    assert reopened.fetch([1, 2]) == before
    assert reopened.keys(And(())).tolist() == [1, 2, 3]
    assert reopened.scan(And(())).importance_given.tolist() == [True] * 3


def test_a_full_memory_is_what_was_written(store_path):
    store = LanceStore.open(str(store_path), CONTRACT_IDENTITY)
    store.append([contract_row(1, full_record(), windows=2)])
    assert store.verify(ignore_progress).damage == ()
    store.purge()
    assert store.verify(ignore_progress).damage == ()


def test_a_purge_of_others_leaves_the_checksum_of_a_damaged_row_as_it_was(store):
    damage(store, b"number 2 is teal")
    with Memory(store, embedder=HashEmbedder()) as memory:
        memory.forget("memory-0", purge=True)
        assert [each.ids for each in memory.verify().damage] == [("memory-2",)]


# Findings.

HEALTHY = StoreHealth(
    memories=30_000,
    history=1,
    vectors=40_000,
    fragments=3,
    small_fragments=0,
    versions=2,
    bytes=60_000_000,
    vector_index_rows=40_000,
    orphaned_scopes=(),
    embedder="a@1 (3-d)",
)


def test_every_part_of_a_healthy_store_is_fine():
    assert [entry.sentence for entry in examine(HEALTHY)] == [
        "30,000 memories, 1 earlier version and 40,000 vectors.",
        "60.0 MB on disk, 2,000 bytes a memory.",
        "3 data files, 0 of them small.",
        "2 versions kept on disk.",
        "The vector index covers 40,000 of 40,000 vectors (100%).",
        "The vectors are of a@1 (3-d).",
        "Every scope holds a memory that can be found.",
        "Upkeep succeeds.",
    ]
    assert {entry.state for entry in examine(HEALTHY)} == {"fine"}


INDEX_LATER = "No vector index yet; it is built once a scope of over 20,000 vectors is searched."
INDEX_NEVER = "No vector index, and none needed: so few vectors are searched exactly."
INDEX_PARTLY = "The vector index covers 10,000 of 40,000 vectors (25%); the others are scanned."
ORPHANS = (
    "2 scopes hold nothing but expired memories or history: project=old, user=eve. "
    "Wipe them with `ekphory forget --purge` if they are not wanted."
)
FRAGMENTS = "90 data files, of which 80 are small; merged, they read faster."
OF_A_MODEL = "The vectors are of a@1 (3-d)"
OTHER_MODEL = (
    f"{OF_A_MODEL}, which is not at hand, so searches go by words alone. `ekphory reembed` makes "
    "them anew with new@2 (4-d)."
)
UNEMBEDDED = "2 memories have no vector of a@1 (3-d) yet; `ekphory reembed` makes it."
PREVIOUS = (
    f"{OF_A_MODEL}. Those of old@1 (2-d) are kept: `ekphory reembed --undo` goes back to them, "
    "`--drop-previous` removes them."
)
BEGUN = f"{OF_A_MODEL}. Making them with new@2 (4-d) has begun; `ekphory reembed` goes on."
SIZE = "Its size is not measured: it is not a local directory."


@pytest.mark.parametrize(
    ("changes", "state", "sentence"),
    [
        ({"fragments": 90, "small_fragments": 80}, "repairable", FRAGMENTS),
        ({"versions": 2_000}, "repairable", "2,000 versions are kept on disk; old ones can go."),
        ({"vector_index_rows": 10_000}, "repairable", INDEX_PARTLY),
        ({"vector_index_rows": None}, "note", INDEX_LATER),
        ({"vector_index_rows": None, "vectors": 500}, "fine", INDEX_NEVER),
        ({"bytes": None}, "note", SIZE),
        ({"orphaned_scopes": ("project=old", "user=eve")}, "note", ORPHANS),
        ({"upkeep_failure": "Upkeep has failed once: disk full"}, "repairable", None),
        ({"embedder_in_use": "new@2 (4-d)"}, "wanting", OTHER_MODEL),
        ({"unembedded": 2}, "wanting", UNEMBEDDED),
        ({"previous_embedder": "old@1 (2-d)"}, "note", PREVIOUS),
        ({"next_embedders": ("new@2 (4-d)",)}, "note", BEGUN),
    ],
)
def test_what_is_not_fine_is_said(changes, state, sentence):
    found = {entry.sentence: entry.state for entry in examine(replace(HEALTHY, **changes))}
    assert found[sentence or changes["upkeep_failure"]] == state
